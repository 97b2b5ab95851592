"""Small talk, as likely as a model that can talk found it before it learned anything, kept in its folder as
smalltalk.json, and the part of every round that holds it there (`app.learning.language`).

None of these replies is among those by which everyday language is measured (`app.node.round.everyday`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec

from app.common import files
from app.learning.language import PER_ROUND, Held, holding, pull
from app.node.round.everyday import Talk, read_talks, talks
from app.node.trainer.link import TrainerLink
from engines.contract import Batch

FILE = "smalltalk.json"


class Remembered(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A talk, and the log-probabilities (nats) of its reply's tokens before the first round."""

    talk: Talk
    logprobs_T: list[float]


def read(folder: Path) -> Sequence[Remembered]:
    """What was kept in a model's folder; empty where nothing was, or nothing that can be understood."""
    return files.read_json(folder / FILE, tuple[Remembered, ...]) or ()


def write(folder: Path, remembered: Sequence[Remembered]) -> None:
    """Raises OSError."""
    files.write_json(folder / FILE, remembered)


async def listen(link: TrainerLink) -> tuple[Remembered, ...]:
    """For a model whose adapter is still empty. Replies that don't fit are left out. Raises TrainerDied and
    EngineError."""
    small_talk = talks(FILE)
    readings = await read_talks(link, small_talk)
    return tuple(
        Remembered(talk=talk, logprobs_T=reading.logprobs_GT[0])
        for talk, reading in zip(small_talk, readings, strict=True)
        if reading is not None and reading.logprobs_GT
    )


async def hold(
    link: TrainerLink, remembered: Sequence[Remembered], batches: Sequence[Batch], order: Random
) -> list[Batch]:
    """The steps of a round, each with some small talk. Raises TrainerDied and EngineError."""
    if len(remembered) < PER_ROUND or not batches:
        return list(batches)
    some = order.sample(list(remembered), PER_ROUND)
    readings = await read_talks(link, [one.talk for one in some])
    held = [
        Held(sequence=reading.sequences_G[0], pull_T=pull(one.logprobs_T, reading.logprobs_GT[0]))
        for one, reading in zip(some, readings, strict=True)
        if reading and reading.logprobs_GT and len(reading.logprobs_GT[0]) == len(one.logprobs_T)
    ]
    return holding(batches, held, order)
