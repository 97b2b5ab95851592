"""Placement, lesson zero and reasons why nothing is gained, in a whole node around a fake engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import msgspec
import pytest

from app.learning import placement_questions
from app.node.record import events
from app.node.record.records import Probe, Round
from app.node.record.snapshot import Phase
from app.node.round import placing
from app.node.round.watch import SnapshotWriter
from app.sapo.asking import BRIEF, TAGGED
from app.sapo.families import FAMILIES
from app.sapo.probe import probe_questions
from tests.e2e.contract import event_misfits
from tests.node.bench import Bench, of, rows
from tests.node.round.test_peers import Shelf

ROOT = Path(__file__).parents[3]
CANDIDATES = {"chain_sum": 0, "gcd": 0, "number_sorting": 0}


@pytest.fixture
def pupil(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that can answer behind examples, and by itself once it was taught."""
    monkeypatch.setenv("FAKE_TROUBLE", "needs examples")


def kept(bench: Bench) -> placing.Placement:
    (folder,) = bench.home.glob("models/*/")
    found = placing.read(folder)
    assert found is not None
    return found


def test_a_model_that_needs_examples_is_placed_taught_and_learns_without(bench: Bench, pupil: None) -> None:
    seen = bench.run(rounds=3, place=True, families=CANDIDATES, probe_every=10)
    (placed,) = of(events.PlacementDone, seen)
    assert placed.way == "brief" and placed.families == {"chain_sum": 0} and placed.waiting == ("gcd",)
    assert placed.lesson == len(kept(bench).right_answers) > 0
    first, *later = of(Round, seen)
    assert (first.round, first.lesson, first.own_groups, first.stepped) == (1, placed.lesson, 0, True)
    assert all(one.own_groups == 4 and not one.lesson and one.informative_own for one in later)
    before, after, *_ = of(Probe, seen)
    assert (before.round, after.round) == (0, 1) and before.share == 0.0 < after.share <= after.lenient
    assert set(before.families) == {"chain_sum"}
    assert event_misfits(msgspec.json.decode(msgspec.json.encode(placed))) == []
    (sentence,) = rows(bench, "SELECT sentence FROM events WHERE kind = 'placement'")[0]
    assert sentence.startswith("It can begin with sums.") and "greatest common divisor" in sentence


def test_it_learns_before_every_kind_was_tried_and_tries_the_others_between_rounds(
    bench: Bench, pupil: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement_questions, "QUESTIONS_PER_CALL", 2)
    monkeypatch.setattr(placement_questions, "FIRST_QUESTIONS", 2)
    families = {"needle_haystack": 0, "basic_arithmetic": 0, "chain_sum": 0}
    seen = bench.run(lambda event: isinstance(event, events.PlacementDone), place=True, families=families)
    assert kept(bench).families and kept(bench).untried == ("needle_haystack",)
    assert (
        of(events.PlacementDone, seen)[0].lesson > 0
        and "other kinds between rounds: 1" in of(events.PlacementDone, seen)[0].sentence
    )
    bench.run(rounds=4, place=True, families=families)
    needle = next(one for one in kept(bench).tried if one.family == "needle_haystack")
    assert needle.questions > 1 and needle.any == 0 and kept(bench).waiting == ("needle_haystack",)


def test_the_first_measurements_are_short(bench: Bench, pupil: None) -> None:
    """A model that solves nothing yet is asked a quarter, one that was just taught half, then all."""
    seen = bench.run(rounds=2, place=True, families=CANDIDATES, probe_questions=32)
    assert [(one.round, one.questions, one.share > 0) for one in of(Probe, seen)] == [
        (0, 8, False),
        (1, 16, True),
        (2, 32, True),
    ]
    assert len({one.questions_mark for one in of(Probe, seen)}) == 1


def test_what_was_found_outlasts_the_node(bench: Bench, pupil: None) -> None:
    bench.run(rounds=2, place=True, families=CANDIDATES)
    again = bench.run(rounds=1, place=True, families=CANDIDATES)
    assert not of(events.PlacementDone, again) and [one.lesson for one in of(Round, again)] == [0]
    assert of(events.Started, again)[0].families == {"chain_sum": 0}


@pytest.mark.parametrize(("phase", "kind"), [(Phase.PLACING, None), (Phase.SAMPLING, Round)])
def test_who_changes_the_swarm_keeps_what_is_in_flight(
    bench: Bench, pupil: None, monkeypatch: pytest.MonkeyPatch, phase: Phase, kind: type | None
) -> None:
    swarm, left = Shelf([]), list[int]()
    report = SnapshotWriter.report

    def leave(writer: SnapshotWriter, now: Phase, done: int = 0, total: int = 0) -> None:
        report(writer, now, done, total)
        if now is phase and not left:
            assert bench.node is not None
            left.append(len(bench.events))
            bench.node.leave()

    monkeypatch.setattr(SnapshotWriter, "report", leave)
    seen = bench.run(rounds=3, place=True, families=CANDIDATES, swarm=swarm)
    after = [event for event in seen[left[0] :] if isinstance(event, events.PlacementDone | Probe | Round)]
    assert [type(event) for event in after] == ([kind] if kind else []), "that, and nothing after it"
    assert seen[-1].reason == "stopped" and swarm.diary == ["open", "close"] and not swarm.published
    again = bench.run(rounds=2, place=True, families=CANDIDATES)
    assert len(of(events.PlacementDone, [*seen, *again])) == 1
    played = [event.round for event in of(Round, [*seen, *again])]
    assert played == sorted(set(played)) and played[0] == 1
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(number,) for number in played]


