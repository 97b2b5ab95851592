"""Seeds: every question, probe and sampled token of a node is derived from its identity and its round.

There is no shared generator, so a resumed node asks exactly what it would have asked, and two nodes never use
the same sequence of questions. Probe and training seeds are in disjoint ranges. That is not enough, because
small levels have few distinct items: a question's content decides whether it is held out (`Family.holds_out`).
"""

from __future__ import annotations

from hashlib import blake2b

PROBE_SEEDS = range(2**40)
TRAINING_SEEDS = range(2**41, 2**53)

HELD_OUT_SHARE = 8
"""One content in this many is held out, unless a family sets another number: probes use those, training never
does."""


def hashed_seed(*parts: bytes | str | int) -> int:
    """Returns a 52-bit hash of the parts, identical on every machine.

    Parts are delimited: ("ab", "c") and ("a", "bc") differ, and so do 1 and "1".
    """
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
    """Returns the seed of the question in `slot` of a node's `round`. `identity`: the node's public key, or
    other bytes unique to it. `attempt`: number of redraws of the slot because its question was held out."""
    return TRAINING_SEEDS.start + hashed_seed("train", identity, round, slot, attempt)


def probe_seed(family: str, level: int, item: int) -> int:
    """Returns the seed of a probe candidate. It does not depend on the identity, so all nodes are measured on
    the same questions."""
    return hashed_seed("probe", family, level, item) % len(PROBE_SEEDS)


def sampling_seed(identity: bytes, round: int, purpose: str) -> int:
    """Returns a seed for sampling tokens or for a choice, in [0, 2**52). `purpose` keeps the uses in a round
    independent, for example "own", "probe", "mix"."""
    return hashed_seed("sample", identity, round, purpose)
