"""Seeds: every question, probe and sampled token of a node follows from its identity and its round.

Nothing is drawn from a shared generator, so a resumed node asks exactly what it would have asked, and no two
nodes walk the same list of questions. Probe and training seeds lie in ranges that do not meet, and a question's
content decides whether it is held out (`Family.holds_out`): small levels have few distinct items, so seeds are
not enough.
"""

from __future__ import annotations

from hashlib import blake2b

PROBE_SEEDS = range(2**40)
TRAINING_SEEDS = range(2**41, 2**53)

HELD_OUT_SHARE = 8
"""One content in this many is held out, unless a family says otherwise: probes are drawn from those, and
training never touches them."""


def hashed(*parts: bytes | str | int) -> int:
    """A 52-bit number from the parts, the same on every machine.

    Parts are kept apart: ("ab", "c") and ("a", "bc") differ, and so do 1 and "1"."""
    digest = blake2b(digest_size=8)
    for part in parts:
        kind, content = (
            (b"b", part)
            if isinstance(part, bytes)
            else (b"s", part.encode("utf-8", "surrogatepass"))
            if isinstance(part, str)
            else (b"i", str(part).encode())
        )
        digest.update(kind + len(content).to_bytes(8, "big") + content)
    return int.from_bytes(digest.digest(), "big") >> 12


def training_seed(identity: bytes, round: int, slot: int, attempt: int = 0) -> int:
    """Seed of the question in `slot` of a node's `round`. `identity` is the node's public key, or any bytes of
    its own; `attempt` counts the redraws of a slot whose question turned out to be held out."""
    return TRAINING_SEEDS.start + hashed("train", identity, round, slot, attempt)


def probe_seed(family: str, level: int, item: int) -> int:
    """Seed of a probe candidate: no identity in it, so all nodes are measured on the same questions."""
    return hashed("probe", family, level, item) % len(PROBE_SEEDS)


def sampling_seed(identity: bytes, round: int, purpose: str) -> int:
    """Seed for sampling tokens or for a choice, in [0, 2**52). `purpose` keeps the uses of a round independent,
    for example "own", "probe", "mix"."""
    return hashed("sample", identity, round, purpose)
