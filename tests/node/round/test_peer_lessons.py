"""Peer lessons in a whole node around a fake engine: a family joins, or everything is as it was before."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.learning import peer_lesson
from app.node import training_run
from app.node.history import checkpoint
from app.node.record import events
from app.node.record.records import Probe, Round
from app.node.record.state import NodeState
from app.node.round import placing, teaching
from app.node.round.lesson_progress import LessonFolder, LessonInProgress
from app.node.round.round import PlayedRound
from app.node.trainer.link import TrainerDied, TrainerLink
from app.sapo.groups import GroupRecord
from app.sapo.questions import draw
from tests.e2e.contract import event_misfits
from tests.node.bench import Bench, of, rows
from tests.node.round.test_peers import Shelf
from tests.node.round.test_placing import kept
from tests.node.ruled import trainers

FAMILIES = {"chain_sum": 0, "basic_arithmetic": 0, "gcd": 0}
AUTHORS = ("brisk-otter-0001", "calm-crane-0002")


@pytest.fixture(autouse=True)
def _pupil(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can add, behind examples at first; the one family that it is placed at leaves the others waiting."""
    monkeypatch.setenv("FAKE_TROUBLE", "needs examples")
    monkeypatch.setattr(placing.placement, "MAX_STARTING_FAMILIES", 1)
    monkeypatch.setattr(peer_lesson, "MIN_PEER_ANSWERS", 24)


def waiting(family: str, count: int = 30) -> list[GroupRecord]:
    """Groups of two authors with one right answer and a wrong one each."""
    groups = []
    for number in range(count):
        question = draw(family, 0, 2**42 + number)
        group = GroupRecord(
            coordinates=question.coordinates,
            completions_G=(f"#{question.entry['answer']}", "#"),
            finished_G=(True, True),
            model="other",
        )
        author = AUTHORS[number % 2]
        groups.append(
            msgspec.structs.replace(
                group.with_scores((1.0, 0.0), (1, 0)),
                id=f"{family}{number}",
                key=author,
                author=author,
                question=question.text,
            )
        )
    return groups


def shelf() -> Shelf:
    """A swarm with waiting groups of every candidate."""
    swarm = Shelf([])
    swarm.waiting = [one for family in FAMILIES for one in waiting(family)]
    return swarm


def test_a_family_that_peers_can_solve_is_taught_tried_and_joins(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_lesson, "FINISHED_SHARE", 0.5)
    swarm = shelf()
    seen = bench.run(rounds=4, place=True, families=FAMILIES, swarm=swarm, external=2)
    (placed,) = of(events.PlacementDone, seen)
    (learned, *_) = skills = of(events.SkillLearned, seen)
    assert len(skills) == 1 and learned.family in {"chain_sum", "basic_arithmetic"} - set(placed.families)
    assert set(learned.authors) == set(AUTHORS) and learned.answers == 30 and learned.level == 0
    assert learned.after >= peer_lesson.OPENS_SOLVED_SHARE / 4 and learned.answer.startswith("#")
    told = msgspec.json.decode(msgspec.json.encode(learned))
    assert event_misfits(told) == [] and told["from"] == list(learned.authors)
    (lesson,) = [one for one in of(Round, seen) if one.lesson_from]
    assert learned.family in lesson.lesson_families and lesson.lesson > 30 * len(lesson.lesson_families), (
        "own ones too"
    )
    assert set(lesson.lesson_from) == set(AUTHORS) and lesson.own_groups == 0
    assert lesson.taken == 30 * len(lesson.lesson_families)
    assert set(swarm.wanted) <= set(FAMILIES) - {learned.family}
    assert kept(bench).joined == {learned.family: 0} and learned.family in swarm.practised
    assert len(swarm.taught) == 30 and all(id.startswith(learned.family) for id in swarm.taught)
    ((sentence,),) = rows(bench, "SELECT sentence FROM events WHERE kind = 'skill'")
    assert sentence.endswith(f" and 1 more. It began with “{learned.answer}”.") and any(
        author in sentence for author in AUTHORS
    )
    assert learned.family in of(Round, seen)[-1].families or len(of(Round, seen)) == 4


def test_groups_that_are_displaced_while_a_slow_lesson_runs_are_shown_and_thanked_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    swarm = shelf()
    teach = training_run.teach_from_peers

    async def slow(*args: Any) -> PlayedRound:
        played = await teach(*args)
        swarm.waiting = []  # what came meanwhile displaced them
        return played

    monkeypatch.setattr(training_run, "teach_from_peers", slow)
    (learned, *_) = of(
        events.SkillLearned,
        bench.run(rounds=4, place=True, families=FAMILIES, swarm=swarm, external=2),
    )
    shown = rows(bench, "SELECT DISTINCT peer, family FROM groups WHERE source = 'peer' ORDER BY peer")
    assert shown == [(author, learned.family) for author in AUTHORS] and len(swarm.taught) == 30


