"""Milestones, what a model reached and when: found in its records, so an old history tells as much as a
running node.

Chance is no milestone where it need not be: a family counts as solved for the first time only where answers to
it were all wrong before, and as half solved only over several rounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from app.node.record.records import GroupRow, Probe, Round

HALF = 0.5
LOOK, FEWEST = 5, 24
"""Rounds looked at together for half of a family, and the answers there must be in them."""


class MilestoneKind(Enum):
    FIRST = "first"
    """The first right answer to a family after wrong answers only."""
    LEVEL = "level"
    """A level higher than any before; `level` counts from 0."""
    HALF = "half"
    """Half of its practice answers to a family were right, for the first time."""
    LEARNED = "learned"
    """A family that it could not begin with, after a lesson of peers' answers; `round` is the lesson's."""
    MEASURED_HALF = "measured_half"
    """Half of the held-out questions, for the first time."""


class FirstSource(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """In this round the first group of this family by this peer was learned from."""

    round: int
    family: str
    peer: str


class Milestone(msgspec.Struct, frozen=True, kw_only=True):
    """`round` is where the answers behind it are; a measurement keeps none. `peer` is who taught it (LEARNED),
    or who showed a first answer's family before, which is not to say that it was the cause."""

    kind: MilestoneKind
    round: int
    at: float
    family: str = ""
    level: int = 0
    tried: int = 0
    """Wrong answers before a first right one."""
    peer: str = ""


def milestones(
    rounds: Iterable[Round], curve: Sequence[Probe] = (), sources: Sequence[FirstSource] = ()
) -> list[Milestone]:
    """In the order in which they came. `rounds` and `curve` are the oldest first."""
    return noted(reached(rounds, sources), curve)


def noted(reached: Iterable[Milestone], curve: Sequence[Probe]) -> list[Milestone]:
    """The milestones that deserve a note: those of these families, and of measurements."""
    found = [one for one in reached if one.kind is not MilestoneKind.FIRST or one.tried]
    if (half := _measured(curve)) is not None:
        found.append(half)
    return sorted(found, key=lambda one: (one.round, one.at))


def reached(rounds: Iterable[Round], sources: Sequence[FirstSource] = ()) -> list[Milestone]:
    """The milestones of every family: who taught it, its first right answer, whatever was before, the levels
    beyond the first seen, and half of its answers."""
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
            if (lesson := lessons.pop(family, None)) is not None:  # and it is practised now
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
    """The first group of each family and peer, with those that were known before."""
    first = {(one.family, one.peer): one for one in known}
    for group in groups:
        if group.peer is None:
            continue
        key = (group.family, group.peer)
        if key not in first or group.round < first[key].round:
            first[key] = FirstSource(round=group.round, family=group.family, peer=group.peer)
    return tuple(sorted(first.values()))


def _share(seen: Iterable[tuple[int, int, int]], level: int) -> float | None:
    """The share of right answers at this level; None while they are too few."""
    at_level = [counts for counts in seen if counts[0] == level]
    answered = sum(counts[2] for counts in at_level)
    return sum(counts[1] for counts in at_level) / answered if answered >= FEWEST else None


def _before(sources: Sequence[FirstSource], family: str, round: int) -> str:
    """The peer who showed this family last before this round; a round's own answers come before it learns from
    others."""
    found = [one for one in sources if one.family == family and one.round < round]
    return max(found, key=lambda one: one.round).peer if found else ""


def _measured(curve: Sequence[Probe]) -> Milestone | None:
    """The first measurement of at least a half, where an earlier one was below."""
    for place, probe in enumerate(curve):
        if probe.share >= HALF:
            return (
                Milestone(kind=MilestoneKind.MEASURED_HALF, round=probe.round, at=probe.at) if place else None
            )
    return None
