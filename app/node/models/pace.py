"""How fast a model will learn here before it has played a round, and how long its first look takes: ranges.

The work of a round grows with parameters times tokens. The constants are those of a round of SmolLM2 135M (8
questions, 8 answers) on two cores in 16 bits, slower by the processes that want the processor now; rounds of
another model on this very computer replace them. The model's own first look, which answers the same kind of
questions under the same load, tells more than either.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engines.models.needs import Dtype

FIXED_S = 2.0
"""Seconds that every round takes, whatever the model: drawing, scoring, saving."""
_REFERENCE = 135e6 * 64
_REFERENCE_S = 5.0
_REFERENCE_CORES = 2
_MOST_CORES = 8
"""More cores bring little more."""
_TELLING = 50e6
"""Parameters from which a model's own rounds predict those of other models."""


_FREE, _BUSY = 1.0, 4.0
"""The range around an estimate by size: 12 s were said of SmolLM2 135M in 32 bits on two cores, which took 8 to
16 s there, and 36 to 42 s while llama.cpp was compiled; 57 s of 0.5 billion parameters, which took 220."""
_LOOK_ANSWERS = (450, 750)
"""What a first look asks for: 480 to 744 answers in four homes of SmolLM2 135M."""
_LOOK_ROUNDS = (6.0, 16.0)
"""Its seconds before any answer was timed, in those of a round: 43, 71, 151 and 372 s with bf16 beside other
programs, where 7 to 28 s a round are expected."""
_KNOWN = (0.7, 2.0)
"""The range if another model has played here."""
_ANSWERS = 64
_LOOKED = (0.2, 0.9)
"""Seconds of a round relative to the time that the first look took for as many answers: 0.22 to 0.87 in six
homes of SmolLM2 135M. Without examples, prompts are short."""


class RoundWork(msgspec.Struct, frozen=True, kw_only=True):
    """`round_s` is the mean duration of a round here, None before the first; `answer_s` of an answer in the
    first look, None before it."""

    parameters: int
    max_tokens: int
    round_s: float | None = None
    answer_s: float | None = None
    answers: int = 0
    """Of a first look that is not over; `looks` tells whether it has one before it, or is at it."""
    looks: bool = False


def seconds(
    work: RoundWork, cores: int, dtype: Dtype, others: Iterable[RoundWork] = (), load: float = 0.0
) -> tuple[float, float]:
    """The least and the most seconds of a round: both as measured, or a range. `load` counts the processes that
    want the processor now.

    >>> small = RoundWork(parameters=135_000_000, max_tokens=64)
    >>> seconds(small, 2, "bfloat16"), seconds(small, 4, "float32")
    ((7.0, 28.0), (7.0, 28.0))
    >>> seconds(small, 2, "bfloat16", load=3.0)
    (17.5, 70.0)
    >>> known = RoundWork(parameters=135_000_000, max_tokens=64, round_s=12.0)
    >>> seconds(known, 2, "bfloat16")
    (12.0, 12.0)
    >>> seconds(RoundWork(parameters=270_000_000, max_tokens=64), 2, "bfloat16", [known])
    (15.4, 44.0)
    >>> seconds(RoundWork(parameters=135_000_000, max_tokens=64, answer_s=1.5), 2, "bfloat16", [known])
    (19.2, 86.4)
    """
    if work.round_s is not None:
        return work.round_s, work.round_s
    if work.answer_s is not None:
        least, most = _LOOKED
        return round(least * _ANSWERS * work.answer_s, 2), round(most * _ANSWERS * work.answer_s, 2)
    telling = [one for one in others if one.round_s is not None and one.parameters >= _TELLING]
    factor, (least, most) = 1.0, (_KNOWN if telling else (_FREE, _BUSY))
    slower = 1.0 if telling else 1.0 + load / cores
    if telling:
        nearest = min(telling, key=lambda one: abs(one.parameters - work.parameters))
        assert nearest.round_s is not None
        factor = max(nearest.round_s - FIXED_S, 0.1) / _computing_s(nearest, cores, dtype)
    expected = slower * (FIXED_S + factor * _computing_s(work, cores, dtype))
    return round(least * expected, 2), round(most * expected, 2)


def look_s(work: RoundWork, round_s: tuple[float, float]) -> tuple[float, float] | None:
    """The least and the most seconds until the first look is over, where a round takes `round_s`; None where
    there is none to come.

    >>> look_s(RoundWork(parameters=1, max_tokens=1, looks=True), (7.0, 28.0))
    (42.0, 448.0)
    >>> look_s(RoundWork(parameters=1, max_tokens=1, looks=True, answer_s=0.2, answers=400), (7.0, 28.0))
    (10.0, 70.0)
    >>> look_s(RoundWork(parameters=1, max_tokens=1), (7.0, 28.0))
    """
    if not work.looks:
        return None
    if work.answer_s is None:
        return _LOOK_ROUNDS[0] * round_s[0], _LOOK_ROUNDS[1] * round_s[1]
    least, most = (round(max(1, count - work.answers) * work.answer_s, 2) for count in _LOOK_ANSWERS)
    return least, most


def _computing_s(work: RoundWork, cores: int, dtype: Dtype) -> float:
    slower = 2.0 if dtype == "float32" else 1.0
    share = _REFERENCE_CORES / min(cores, _MOST_CORES)
    return _REFERENCE_S * slower * share * work.parameters * work.max_tokens / _REFERENCE
