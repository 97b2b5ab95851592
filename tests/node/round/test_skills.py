"""Skills in a whole node around a fake engine: the skill lesson in parts, rounds, turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.learning import skill_lesson
from app.node import node
from app.node.data import question_sets
from app.node.data.home import SKILLS
from app.node.history.measured import read_best
from app.node.models.skills import find_skill, known_skills
from app.node.record import events
from app.node.record.errors import NodeError
from app.node.record.records import Probe, Round
from app.sapo.sets.checks import Rule
from app.sapo.sets.question_set import QuestionSet, Row, family
from app.skills.skill import Skill
from tests.node.bench import Bench, of

ELEMENTS = QuestionSet(
    name="Elements", rule=Rule(), rows=tuple(Row(question=f"Element {n}?", answer=f"E{n}") for n in range(40))
)
COLOURS = QuestionSet(
    name="Colours", rule=Rule(), rows=tuple(Row(question=f"Colour {n}?", answer=f"C{n}") for n in range(12))
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.sets = [question_sets.add(made.home, one).file for one in (ELEMENTS, COLOURS)]
    made.skills = [Skill(ELEMENTS)]
    return made


def folder(bench: Bench, made: QuestionSet = ELEMENTS) -> Path:
    (found,) = bench.home.glob(f"models/*/{SKILLS}/*-{made.mark}")
    return found


def test_a_skill_is_taught_in_parts_measured_as_it_is_asked_and_then_practised(bench: Bench) -> None:
    """The fake engine's losses never fall, so the lesson ends one pass after the planned ones."""
    taught, aside = skill_lesson.split_rows(len(Skill(ELEMENTS).examples), ELEMENTS.family_name)
    passes = skill_lesson.planned_passes(len(taught)) + 1
    seen = bench.run(rounds=passes + 2)
    lessons = [row.lesson for row in of(Round, seen)]
    assert lessons == [len(taught)] * passes + [0, 0] and len(taught) + len(aside) == 32
    points = of(Probe, seen)
    assert [point.round for point in points] == list(range(passes + 3))
    assert {point.questions for point in points} == {len(family(ELEMENTS).held_out or ())}
    assert not list(bench.home.glob("models/*/checkpoints")), "puzzles have learned nothing"
    measured = read_best(folder(bench))
    assert measured is not None and len(measured.answers) == 8 and measured.answers[0].sure is not None


def test_a_lesson_that_was_cut_off_goes_on_with_its_next_part(bench: Bench) -> None:
    bench.run(lambda event: isinstance(event, events.CheckpointSaved) and event.round == 10, rounds=19)
    seen = bench.run(rounds=2)
    assert [(row.round, row.lesson > 0) for row in of(Round, seen)] == [(11, True), (12, False)]


def test_a_set_that_is_added_later_is_taught_at_once_and_puzzles_stay_as_they_are(bench: Bench) -> None:
    elements, bench.skills = bench.skills, ()
    bench.run(rounds=3)
    (puzzles,) = bench.home.glob("models/*/checkpoints/round-000003")
    before = {file.name: file.read_bytes() for file in puzzles.iterdir()}
    bench.skills = elements
    first, *_ = of(Round, bench.run(rounds=2))
    assert (first.round, first.lesson > 0) == (1, True)
    assert before == {file.name: file.read_bytes() for file in puzzles.iterdir()}


def test_skills_take_turns_and_each_goes_on_where_it_stopped(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "SKILL_TURN_S", 0.0)
    bench.skills = [Skill(ELEMENTS), Skill(COLOURS)]
    seen = bench.run(rounds=4)
    begun = [next(iter(event.families)) for event in of(events.Started, seen)]
    assert begun[:4] == [ELEMENTS.family_name, COLOURS.family_name] * 2
    for made in (ELEMENTS, COLOURS):
        assert (folder(bench, made) / "checkpoints" / "round-000004").is_dir()
    assert [event.reason for event in of(events.NodeEnded, seen)] == ["rounds"]


def test_rounds_end_when_they_bring_nothing_more(bench: Bench) -> None:
    """Without a number of rounds; the best checkpoint is what is left."""
    seen = bench.run(rounds=None)
    (ended,) = of(events.NodeEnded, seen)
    notes = [event.sentence for event in of(events.NodeNote, seen)]
    assert any("more rounds bring nothing" in sentence for sentence in notes)
    again = bench.run(rounds=None)
    assert not of(Round, again) and of(events.NodeEnded, again)[0].round == ended.round


def test_what_was_learned_is_found_by_name_and_goes_with_its_set(bench: Bench) -> None:
    with pytest.raises(NodeError, match="hasn't been learned yet"):
        find_skill(bench.home, "elements")
    bench.run(rounds=1)
    (known,) = known_skills(bench.home, bench.model)
    assert find_skill(bench.home, "ELEMENTS").made == known.made == ELEMENTS and known.slug == "elements"
    with pytest.raises(NodeError, match="Did you mean elements"):
        find_skill(bench.home, "elemnts")
    (kept,) = (one for one in question_sets.stored_sets(bench.home) if one.made == ELEMENTS)
    question_sets.remove(bench.home, kept)
    assert known_skills(bench.home) == [] and not list(bench.home.glob(f"models/*/{SKILLS}/*"))


def test_a_skill_goes_on_with_rows_that_were_added_and_corrected(bench: Bench) -> None:
    """A shorter lesson over all rows from where it was, measured before and after on a curve of its own."""
    bench.run(rounds=4)
    changed = [Row(question=f"Element {n}?", answer=f"F{n}") for n in range(4)]
    found = question_sets.amend(bench.home, "elements", [*changed, Row(question="Element 99?", answer="E99")])
    assert (found.new, found.corrected) == (1, 4)
    bench.skills = [Skill(found.made)]
    taught, _ = skill_lesson.split_rows(len(Skill(found.made).examples), ELEMENTS.family_name)
    killed = bench.run(lambda event: isinstance(event, events.CheckpointSaved) and event.round == 5, rounds=9)
    assert [row.lesson for row in of(Round, killed)][:1] == [len(taught)]
    seen = bench.run(lambda event: isinstance(event, Round) and not event.lesson, rounds=12)
    lessons = [row.lesson for row in of(Round, seen)]
    assert {*lessons[:-1]} == {len(taught)} and not lessons[-1]
    points = of(Probe, killed) + of(Probe, seen)
    assert points[0].round == 4 and len({point.questions_mark for point in points}) == 1
    assert {*points[0].families} == {found.made.family_name}
    (known,) = known_skills(bench.home, bench.model)
    assert known.made == found.made and known.folder == folder(bench), "the folder is the same one"


def test_rows_that_are_added_while_a_node_learns_are_for_its_next_start(bench: Bench, tmp_path: Path) -> None:
    """Its scoring child may start again at any time and finds the rows that the node knows."""
    copies = question_sets.copy_sets(question_sets.stored_sets(bench.home), tmp_path)
    question_sets.amend(bench.home, "elements", [Row(question="Element 99?", answer="E99")])
    bench.sets = copies
    seen = bench.run(rounds=2)
    assert [row.round for row in of(Round, seen)] == [1, 2]
    assert {*of(Probe, seen)[0].families} == {ELEMENTS.family_name}
