"""What a model reached, found in its records."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.node.history.milestones import (
    FirstSource,
    Milestone,
    MilestoneKind,
    family_milestones,
    select_notable,
    sources,
)
from app.node.record.records import GroupRow, Probe, Round
from app.sapo.questions import Coordinates


def milestones(
    rounds: Sequence[Round], curve: Sequence[Probe] = (), sources: Sequence[FirstSource] = ()
) -> list[Milestone]:
    return select_notable(family_milestones(rounds, sources), curve)


def played(round: int, **families: tuple[int, int, int]) -> Round:
    return Round(
        round=round, at=100.0 + round, seconds=1.0, informative_own=1, train_solved=0.5, families=families
    )


def probe(round: int, share: float) -> Probe:
    return Probe(round=round, at=100.0 + round, share=share, stderr=0.05)


def kinds(found: list[Milestone]) -> list[tuple[MilestoneKind, int, str]]:
    return [(one.kind, one.round, one.family) for one in found]


def test_a_first_answer_counts_only_where_all_were_wrong_before() -> None:
    rounds = [
        played(1, gcd=(0, 2, 8), lcm=(0, 0, 8)),
        played(2, lcm=(0, 0, 8)),
        played(3, lcm=(0, 1, 8)),
        played(4, lcm=(0, 3, 8)),
    ]
    (first,) = milestones(rounds)
    assert (first.kind, first.round, first.family, first.tried) == (MilestoneKind.FIRST, 3, "lcm", 16)
    assert kinds(family_milestones(rounds)) == [
        (MilestoneKind.FIRST, 1, "gcd"),
        (MilestoneKind.FIRST, 3, "lcm"),
    ], "Skills knows both"


def test_a_lesson_is_told_once_what_it_taught_is_practised() -> None:
    lesson = msgspec.structs.replace(
        played(2), lesson=96, lesson_families=("lcm", "dice"), lesson_from=("calm-crane-0002", "x")
    )
    rounds = [played(1, gcd=(0, 2, 8)), lesson, played(3, gcd=(0, 2, 8)), played(4, lcm=(0, 1, 8))]
    (learned,) = milestones(rounds)
    assert (learned.kind, learned.round, learned.family) == (MilestoneKind.LEARNED, 2, "lcm")
    assert learned.peer == "calm-crane-0002" and learned.at == lesson.at
    more = msgspec.structs.replace(lesson, round=5, lesson_families=("lcm", "gcd"))
    further = [*rounds, more, played(6, gcd=(0, 2, 8)), played(7, lcm=(0, 1, 8))]
    assert milestones(further) == [learned], "what it practised before was not learned there"


def test_who_showed_it_before_is_named_and_who_came_after_is_not() -> None:
    rounds = [played(1, lcm=(0, 0, 8)), played(5, lcm=(0, 1, 8))]
    shown = [
        FirstSource(round=2, family="lcm", peer="cosy-firefly"),
        FirstSource(round=4, family="lcm", peer="calm-otter"),
        FirstSource(round=5, family="lcm", peer="late-owl"),  # its round's own answers came first
        FirstSource(round=3, family="gcd", peer="other-family"),
    ]
    assert milestones(rounds, (), shown)[0].peer == "calm-otter"
    assert milestones(rounds, (), shown[2:])[0].peer == ""


def test_a_level_counts_once_and_not_again_after_a_step_back() -> None:
    rounds = [played(at, gcd=(level, 0, 4)) for at, level in enumerate((0, 1, 0, 1, 2), 1)]
    assert kinds(milestones(rounds)) == [(MilestoneKind.LEVEL, 2, "gcd"), (MilestoneKind.LEVEL, 5, "gcd")]
    assert [one.level for one in milestones(rounds)] == [1, 2]


def test_half_of_a_family_takes_enough_answers_at_one_level() -> None:
    few = [played(at, gcd=(0, 4, 4)) for at in range(1, 6)]
    assert MilestoneKind.HALF not in {one.kind for one in milestones(few)}, "20 answers say too little"
    before = [played(at, gcd=(0, 1, 8)) for at in range(1, 4)]
    risen = [*before, *(played(at, gcd=(0, 7, 8)) for at in range(4, 12))]
    assert kinds(milestones(risen)) == [(MilestoneKind.HALF, 6, "gcd")], "once: 1 + 1 + 7 + 7 + 7 of 40"
    assert milestones(risen[3:]) == [], "what it could from the beginning is none"
    moved = [played(1, gcd=(0, 8, 8)), played(2, gcd=(0, 8, 8)), played(3, gcd=(1, 8, 8))]
    assert MilestoneKind.HALF not in {one.kind for one in milestones(moved)}, "levels are not mixed"


def test_half_of_the_measurement_counts_where_an_earlier_one_was_below() -> None:
    risen = [probe(0, 0.2), probe(10, 0.5), probe(20, 0.6)]
    assert kinds(milestones([], risen)) == [(MilestoneKind.MEASURED_HALF, 10, "")]
    assert milestones([], [probe(0, 0.6), probe(10, 0.7)]) == []


def test_sources_keep_the_first_group_of_each_peer_and_family() -> None:
    def group(round: int, family: str, peer: str | None) -> GroupRow:
        return GroupRow(
            round=round, at=0.0, peer=peer,
            coordinates=Coordinates(family=family, level=0, seed=round, index=0),
            rewards_G=(1,), finished_G=(True,), scores_G=(1.0,), completions_G=("#1",),
        )  # fmt: skip

    known = (FirstSource(round=3, family="gcd", peer="a"),)
    found = sources(
        [group(5, "gcd", "a"), group(4, "lcm", "b"), group(2, "lcm", "b"), group(1, "gcd", None)], known
    )
    assert found == (FirstSource(round=2, family="lcm", peer="b"), FirstSource(round=3, family="gcd", peer="a"))
