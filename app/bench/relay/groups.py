"""Groups to publish: real questions, true rewards, signed before the clock starts.

They are honest, so that a relay which scores a share of them again finds nothing: a bench of refusals would be
cheap and measure nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from random import Random

from app.sapo.groups import Group
from app.sapo.questions import draw
from app.sapo.seeds import training_seed
from app.swarm.wire import signing
from app.swarm.wire.body import Body, seal
from app.swarm.wire.frames import to_frame
from app.swarm.wire.protocol import Pub

SWARM = "bench"
FAMILIES = ("gcd", "lcm", "chain_sum", "count_bits")
"""Quickly made ones: this is about their carrying."""
COMPLETIONS = 8
BODY_BYTES = 3_800
"""The size of a body, as research on the relay took it: 4.2 KB as an envelope."""

_WORDS = (
    "first", "we", "take", "the", "numbers", "apart", "and", "look", "at", "what", "remains", "then", "so",
    "it", "is", "divided", "again", "until", "nothing", "left", "check", "this", "once", "more", "carry", "one",
)  # fmt: skip


def seed_of(number: int) -> bytes:
    """The secret of the bench's key of this number; the same in every run."""
    return sha256(b"shoal bench %d" % number).digest()


def key_of(number: int) -> bytes:
    return signing.public_key(seed_of(number))


def published(keys: int, rounds: int, first_seq: int, *, first_key: int = 0) -> Iterator[bytes]:
    """`rounds` frames of `pub`, round i by key first_key + i % keys, numbered from `first_seq` for each key."""
    rng = Random(first_seq)
    now_ms = int(time.time() * 1000)
    for round in range(rounds):
        number = first_key + round % keys
        group = _group(number, first_seq + round // keys, rng)
        body = Body.of(group, _REWARDS, SWARM, first_seq + round // keys, now_ms)
        yield to_frame(Pub.of(seal(body, seed_of(number))))


_REWARDS = tuple(int(i % 2 == 0) for i in range(COMPLETIONS))


def _group(number: int, sequence: int, rng: Random) -> Group:
    family = FAMILIES[(number + sequence) % len(FAMILIES)]
    question = draw(family, 0, training_seed(b"bench %d" % number, sequence, 0))
    answers = [str(question.entry["answer"]) if right else "nothing" for right in _REWARDS]
    return Group(
        coordinates=question.coordinates,
        completions_G=tuple(f"{text} #{answer}" for text, answer in zip(_texts(rng), answers, strict=True)),
        finished_G=(True,) * COMPLETIONS,
        model="starter",
    )


def _texts(rng: Random) -> Sequence[str]:
    length = (BODY_BYTES - 300) // COMPLETIONS - 8
    line = " ".join(rng.choices(_WORDS, k=120))
    return [line[start : start + length] for start in (rng.randrange(40) for _ in range(COMPLETIONS))]
