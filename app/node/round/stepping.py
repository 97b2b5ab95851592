"""The optimiser steps of a round: one, or one for every few groups (`app.sapo.minibatches`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.node.trainer.link import TrainerLink
from engines.contract import Batch, EngineError, StepStats


@dataclass(frozen=True)
class Stepped:
    """What the steps of a round did together, None without any; and what to say after "Round n" where the
    engine refused one."""

    stats: StepStats | None
    steps: int
    refusal: str | None = None


async def take(
    link: TrainerLink,
    batches: Sequence[Batch],
    tell: Callable[[int, int], None],
    enough: Callable[[Sequence[float]], bool] = lambda losses: False,
) -> Stepped:
    """Takes the steps one after the other, until the losses so far are `enough`; `tell` hears how
    many of all are done. One that the engine refuses (a
    loss that is not finite) leaves the adapter as it was before that step, and the rest of the round's are not
    tried. Raises TrainerDied."""
    done: list[StepStats] = []
    try:
        for batch in batches:
            tell(len(done), len(batches))
            done.append(await link.step(batch))
            if enough([one.loss for one in done]):
                break
    except EngineError as error:
        what = f"ended after {len(done)} of {len(batches)} steps" if done else "brought no step"
        return Stepped(together(done), len(done), f"{what}: {error}")
    return Stepped(together(done), len(done))


def together(stats: Sequence[StepStats]) -> StepStats | None:
    """Steps as one: sums of what they worked on, means over steps of loss and gradient, over tokens of what is
    known per token.

    >>> one = StepStats(loss=1.0, grad_norm=2.0, rows=8, tokens=10, micro_batches=1, seconds=0.5, mismatch=0.1)
    >>> other = StepStats(loss=3.0, grad_norm=4.0, rows=4, tokens=30, micro_batches=1, seconds=0.5)
    >>> both = together([one, other])
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
