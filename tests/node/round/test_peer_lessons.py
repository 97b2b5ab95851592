"""Peer lessons in a whole node around a fake engine: a family joins, or everything is as it was before."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.learning import peer_lesson
from app.learning.choosing import PeerGroup
from app.node.history import checkpoint
from app.node.record import events
from app.node.record.records import Round
from app.node.round import placing
from app.sapo.groups import Group, ScoredGroup
from app.sapo.questions import draw
from tests.e2e.contract import event_misfits
from tests.node.bench import Bench, of, rows
from tests.node.round.test_peers import Shelf
from tests.node.round.test_placing import kept

FAMILIES = {"chain_sum": 0, "basic_arithmetic": 0, "gcd": 0}
AUTHORS = ("brisk-otter-0001", "calm-crane-0002")


@pytest.fixture(autouse=True)
def _pupil(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can add, behind examples at first; the one family that it is placed at leaves the others waiting."""
    monkeypatch.setenv("FAKE_TROUBLE", "needs examples")
    monkeypatch.setattr(placing.placement, "MOST_FAMILIES", 1)
    monkeypatch.setattr(peer_lesson, "ANSWERS", 24)


def waiting(family: str, count: int = 30) -> list[PeerGroup]:
    """Groups of two authors with one right answer and a wrong one each."""
    groups = []
    for number in range(count):
        question = draw(family, 0, 2**42 + number)
        group = Group(
            coordinates=question.coordinates,
            completions_G=(f"#{question.entry['answer']}", "#"),
            finished_G=(True, True),
            model="other",
        )
        author = AUTHORS[number % 2]
        groups.append(
            PeerGroup(
                id=f"{family}{number}",
                key=author,
                peer=author,
                question=question.text,
                scored=ScoredGroup(group=group, scores_G=(1.0, 0.0), rewards_G=(1, 0)),
            )
        )
    return groups


def shelf() -> Shelf:
    """A swarm with waiting groups of every candidate."""
    swarm = Shelf([])
    swarm.waiting = [one for family in FAMILIES for one in waiting(family)]
    return swarm


def test_a_family_that_peers_can_solve_is_taught_tried_and_joins(bench: Bench) -> None:
    swarm = shelf()
    seen = bench.run(rounds=4, place=True, families=FAMILIES, swarm=swarm, external=2)
    (placed,) = of(events.Placed, seen)
    (learned, *_) = skills = of(events.SkillLearned, seen)
    assert len(skills) == 1 and learned.family in {"chain_sum", "basic_arithmetic"} - set(placed.families)
    assert set(learned.authors) == set(AUTHORS) and learned.answers == 30 and learned.level == 0
    assert learned.after >= peer_lesson.OPENS_ANY / 4 and learned.answer.startswith("#")
    told = msgspec.json.decode(msgspec.json.encode(learned))
    assert event_misfits(told) == [] and told["from"] == list(learned.authors)
    (lesson,) = [one for one in of(Round, seen) if one.lesson_from]
    assert learned.family in lesson.lesson_families and lesson.lesson > 30 * len(lesson.lesson_families), (
        "own ones too"
    )
    assert set(lesson.lesson_from) == set(AUTHORS) and lesson.own_groups == 0
    assert set(swarm.wanted) <= set(FAMILIES) - {learned.family}
    assert kept(bench).joined == {learned.family: 0} and learned.family in swarm.practised
    assert len(swarm.taught) == 30 and all(id.startswith(learned.family) for id in swarm.taught)
    ((sentence,),) = rows(bench, "SELECT sentence FROM events WHERE kind = 'skill'")
    assert sentence.endswith(" and 1 more.") and any(author in sentence for author in AUTHORS)
    assert learned.family in of(Round, seen)[-1].families or len(of(Round, seen)) == 4


def test_a_lesson_that_opens_nothing_leaves_the_adapter_and_the_rounds_as_they_were(
    bench: Bench, tmp_path: Path
) -> None:
    swarm = Shelf([])
    swarm.waiting = waiting("gcd")
    families = {"chain_sum": 0, "gcd": 0}
    seen = bench.run(rounds=3, place=True, families=families, swarm=swarm)
    assert not of(events.SkillLearned, seen) and not swarm.taught
    (result,) = kept(bench).lessons
    assert (result.family, result.opened, result.failures) == ("gcd", False, 1)
    assert [one.round for one in of(Round, seen)] == [1, 2, 3]
    (tmp_path / "alone").mkdir()
    alone = Bench(tmp_path / "alone")
    alone.run(rounds=3, place=True, families=families, swarm=Shelf([]))
    query = "SELECT round, seed, rewards, completions FROM groups ORDER BY round, position"
    assert rows(bench, query) == rows(alone, query), "the rounds went on as if nothing had been taught"
    adapters = [
        (checkpoint.newest_first(next(one.home.glob("models/*/checkpoints")))[0] / "adapter.json").read_text()
        for one in (bench, alone)
    ]
    assert adapters[0] == adapters[1]


def test_what_a_lesson_brought_outlasts_the_node(bench: Bench) -> None:
    swarm = shelf()
    first = bench.run(rounds=3, place=True, families=FAMILIES, swarm=swarm)
    (learned,) = of(events.SkillLearned, first)
    again = bench.run(rounds=1, place=True, families=FAMILIES, swarm=Shelf([]))
    assert learned.family in of(events.Started, again)[0].families


def test_a_lesson_that_costs_everyday_language_is_taken_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "forgets to speak")  # each step makes its replies less likely
    swarm = shelf()
    seen = bench.run(rounds=3, place=True, families=FAMILIES, swarm=swarm, external=2)
    assert not of(events.SkillLearned, seen) and not any(one.lesson_from for one in of(Round, seen))
    assert kept(bench).lessons and not any(one.opened for one in kept(bench).lessons)
    assert all(one.failures == 1 for one in kept(bench).lessons) and not swarm.taught