def test_families_that_are_asked_for_count_more_than_what_was_found_before(bench: Bench, pupil: None) -> None:
    bench.run(lambda event: isinstance(event, events.PlacementDone), place=True, families=CANDIDATES)
    other = bench.run(rounds=1, place=True, families={"gcd": 0})
    assert of(events.PlacementDone, other)[0].families == {} and set(of(Probe, other)[0].families) == {"gcd"}


def test_families_that_wait_are_tried_again_and_join_without_changing_the_curve(
    bench: Bench, pupil: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing.placement, "MAX_STARTING_FAMILIES", 1)
    families = {"chain_sum": 0, "basic_arithmetic": 0, "gcd": 0}
    seen = bench.run(rounds=12, place=True, families=families, probe_every=5)
    (placed,) = of(events.PlacementDone, seen)
    assert len(placed.families) == 1 and "gcd" in placed.waiting
    (told,) = [one for one in of(events.NodeNote, seen) if "New to the mix" in one.sentence]
    assert told.round < 12 and told.sentence.count("arithmetic") + told.sentence.count("sums") == 1
    assert {*kept(bench).active} == {"chain_sum", "basic_arithmetic"}
    assert {*of(Probe, seen)[-1].families} == {*placed.families}
    again = bench.run(rounds=1, place=True, families=families)
    assert {*of(events.Started, again)[0].families} == {"chain_sum", "basic_arithmetic"}
    assert len(of(Probe, again)[-1].families) == 1


def test_a_node_that_is_stopped_before_its_lesson_has_it_at_the_next_start(bench: Bench, pupil: None) -> None:
    bench.run(lambda event: isinstance(event, events.PlacementDone), place=True, families=CANDIDATES)
    again = bench.run(rounds=1, place=True, families=CANDIDATES)
    assert not of(events.PlacementDone, again) and of(Round, again)[0].lesson > 0


def test_its_owner_starts_without_the_first_look(bench: Bench, pupil: None) -> None:
    def skips(event: events.Event) -> bool:
        if isinstance(event, events.Started):
            assert bench.node is not None
            bench.node.skip()
        return False

    seen = bench.run(skips, rounds=1, place=True, families={"gcd": 0, "lcm": 0})
    (placed,) = of(events.PlacementDone, seen)
    assert {*placed.families} == {"gcd", "lcm"} and not placed.lesson
    assert placed.sentence.startswith("It starts with ") and of(Round, seen)[0].own_groups == 4
    assert not any(one.questions for one in kept(bench).tried)


NODE = """
import sys
from pathlib import Path
from app.node.record import events
from app.sapo.families import FAMILIES
from tests.node.bench import Bench
bench = Bench(Path(sys.argv[1]))
families = dict.fromkeys(FAMILIES, 0)
bench.run(lambda event: isinstance(event, events.PlacementDone), place=True, families=families)
"""