@pytest.mark.parametrize("ends", ["the trainer dies", "the disk is full", "another round"])
def test_a_lesson_that_was_interrupted_goes_on_where_it_was(
    ends: str, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teaching, "RECOVERY_STEPS", 2)
    save, saved = LessonFolder.save, list[int]()

    async def interrupted(
        self: LessonFolder, link: TrainerLink, state: NodeState, lesson: LessonInProgress
    ) -> None:
        saved.append(lesson.steps)
        if ends == "another round":
            state = msgspec.structs.replace(state, saved_at=state.saved_at - 1)
        await save(self, link, state, lesson)
        if len(saved) == 2:
            for trainer in trainers():
                trainer.kill()
            raise TrainerDied("It died.", "")

    def seal(unfinished: Path, model: str, state: NodeState) -> None:
        if ends == "the disk is full" and unfinished.parent.name == checkpoint.LESSON_FOLDER:
            raise OSError(errno.ENOSPC, "")
        real_seal(unfinished, model, state)

    real_seal = checkpoint.seal
    options = {"place": True, "families": FAMILIES, "external": 2, "rounds": 3}
    whole = Bench(tmp_path)
    (tmp_path / "cut").mkdir()
    cut = Bench(tmp_path / "cut")
    first = whole.run(swarm=shelf(), **options)
    monkeypatch.setattr(LessonFolder, "save", interrupted)
    monkeypatch.setattr(checkpoint, "seal", seal)
    seen = cut.run(swarm=shelf(), **options)
    assert saved[:3] == [2, 4, 6 if ends == "the trainer dies" else 2]
    (lesson, again) = ([one for one in of(Round, some) if one.lesson_from] for some in (first, seen))
    assert [(one.round, one.lesson, one.peers) for one in again] == [
        (one.round, one.lesson, one.peers) for one in lesson
    ]
    assert whole.steps(3) == cut.steps(3)
    (left,) = cut.home.glob("models/*/lesson/*")
    assert left.name == "trial.json", "which the next lesson begins with"


def test_a_family_that_is_still_weak_is_taught_again_and_told_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_lesson, "FINISHED_SHARE", 2.0)
    swarm = shelf()
    seen = bench.run(rounds=6, place=True, families=FAMILIES, swarm=swarm, external=2)
    (learned,) = of(events.SkillLearned, seen)
    (result,) = [one for one in kept(bench).lessons if one.family == learned.family]
    first, again = [one.round for one in of(Round, seen) if one.lesson_from]
    assert again >= first + peer_lesson.ROUNDS_AFTER_GAIN and result.round == again - 1
    assert result.opened and result.failures == 1, "it knew all of that by then, and lost nothing by it"
    assert kept(bench).joined == {learned.family: 0}
    assert learned.family in swarm.wanted and learned.family not in swarm.practised


def test_a_model_that_names_its_families_is_taught_others_and_keeps_its_curve(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the starter does, which has no first look."""
    monkeypatch.setattr(peer_lesson, "FINISHED_SHARE", 0.5)
    swarm, named, others = shelf(), {"chain_sum": 0}, {"basic_arithmetic": 0, "gcd": 0}
    seen = bench.run(rounds=3, families=named, others=others, swarm=swarm, external=2)
    (learned,) = of(events.SkillLearned, seen)
    assert learned.family == "basic_arithmetic" and not of(events.PlacementDone, seen)
    assert swarm.practised == ("chain_sum", "basic_arithmetic") and set(swarm.wanted) <= {"gcd"}
    shown = rows(bench, "SELECT DISTINCT peer, family FROM groups WHERE source = 'peer' ORDER BY peer")
    assert shown == [(author, "basic_arithmetic") for author in AUTHORS], "the answers that began it"
    again = bench.run(rounds=1, families=named, others=others, swarm=Shelf([]))
    assert set(of(events.Started, again)[0].families) == {"chain_sum", "basic_arithmetic"}
    (mark,) = {one.questions_mark for one in of(Probe, [*seen, *again])}
    assert mark and kept(bench).families == named


def test_questions_that_a_model_cannot_read_end_no_node(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TOO_LONG", "Sort these numbers")
    swarm = shelf()
    swarm.waiting += waiting("number_sorting")
    others = {"basic_arithmetic": 0, "number_sorting": 0}
    seen = bench.run(rounds=3, families={"chain_sum": 0}, others=others, swarm=swarm)
    assert [one.family for one in of(events.SkillLearned, seen)] == ["basic_arithmetic"]
    assert [one.round for one in of(Round, seen)][-1] == 3
    failed = [one for one in kept(bench).lessons if one.family == "number_sorting"]
    assert [one.failures for one in failed] == [1], "it waits"


def test_a_lesson_that_opens_nothing_leaves_the_adapter_and_the_rounds_as_they_were(
    bench: Bench, tmp_path: Path
) -> None:
    swarm = Shelf([])
    swarm.waiting = waiting("gcd")
    families = {"chain_sum": 0, "gcd": 0}
    seen = bench.run(rounds=3, place=True, families=families, swarm=swarm)
    assert not of(events.SkillLearned, seen) and not swarm.taught
    assert sum("as it was before it" in note.sentence for note in of(events.NodeNote, seen)) == 1
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


def test_a_lesson_that_costs_too_much_of_the_rest_is_taken_back_and_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_lesson, "MAX_OWN_LOSS", -2.0)
    monkeypatch.setattr(peer_lesson, "NOISE_ERRORS", -1000.0)
    seen = bench.run(rounds=3, place=True, families=FAMILIES, swarm=shelf(), external=2)
    assert not of(events.SkillLearned, seen) and not kept(bench).joined
    (note,) = [one for one in of(events.NodeNote, seen) if "cost too much of the rest" in one.sentence]
    assert note.round > 0 and not any(one.lesson_from for one in of(Round, seen))


def test_a_lesson_that_costs_everyday_language_is_taken_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "forgets to speak")  # each step makes its replies less likely
    swarm = shelf()
    seen = bench.run(rounds=3, place=True, families=FAMILIES, swarm=swarm, external=2)
    assert not of(events.SkillLearned, seen) and not any(one.lesson_from for one in of(Round, seen))
    assert kept(bench).lessons and not any(one.opened for one in kept(bench).lessons)
    assert all(one.failures == 1 for one in kept(bench).lessons) and not swarm.times_taught
