"""A speed trial: samples and trains on real questions for some seconds, in a separate trainer process. It
predicts a node's pace on this computer before the first round."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from app.learning.questions import own_questions
from app.node.record.settings import COMPLETIONS, starting_levels
from app.node.round.round import prompts_at_once
from app.node.trainer import messages
from app.node.trainer.link import TRAINER, TrainerLink
from app.sapo import curriculum
from app.sapo.asking import messages as chat
from app.sapo.scoring.sandbox import Sandbox
from engines.choice import Trial
from engines.contract import Batch, Completion, EngineInfo, Row
from engines.facts import MB
from engines.models.folder import read_settings

MEASURED_S = 5.0
"""Seconds of measuring, half for the sampler and half for the learner."""

INFORMATIVE_SHARE = 0.5
"""Assumed share of a round's rows that carry weight; the other groups are all right or all wrong."""

ROUND_OVERHEAD_S = 0.3
"""Seconds of a round for drawing, scoring and saving (measured with the starter on two cores)."""

_FIRST_TOKENS = 8  # enough to start threads and compile
_MAX_PROMPTS = 64
_MAX_ROWS = 512


def prompts(model: Path) -> list[list[dict[str, str]]]:
    """Returns the prompts of eight questions that a node with this model would ask first. Blocks for some
    seconds while the puzzle library loads."""
    state = curriculum.start(starting_levels(model, read_settings(model).families))
    with Sandbox() as sandbox:
        return [chat(asked.text) for asked in own_questions(state, b"trial", 1, 8, sandbox.questions)]


async def measure(
    model: Path,
    engine: str,
    home: Path,
    prompts_P: Sequence[list[dict[str, str]]],
    seconds: float = MEASURED_S,
    command: Sequence[str] = TRAINER,
) -> Trial:
    """Opens the engine, samples and trains for about `seconds`, and closes it. The adapter is discarded. Raises
    EngineError, DiskFullError and TrainerDied."""
    settings = read_settings(model)
    log = home / "logs" / "trial.log"
    link = await TrainerLink.start(
        log, lambda sentence: None, alone=True, command=command, engine=engine, home=home
    )
    peak = Peak(link.pid)
    watching = asyncio.create_task(peak.watch())
    try:
        began = time.monotonic()
        info = await link.open(model, settings.rank, 0)
        load_s = time.monotonic() - began
        together = prompts_at_once(info, COMPLETIONS)
        sampler, sampled = await _sampled(link, list(prompts_P), settings.max_tokens, seconds / 2, together)
        rows = _rows(sampled, info)
        learner = await _learned(link, rows, settings.learning_rate, seconds / 2)
    finally:
        watching.cancel()
        await link.end()
    answer = answer_tokens(
        [completion for group in sampled.groups_PG for completion in group], settings.max_tokens
    )
    read = answer + sum(len(row.prompt_T) for row in rows) / len(rows)
    return Trial(
        engine=info.name,
        dtype=info.dtype,
        device=info.device,
        sampler_tokens_per_s=round(sampler, 1),
        learner_tokens_per_s=round(learner, 1),
        rounds_per_hour=round(3600 / round_s(settings.groups * COMPLETIONS, answer, read, sampler, learner), 1),
        memory_mb=peak.bytes // MB,
        load_s=round(load_s, 2),
    )


class Peak:
    """Records the peak memory of a process, in `bytes`."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.bytes = 0

    async def watch(self) -> None:
        with contextlib.suppress(psutil.Error):
            while True:
                self.bytes = max(self.bytes, self._process.memory_info().rss)
                await asyncio.sleep(0.05)


async def _sampled(
    link: TrainerLink, prompts_P: list[list[dict[str, str]]], max_tokens: int, seconds: float, together: int
) -> tuple[float, messages.Sampled]:
    """Returns sampled tokens per second, and the answers. A short first call measures how much fits into the
    time."""
    await link.sample(
        prompts_P[:1], COMPLETIONS, _FIRST_TOKENS, 1, prompts_at_once=1
    )  # starts threads, compiles
    first = await link.sample(prompts_P[:1], COMPLETIONS, _FIRST_TOKENS, 2, prompts_at_once=1)
    fitting = seconds * first.tokens / max(first.seconds, 1e-4) / COMPLETIONS  # tokens of each completion
    length = min(max_tokens, max(_FIRST_TOKENS, int(fitting)))
    count = max(1, min(_MAX_PROMPTS, int(fitting / length)))
    asked_P = [prompts_P[place % len(prompts_P)] for place in range(count)]
    sampled = await link.sample(asked_P, COMPLETIONS, length, 3, prompts_at_once=together)
    return sampled.tokens / max(sampled.seconds, 1e-4), sampled


def _rows(sampled: messages.Sampled, info: EngineInfo) -> list[Row]:
    """Returns training rows in which every other answer is pushed up and the rest down, which costs as much as
    a real step."""
    return [
        Row(
            prompt_T=prompt_T,
            completion_T=completion.tokens_T,
            weights_T=[(-1) ** place / len(completion.tokens_T)] * len(completion.tokens_T),
            sampler_logprobs_T=completion.logprobs_T if info.sampler else None,
        )
        for prompt_T, group in zip(sampled.prompts_PT, sampled.groups_PG, strict=True)
        for place, completion in enumerate(group)
    ]


async def _learned(link: TrainerLink, rows: list[Row], learning_rate: float, seconds: float) -> float:
    """Returns tokens trained on per second: after a first step of two rows, takes as many rows as fit into the
    time."""
    took, some = 0.0, rows[:2]
    for _ in range(2):
        stats = await link.step(Batch(rows_S=some, learning_rate=learning_rate))
        took = max(stats.seconds, 1e-4)
        if took > seconds:
            break
        fitting = min(_MAX_ROWS, int(len(some) * seconds / took))
        some = [rows[place % len(rows)] for place in range(max(2, fitting))]
    else:
        stats = await link.step(Batch(rows_S=some, learning_rate=learning_rate))
        took = max(stats.seconds, 1e-4)
    return sum(len(row.prompt_T) + len(row.completion_T) for row in some) / took


def answer_tokens(completions: Sequence[Completion], max_tokens: int) -> float:
    """Mean answer length in tokens. Answers cut off by the trial's short time count as `max_tokens`, so that a
    slow engine's pace is underestimated rather than overestimated."""
    return sum(
        len(completion.tokens_T) if completion.finished else max_tokens for completion in completions
    ) / len(completions)


def round_s(answers: int, tokens: float, read: float, sampler: float, learner: float) -> float:
    """Returns the seconds of a round with this many answers. Per answer, `tokens` are sampled at `sampler`
    tokens/s. INFORMATIVE_SHARE of the answers are trained on, with `read` tokens each (prompt and answer) at
    `learner` tokens/s.

    >>> round_s(answers=64, tokens=50, read=100, sampler=3200, learner=1600)
    3.3
    """
    return round(
        ROUND_OVERHEAD_S + answers * tokens / sampler + INFORMATIVE_SHARE * answers * read / learner, 3
    )
