"""Preserves everyday language during training, and measures it.

Before the first round, the log-probabilities of some small talk are stored in the model's folder
(smalltalk.json); optimiser steps then keep these replies as likely (`app.learning.language`). The perplexity is
measured on other replies, which are never trained on.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec

from app.common import files
from app.learning.language import ROUND_RETENTION, PreservedReply, RetentionSettings, add_replies, needed_rise
from app.node.trainer.link import TrainerLink
from app.node.trainer.messages import GroupTokens, PeerTexts
from engines.contract import Batch

RESOURCES = Path(__file__).resolve().parents[3] / "resources"
MAX_TOKENS = 256
"""Maximum tokens; longer replies are skipped. With a word-level tokenizer the longest takes about 50."""
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


class Talk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message and a reply to it."""

    said: _Text
    reply: _Text


@functools.cache
def talks(name: str = "everyday.json") -> tuple[Talk, ...]:
    """Loads the talks in one file of the resources."""
    return msgspec.json.decode((RESOURCES / name).read_bytes(), type=tuple[Talk, ...])


async def perplexity(link: TrainerLink) -> float | None:
    """Returns exp of the mean negative log-likelihood (nats) per token of the replies, under the model's chat
    template and with its adapter. None if no reply fits.

    The end token is excluded: short answers to puzzles make an early end likelier, which would improve the
    figure. Raises TrainerDied and EngineError.
    """
    readings = await read_talks(link, talks())
    read = [reading.logprobs_GT[0][:-1] for reading in readings if reading is not None and reading.logprobs_GT]
    return perplexity_of(read)


async def read_talks(link: TrainerLink, some: Sequence[Talk]) -> list[GroupTokens | None]:
    """Returns the tokens of each talk and the log-probabilities of its reply; None for one that does not fit.
    Raises TrainerDied and EngineError."""
    groups = [
        PeerTexts(
            prompt=[{"role": "user", "content": one.said}], completions_G=(one.reply,), finished_G=(True,)
        )
        for one in some
    ]
    return await link.read(groups, MAX_TOKENS, logprobs=True)


def perplexity_of(logprobs_ST: list[list[float]]) -> float | None:
    """Returns the perplexity of some replies from their tokens' log-probabilities (nats); None without tokens.

    >>> perplexity_of([[math.log(0.5)], [math.log(0.5), math.log(0.25)]]), perplexity_of([])
    (2.519842099789746, None)
    """
    tokens = sum(map(len, logprobs_ST))
    return math.exp(-sum(map(math.fsum, logprobs_ST)) / tokens) if tokens else None


FILE = "smalltalk.json"


class RememberedTalk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A conversation, and the log-probabilities (nats) of its reply's tokens before the first round."""

    talk: Talk
    logprobs_T: list[float]


def read(folder: Path) -> Sequence[RememberedTalk]:
    """Loads a model's remembered conversations from its folder; empty if they are missing or unreadable."""
    return files.read_json(folder / FILE, tuple[RememberedTalk, ...]) or ()


def write(folder: Path, remembered: Sequence[RememberedTalk]) -> None:
    """Saves a model's remembered conversations in its folder. Raises OSError."""
    files.write_json(folder / FILE, remembered)


async def measure_reference(link: TrainerLink) -> tuple[RememberedTalk, ...]:
    """Measures the talks with a model whose adapter is still empty. Replies that do not fit are skipped. Raises
    TrainerDied and EngineError."""
    small_talk = talks(FILE)
    readings = await read_talks(link, small_talk)
    return tuple(
        RememberedTalk(talk=talk, logprobs_T=reading.logprobs_GT[0])
        for talk, reading in zip(small_talk, readings, strict=True)
        if reading is not None and reading.logprobs_GT
    )


async def add_small_talk(
    link: TrainerLink,
    remembered: Sequence[RememberedTalk],
    batches: Sequence[Batch],
    order: Random,
    grip: RetentionSettings = ROUND_RETENTION,
) -> list[Batch]:
    """Measures `grip.read` random replies and returns the steps, each with some of these added; unchanged if
    fewer are `remembered`. Raises TrainerDied and EngineError."""
    if len(remembered) < grip.read or not batches:
        return list(batches)
    some = order.sample(list(remembered), grip.read)
    readings = await read_talks(link, [one.talk for one in some])
    held = [
        PreservedReply(
            sequence=reading.sequences_G[0], pull_T=needed_rise(one.logprobs_T, reading.logprobs_GT[0])
        )
        for one, reading in zip(some, readings, strict=True)
        if reading and reading.logprobs_GT and len(reading.logprobs_GT[0]) == len(one.logprobs_T)
    ]
    return add_replies(batches, held, order, grip)