def asked(log: Path) -> list[list[str]]:
    """The questions of every call of the engine, each with the way it was put."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def look(folder: Path, log: Path, kill_after: float | None = None) -> None:
    """A first look in a node of its own, killed once so many calls of the engine are over."""
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "FAKE_ASKED": str(log)}
    node = subprocess.Popen([sys.executable, "-c", NODE, str(folder)], env=environment, cwd=ROOT)
    while kill_after is not None and len(asked(log)) <= kill_after and node.poll() is None:
        time.sleep(0.05)
    if kill_after is None:
        assert node.wait(120) == 0
    else:
        time.sleep(kill_after % 1 * 0.6)
        node.kill()
        node.wait()


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.long)])
def test_a_first_look_that_is_killed_goes_on_and_asks_nothing_again(
    bench: Bench, tmp_path: Path, pupil: None, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    random = Random(kills)
    logs = [tmp_path / f"asked{number}" for number in range(kills + 1)]
    for log in logs:
        look(tmp_path / "killed", log, random.uniform(0, 3) if log != logs[-1] else None)
        if any(
            found and not found.in_progress
            for found in map(placing.read, Bench(tmp_path / "killed").home.glob("models/*/"))
        ):
            break  # the look was over before the node was killed
    monkeypatch.setenv("FAKE_ASKED", str(tmp_path / "asked"))
    families = dict.fromkeys(FAMILIES, 0)
    bench.run(lambda event: isinstance(event, events.PlacementDone), place=True, families=families)
    calls: list[list[str]] = []
    for log in logs:  # what was in flight when the node died is asked once more
        calls = [*(calls[:-1] if calls and calls[-1:] == asked(log)[:1] else calls), *asked(log)]
    assert calls == asked(tmp_path / "asked")
    found, whole = kept(Bench(tmp_path / "killed")), kept(bench)
    assert msgspec.structs.replace(found, seconds=whole.seconds) == whole and whole.families


def test_a_model_that_answers_as_it_is_told_needs_no_examples(bench: Bench) -> None:
    seen = bench.run(rounds=1, place=True, families=CANDIDATES)
    (placed,) = of(events.PlacementDone, seen)
    assert placed.way == TAGGED.name and placed.lesson == 0 and of(Round, seen)[0].own_groups == 4
    assert set(placed.waiting) == {"gcd", "number_sorting"}


def test_nothing_to_begin_with_is_said_and_every_family_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "always wrong")
    seen = bench.run(rounds=1, place=True, families=CANDIDATES)
    (placed,) = of(events.PlacementDone, seen)
    assert placed.families == {} and "A larger model, or the starter, would help" in placed.sentence
    assert set(of(Probe, seen)[0].families) == set(CANDIDATES)


SIX = (
    *("chain_sum", "basic_arithmetic", "fraction_simplification"),
    *("simple_equations", "count_bits", "spell_backward"),
)


def test_examples_never_show_a_held_out_question_or_the_one_asked(
    bench: Bench, pupil: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[list[dict[str, str]]] = []
    plain = placing.messages

    def noting(*args: object) -> list[dict[str, str]]:
        shown.append(plain(*args))  # type: ignore[arg-type]
        return shown[-1]

    monkeypatch.setattr(placing, "messages", noting)
    families = dict.fromkeys(SIX, 0)
    held_out = {question.text for question in probe_questions(families, 400)}
    bench.run(rounds=1, place=True, families=families)
    asked = [[turn["content"] for turn in turns if turn["role"] == "user"] for turns in shown]
    assert any(len(questions) == 1 + BRIEF.examples for questions in asked)
    for *examples, question in asked:
        assert question not in examples
        assert not held_out & {*examples, question}


def test_a_damaged_placement_is_made_again(bench: Bench, pupil: None) -> None:
    bench.run(lambda event: isinstance(event, events.PlacementDone), place=True, families=CANDIDATES)
    (file,) = bench.home.glob("models/*/placement.json")
    Path(file).write_bytes(b'{"way": 3}')
    assert of(events.PlacementDone, bench.run(rounds=1, place=True, families=CANDIDATES))


def flat(bench: Bench, **changes: object) -> list[events.ProgressStalled]:
    return of(
        events.ProgressStalled, bench.run(**({"rounds": 8, "probe_every": 99, "recipe": "faithful"} | changes))
    )


def test_unfinished_answers_may_be_longer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "unfinished")
    told = flat(bench, rounds=12)
    assert event_misfits(msgspec.json.decode(msgspec.json.encode(told[0]))) == []
    assert {one.cause for one in told} == {"unfinished"} and "64 tokens long from now on" in told[0].sentence
    assert rows(bench, "SELECT count(*) FROM events WHERE kind = 'flat'") == [(len(told),)]


def test_answers_without_form_get_examples_and_it_heals(bench: Bench, pupil: None) -> None:
    """The case that showed a flat zero and no reason: a model that was never placed."""
    seen = bench.run(rounds=8, probe_every=99, families={"chain_sum": 0})
    (told,) = of(events.ProgressStalled, seen)
    (placed,) = of(events.PlacementDone, seen)
    assert told.cause == "formless" and seen.index(told) < seen.index(placed)
    rounds = of(Round, seen)
    assert [bool(one.lesson) for one in rounds[:6]] == [False] * 4 + [True, False]
    assert not any(one.informative_own for one in rounds[:4]) and rounds[-1].informative_own > 0
    assert of(Probe, seen)[0].share == 0.0 < of(Probe, seen)[-1].share


def test_wrong_answers_get_easier_puzzles(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "always wrong")
    told = flat(bench, rounds=5, families={"chain_sum": 2})
    assert [one.cause for one in told] == ["failing"]
    state = json.loads((bench.checkpoints / "round-000005" / "state.json").read_bytes())["state"]
    assert [one["level"] for one in state["curriculum"]["families"]] == [1]


def test_right_answers_get_harder_puzzles(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "always right")
    told = flat(bench, rounds=5)
    assert [one.cause for one in told] == ["passing"] and "a level up" in told[0].sentence


def test_answers_all_alike_get_more_puzzles_a_round(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "alike")
    seen = bench.run(rounds=5, probe_every=99, recipe="faithful")
    (told,) = of(events.ProgressStalled, seen)
    assert told.cause == "alike" and of(Round, seen)[-1].own_groups == 8


def test_a_torn_model_goes_back_to_its_best(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "tears 5")
    seen = bench.run(rounds=12, probe_every=1, probe_questions=64, families={"chain_sum": 0}, recipe="faithful")
    told = of(events.ProgressStalled, seen)
    assert told and told[0].cause == "torn" and "It goes back to what it was after round" in told[0].sentence
    curve = of(Probe, seen)
    at = next(place for place, one in enumerate(curve) if one.share == 0.0)
    assert curve[at + 1].share > 0.0
