"""How fast a model will learn here, before it has played a round: an estimate from its size.

The work of a round grows with parameters times tokens. The constants are those of a round of SmolLM2 135M
(8 questions, 8 answers) on two cores in 16 bits; where a model of some size has played rounds on this very
computer, its seconds take their place.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engines.models.needs import Dtype

FIXED_S = 2.0
"""The seconds that every round takes, whatever the model: drawing, scoring, saving."""
_REFERENCE = 135e6 * 64
_REFERENCE_S = 5.0
_REFERENCE_CORES = 2
_MOST_CORES = 8
"""More bring little more."""
_TELLING = 50e6
"""Parameters from which on a model's own rounds tell how long those of others take."""


class RoundWork(msgspec.Struct, frozen=True, kw_only=True):
    """`round_s` is what a round took here so far, None before the first."""

    parameters: int
    max_tokens: int
    round_s: float | None = None


def seconds(work: RoundWork, cores: int, dtype: Dtype, others: Iterable[RoundWork] = ()) -> float:
    """The seconds of a round: as measured, or estimated.

    >>> small = RoundWork(parameters=135_000_000, max_tokens=64)
    >>> seconds(small, 2, "bfloat16"), seconds(small, 4, "float32")
    (7.0, 7.0)
    >>> known = RoundWork(parameters=135_000_000, max_tokens=64, round_s=12.0)
    >>> seconds(RoundWork(parameters=270_000_000, max_tokens=64), 2, "bfloat16", [known])
    22.0
    """
    if work.round_s is not None:
        return work.round_s
    telling = [one for one in others if one.round_s is not None and one.parameters >= _TELLING]
    factor = 1.0
    if telling:
        nearest = min(telling, key=lambda one: abs(one.parameters - work.parameters))
        assert nearest.round_s is not None
        factor = max(nearest.round_s - FIXED_S, 0.1) / _computing_s(nearest, cores, dtype)
    return round(FIXED_S + factor * _computing_s(work, cores, dtype), 2)


def _computing_s(work: RoundWork, cores: int, dtype: Dtype) -> float:
    slower = 2.0 if dtype == "float32" else 1.0
    share = _REFERENCE_CORES / min(cores, _MOST_CORES)
    return _REFERENCE_S * slower * share * work.parameters * work.max_tokens / _REFERENCE
