"""Takes optimiser steps one after the other, and combines what the engine says of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from app.node.trainer.link import TrainerLink
from engines.contract import Batch, EngineError, StepStats

HELD_STEPS = 10
"""Steps until it is measured again what they must preserve: twenty steps on peers' answers cost more of the
everyday language than was seen at their beginning (LOG.md)."""


@dataclass(frozen=True)
class StepsTaken:
    """The combined result of a round's steps, None if there were none. `refusal`: a phrase to follow "Round n"
    if the engine refused a step."""

    stats: StepStats | None
    steps: int
    refusal: str | None = None
    nats_BS: Sequence[Sequence[float]] = ()
    """Nats of the rows of each step, before it."""


async def _as_they_are(batches: Sequence[Batch]) -> Sequence[Batch]:
    return batches


async def take_steps(
    link: TrainerLink,
    batches: Sequence[Batch],
    tell: Callable[[int, int], None],
    enough: Callable[[Sequence[float]], bool] = lambda losses: False,
    held: Callable[[Sequence[Batch]], Awaitable[Sequence[Batch]]] = _as_they_are,
) -> StepsTaken:
    """Takes the steps in order until `enough(losses so far)` is true; `tell` gets the number done and the
    total. `held` adds to the next HELD_STEPS what they shall preserve. If the engine refuses a step (non-finite
    loss), the adapter is unchanged and the remaining steps are skipped. Raises TrainerDied."""
    done: list[StepStats] = []

    async def next_steps() -> AsyncIterator[Batch]:
        for first in range(0, len(batches), HELD_STEPS):
            for batch in await held(batches[first : first + HELD_STEPS]):
                yield batch

    try:
        async for batch in next_steps():
            tell(len(done), len(batches))
            done.append(await link.step(batch))
            if enough([one.loss for one in done]):
                break
    except EngineError as error:
        what = f"ended after {len(done)} of {len(batches)} steps" if done else "brought no step"
        return StepsTaken(combined_stats(done), len(done), f"{what}: {error}", [one.nats_S for one in done])
    return StepsTaken(combined_stats(done), len(done), nats_BS=[one.nats_S for one in done])


def combined_stats(stats: Sequence[StepStats]) -> StepStats | None:
    """Combines the statistics of several steps: work is summed; loss and gradient norm are means over steps;
    per-token figures are means over tokens.

    >>> one = StepStats(loss=1.0, grad_norm=2.0, rows=8, tokens=10, micro_batches=1, seconds=0.5, mismatch=0.1)
    >>> other = StepStats(loss=3.0, grad_norm=4.0, rows=4, tokens=30, micro_batches=1, seconds=0.5)
    >>> both = combined_stats([one, other])
    >>> both.loss, both.grad_norm, both.rows, both.tokens, both.seconds, both.mismatch, both.capped
    (2.0, 3.0, 12, 40, 1.0, 0.1, None)
    """
    if len(stats) < 2:
        return stats[0] if stats else None
    return StepStats(
        loss=sum(step.loss for step in stats) / len(stats),
        grad_norm=sum(step.grad_norm for step in stats) / len(stats),
        rows=sum(step.rows for step in stats),
        tokens=sum(step.tokens for step in stats),
        micro_batches=sum(step.micro_batches for step in stats),
        seconds=sum(step.seconds for step in stats),
        mismatch=_per_token([(step.mismatch, step.tokens) for step in stats]),
        capped=_per_token([(step.capped, step.tokens) for step in stats]),
    )


def _per_token(values: Sequence[tuple[float | None, int]]) -> float | None:
    known = [(value, tokens) for value, tokens in values if value is not None and tokens]
    return sum(value * tokens for value, tokens in known) / sum(t for _, t in known) if known else None
