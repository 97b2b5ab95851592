"""Milestones: what a model achieved and when. They are derived from its records, so old histories have them
too.

Chance results are excluded where possible: a family counts as first solved only after wrong answers, and as
half solved only over several rounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from app.node.record.records import GroupRow, Probe, Round

HALF = 0.5
LOOK, FEWEST = 5, 24
"""LOOK: number of rounds over which half of a family is measured. FEWEST: minimum answers in them."""


class MilestoneKind(Enum):
    FIRST = "first"
    """The first right answer to a family after wrong answers only."""
    LEVEL = "level"
    """A level higher than any before; `level` counts from 0."""
    HALF = "half"
    """Half of the practice answers to a family were right for the first time."""
    LEARNED = "learned"
    """A family was opened by a lesson of peers' answers; `round` is the lesson's."""
    MEASURED_HALF = "measured_half"
    """Half of the held-out questions were solved for the first time."""


class FirstSource(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The first round that learned from a group of this family by this peer."""

    round: int
    family: str
    peer: str


class Milestone(msgspec.Struct, frozen=True, kw_only=True):
    """Something reached in `round`, by its answers or by the measurement after it (whose answers are not
    stored). `peer`: who taught it (LEARNED), or whose group of the family was the last one learned from before
    the first right answer, which need not be the cause."""

    kind: MilestoneKind
    round: int
    at: float
    family: str = ""
    level: int = 0
    tried: int = 0
    """Number of wrong answers before the first right one."""
    peer: str = ""


def select_notable(reached: Iterable[Milestone], curve: Sequence[Probe]) -> list[Milestone]:
    """Selects the milestones worth showing from those of the families (`reached`), and adds those of
    measurements (`curve`, oldest first). In order of time."""
    found = [one for one in reached if one.kind is not MilestoneKind.FIRST or one.tried]
    if (half := _measured(curve)) is not None:
        found.append(half)
    return sorted(found, key=lambda one: (one.round, one.at))


def family_milestones(rounds: Iterable[Round], sources: Sequence[FirstSource] = ()) -> list[Milestone]:
    """Returns the milestones of every family: lessons that opened it, its first right answer (even without
    earlier wrong ones), new highest levels, and half of its answers right."""
    found: list[Milestone] = []
    tried: dict[str, int] = {}
    highest: dict[str, int] = {}
    recent: dict[str, deque[tuple[int, int, int]]] = {}
    half: set[str] = set()
    below: set[str] = set()
    lessons: dict[str, Round] = {}
    for one in rounds:
        for family, (level, solved, answered) in one.families.items():
            where = {"round": one.round, "at": one.at, "family": family, "level": level}
            lesson = lessons.pop(family, None)
            if lesson is not None and family not in highest:  # it is practised now, and never was before
                taught = {"round": lesson.round, "at": lesson.at, "peer": lesson.lesson_from[0]}
                found.append(Milestone(kind=MilestoneKind.LEARNED, **where | taught))  # type: ignore[arg-type]
            before = tried.get(family, 0)
            if solved and before >= 0:
                peer = _before(sources, family, one.round) if before else ""
                found.append(Milestone(kind=MilestoneKind.FIRST, tried=before, peer=peer, **where))  # type: ignore[arg-type]
                tried[family] = -1  # it has had its first
            elif before >= 0:
                tried[family] = before + answered
            if level > highest.setdefault(family, level):
                highest[family] = level
                found.append(Milestone(kind=MilestoneKind.LEVEL, **where))  # type: ignore[arg-type]
            if family in half:
                continue
            seen = recent.setdefault(family, deque(maxlen=LOOK))
            seen.append((level, solved, answered))
            share = _share(seen, level)
            if share is None or share < HALF:
                below |= {family} if share is not None else set()
                continue
            half.add(family)
            if family in below:  # else it could from the beginning
                found.append(Milestone(kind=MilestoneKind.HALF, **where))  # type: ignore[arg-type]
        if one.lesson_from:
            lessons |= dict.fromkeys(one.lesson_families, one)
    return found


def sources(groups: Iterable[GroupRow], known: Sequence[FirstSource] = ()) -> tuple[FirstSource, ...]:
    """Returns, for each family and peer, the first round that learned from such a group, combined with those
    already `known`."""
    first = {(one.family, one.peer): one for one in known}
    for group in groups:
        if group.peer is None:
            continue
        key = (group.family, group.peer)
        if key not in first or group.round < first[key].round:
            first[key] = FirstSource(round=group.round, family=group.family, peer=group.peer)
    return tuple(sorted(first.values()))


def _share(seen: Iterable[tuple[int, int, int]], level: int) -> float | None:
    """Returns the share of right answers at this level; None if there are fewer than FEWEST answers."""
    at_level = [counts for counts in seen if counts[0] == level]
    answered = sum(counts[2] for counts in at_level)
    return sum(counts[1] for counts in at_level) / answered if answered >= FEWEST else None


def _before(sources: Sequence[FirstSource], family: str, round: int) -> str:
    """Returns the peer who last showed this family before `round`, empty if none. The round's own answers are
    given before it learns from others."""
    found = [one for one in sources if one.family == family and one.round < round]
    return max(found, key=lambda one: one.round).peer if found else ""


def _measured(curve: Sequence[Probe]) -> Milestone | None:
    """Returns the milestone of the first measurement of at least one half; None if it is the very first one."""
    for place, probe in enumerate(curve):
        if probe.share >= HALF:
            return (
                Milestone(kind=MilestoneKind.MEASURED_HALF, round=probe.round, at=probe.at) if place else None
            )
    return None
