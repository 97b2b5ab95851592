"""The way a model's fish looks like: a pure function of what the model can do. Nothing makes it shrink but a
model that can do less; nothing makes it grow but one that can do more."""

from __future__ import annotations

import msgspec

from app.ui.language.texts import counted, number, tr
from app.ui.view.view import View

MOST_STRIPES = 6
_FRY = 0.42
"""Length of one that solves nothing, of the longest."""
_FINS = (1, 3, 6, 10)
"""Levels climbed for each further fin."""
_MOSTLY = 0.5


class Fish(msgspec.Struct, frozen=True, kw_only=True):
    """`length` is a share of the longest; `fins` are those on its back, `stripes` those on its side."""

    length: float = _FRY
    fins: int = 0
    stripes: int = 0


def grown(solved: float | None, climbed: int, mastered: int) -> Fish:
    """The fish of a model that solves this share of new puzzles, has climbed so many levels in all, and solves
    at least half of the new puzzles of so many families. The length says the share, the fins the levels, the
    stripes the families.

    >>> grown(None, 0, 0)
    Fish(length=0.42, fins=0, stripes=0)
    >>> grown(0.5, climbed=4, mastered=3)
    Fish(length=0.71, fins=2, stripes=3)
    >>> grown(1.0, climbed=40, mastered=55)
    Fish(length=1.0, fins=4, stripes=6)
    """
    return Fish(
        length=round(_FRY + (1 - _FRY) * min(1.0, max(0.0, solved or 0.0)), 3),
        fins=sum(climbed >= least for least in _FINS),
        stripes=min(MOST_STRIPES, mastered),
    )


def now(view: View) -> Fish:
    """As the model is."""
    return grown(view.curve[-1].share if view.curve else None, climbed(view), len(mastered(view)))


def climbed(view: View) -> int:
    """Levels reached beyond those where its families began."""
    return sum(milestone.level > 0 for family in view.families for milestone in family.milestones)


def mastered(view: View) -> list[str]:
    """Titles of the families of which it solves at least half, the best first."""
    found = [family for family in view.families if family.latest is not None and family.latest >= _MOSTLY]
    return [family.title for family in sorted(found, key=lambda one: -(one.latest or 0.0))]


def told(view: View) -> str:
    """The fish in words."""
    share, levels, titles = view.curve[-1].share if view.curve else None, climbed(view), mastered(view)
    if share is None:
        return tr("A small fish. It grows once your model has been measured.")
    said = tr("It is as long as your model is good: {n} of 100 new puzzles.", n=number(100 * share))
    if titles:
        said += " " + tr("Stripes, for what it mostly solves: {families}.", families=", ".join(titles[:6]))
    if levels:
        said += " " + counted("Fins: {n} level climbed.", "Fins: {n} levels climbed.", levels)
    return said
