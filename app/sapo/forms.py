"""Limits how peer groups can change the style ("form") of answers, such as length and shown work, as opposed to
their correctness.

A peer can bias style with correct data alone, for example by pairing right answers without work with wrong
answers that show work. To first order (natural gradient), pushing the log-probs of answers by `push_G` moves
the policy's mean of a style feature f by `sum_g push_g (f_g - mean f of own answers)`. A peer group may move a
feature only in the direction in which the node's own groups move it; otherwise its effect on that feature is
projected out. Pure functions. Shapes: `_G` completions, `_F` FORM_FIGURES.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.sapo.asking import shows_work

FORM_FIGURES = ("worked", "tokens", "logprob")
"""Style features: whether work is shown, length in tokens, and mean token log-prob under the learner."""
MIN_GROUPS = 16.0
"""With fewer recent own groups than this, a feature whose direction is unknown may be moved by peers: a learner
that solves almost nothing has little to lose and gains most from peers."""
DECAY = 0.9
"""Factor on the trend's sums in each round."""
SURE_ERRORS = 2.0  # standard errors: about 95 %
_PASSES = 60  # projections converge in far fewer
_NOTHING = 1e-12  # a length that rounding makes of zero
MIN_PUSH_KEPT = 0.1
"""A right answer counts as rejected if less than this share of its push is left after projection."""

Form = tuple[float, ...]
"""`form_F`: the FORM_FIGURES of an answer."""


def answer_form(text: str, tokens: int, logprob: float) -> Form:
    """Returns the style features of one answer.

    >>> answer_form("4-1=3 #3", 8, -0.5), answer_form("#3", 3, -1.0)
    ((1.0, 8.0, -0.5), (0.0, 3.0, -1.0))
    """
    return float(shows_work(text)), float(tokens), logprob


def mean_form(forms_S: Sequence[Form]) -> Form | None:
    """Returns the mean form of own answers; None without answers.

    >>> mean_form([(1.0, 8.0, -0.5), (0.0, 4.0, -1.5)])
    (0.5, 6.0, -1.0)
    """
    return tuple(sum(column) / len(forms_S) for column in zip(*forms_S, strict=True)) or None


def form_shift(push_G: Sequence[float], apart_GF: Sequence[Form]) -> tuple[float, ...]:
    """Returns how far a group moves the policy's mean of every feature. `apart_GF`: the answers' forms minus
    the own mean.

    >>> form_shift([0.5, -0.5], [(0.5, 3.0, 0.0), (-0.5, -1.0, 0.0)])
    (0.5, 2.0, 0.0)
    """
    return tuple(
        sum(push * value for push, value in zip(push_G, column, strict=True))
        for column in zip(*apart_GF, strict=True)
    )


FeatureDirections = tuple[int | None, ...]
"""`signs_F`: direction in which own groups move each feature, 0 for neither, None if unknown."""


class FormTrend(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of the direction in which own groups move each feature: exponentially decayed count of groups,
    and decayed sums of their shifts and squared shifts."""

    groups: float = 0.0
    sums_F: tuple[float, ...] = (0.0,) * len(FORM_FIGURES)
    squares_F: tuple[float, ...] = (0.0,) * len(FORM_FIGURES)

    @property
    def signs_F(self) -> FeatureDirections:
        """The direction (1 or -1) in which own groups move each feature, if its sum exceeds SURE_ERRORS
        standard errors, as chance alone does in one case of 22; else 0, or None with fewer than MIN_GROUPS.

        >>> figures = dict(sums_F=(6.0, -6.0, 3.0), squares_F=(4.0, 4.0, 4.0))
        >>> FormTrend(groups=20.0, **figures).signs_F, FormTrend(groups=9.0, **figures).signs_F
        ((1, -1, 0), (1, -1, None))
        """
        unknown = None if self.groups < MIN_GROUPS else 0
        return tuple(
            (1 if total > 0 else -1) if total * total > SURE_ERRORS**2 * squares else unknown
            for total, squares in zip(self.sums_F, self.squares_F, strict=True)
        )


def update_trend(pays: FormTrend, moved_PF: Sequence[Sequence[float]]) -> FormTrend:
    """Returns the trend after a round whose own groups have the shifts `moved_PF`.

    >>> update_trend(FormTrend(sums_F=(1.0, 0.0, 0.0)), [(0.5, 2.0, 0.0), (0.5, -2.0, 0.0)])
    FormTrend(groups=2.0, sums_F=(1.9, 0.0, 0.0), squares_F=(0.5, 8.0, 0.0))
    """
    columns_F = list(zip(*moved_PF, strict=True)) or [()] * len(FORM_FIGURES)
    return FormTrend(
        groups=DECAY * pays.groups + len(moved_PF),
        sums_F=tuple(DECAY * old + sum(new) for old, new in zip(pays.sums_F, columns_F, strict=True)),
        squares_F=tuple(
            DECAY * old + sum(one * one for one in new)
            for old, new in zip(pays.squares_F, columns_F, strict=True)
        ),
    )


def project_push(push_G: Sequence[float], apart_GF: Sequence[Form], signs_F: FeatureDirections) -> list[float]:
    """Returns the nearest push that moves no feature against own groups and flips no sign: right answers are
    never discouraged, wrong ones never encouraged, and what was not pushed is unchanged.

    A feature of sign 0 must not move, one of None is free. If own groups reward work, nothing is left of a push
    towards right answers without work and away from wrong ones with work; the opposite push is unchanged.
    Alternating projections onto convex sets (Bregman 1965).

    >>> worked, direct = (0.5,), (-0.5,)
    >>> pushed = [direct, direct, worked, worked]
    >>> pushes = ([0.5, 0.5, -0.5, -0.5], [-0.5, -0.5, 0.5, 0.5])
    >>> [[round(push, 2) for push in project_push(push_G, pushed, (1,))] for push_G in pushes]
    [[0.0, 0.0, 0.0, 0.0], [-0.5, -0.5, 0.5, 0.5]]
    """
    axes_F = [
        [value if push else 0.0 for value, push in zip(column, push_G, strict=True)]
        for column in zip(*apart_GF, strict=True)
    ]
    sizes_F = [sum(value * value for value in axis) for axis in axes_F]
    now = list(push_G)
    for _ in range(_PASSES):
        for axis, size, sign in zip(axes_F, sizes_F, signs_F, strict=True):
            along = sum(a * b for a, b in zip(now, axis, strict=True))
            if sign is not None and size > _NOTHING and along * sign <= 0.0:
                now = [a - along / size * b for a, b in zip(now, axis, strict=True)]
        now = [a if a * push > 0.0 else 0.0 for a, push in zip(now, push_G, strict=True)]
    return now
