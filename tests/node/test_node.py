"""A whole node around a fake engine: rounds, probes, resuming, damaged files, dead trainers."""

from __future__ import annotations

import json
import math
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from app.install.packs import place
from app.learning.language import ROUND_RETENTION
from app.node import node as node_module
from app.node import supervisor
from app.node.history import checkpoint
from app.node.models.survey import trainings
from app.node.record import events
from app.node.record.errors import NodeError
from app.node.record.records import Probe, Round
from app.node.trainer import link
from app.sapo.questions import VERSION
from app.sapo.scoring.sandbox import Sandbox
from tests.node.bench import Bench, of, rows


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "wait_s", lambda *_, **__: 0.0)


def test_rounds_probes_and_safe_points(bench: Bench) -> None:
    seen = bench.run(rounds=3, probe_every=2)
    assert [event.round for event in of(Round, seen)] == [1, 2, 3]
    assert [event.round for event in of(Probe, seen)] == [0, 2, 3]
    assert [event.round for event in of(events.CheckpointSaved, seen)] == [1, 2, 3]
    assert isinstance(seen[0], events.Started) and isinstance(seen[-1], events.NodeEnded)
    assert [folder.name for folder in checkpoint.newest_first(bench.checkpoints)] == [
        "round-000003",
        "round-000002",
    ]
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,), (3,)]
    assert rows(bench, "SELECT count(*), count(DISTINCT round) FROM groups") == [(12, 3)]
    assert rows(bench, "SELECT outcome FROM runs") == [("rounds",)]
    texts = [json.loads(text) for (text,) in rows(bench, "SELECT completions FROM groups")]
    assert all(len(completions) == 8 for completions in texts)


@pytest.mark.parametrize("recipe", ["default", "faithful"])
def test_what_another_program_sampled_is_marked_as_such(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    monkeypatch.setenv("FAKE_SAMPLER", "llama.cpp q8_0")
    stepped = [event for event in of(Round, bench.run(rounds=3, recipe=recipe)) if event.stepped]
    assert stepped and all((event.mismatch, event.capped) == (0.02, 1.0) for event in stepped)
    assert rows(bench, "SELECT DISTINCT json_extract(record, '$.mismatch') FROM rounds WHERE round = 1")


def test_history_agrees_with_the_events(bench: Bench) -> None:
    seen = bench.run(rounds=2)
    for event in of(Round, seen):
        groups = rows(bench, f"SELECT rewards FROM groups WHERE round = {event.round}")
        rewards = [json.loads(text) for (text,) in groups]
        assert event.informative_own == sum(len(set(group)) > 1 for group in rewards)
        assert event.train_solved == sum(map(sum, rewards)) / sum(map(len, rewards))
    for event in of(Probe, seen):
        assert event.stderr == (event.share * (1 - event.share) / event.questions) ** 0.5


def test_everyday_language_is_measured_against_what_it_was(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert all(event.everyday is event.everyday_rise is None for event in of(Probe, bench.run(rounds=1)))
    monkeypatch.setenv("FAKE_TROUBLE", "forgets to speak")
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other")
    first, *later = of(Probe, other.run(rounds=2)) + of(Probe, other.run(rounds=2))
    assert first.everyday == first.everyday_before == pytest.approx(math.exp(0.1)) and first.everyday_rise == 0
    assert [event.round for event in later] == [2, 4] and {one.everyday_before for one in later} == {
        first.everyday
    }
    rises = [one.everyday_rise or 0 for one in later]
    assert 0 < rises[0] < rises[1]


def test_a_model_that_talks_keeps_hearing_small_talk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A fake step's loss is the number of such replies in it; without any it is 0.1."""
    assert {event.loss for event in of(Round, bench.run(rounds=2))} == {0.1}
    monkeypatch.setenv("FAKE_TROUBLE", "forgets to speak")
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other")
    rounds = of(Round, other.run(rounds=1)) + of(Round, other.run(rounds=2))
    assert [event.loss for event in rounds] == [ROUND_RETENTION.per_step] * 3
    (kept,) = other.home.glob("models/*/smalltalk.json")
    before = json.loads(kept.read_bytes())[0]["logprobs_T"]
    assert set(before) == {-0.1}  # of the first run, before its first step


def test_a_second_run_goes_on_where_the_first_ended(bench: Bench) -> None:
    bench.run(rounds=2)
    seen = bench.run(rounds=2)
    assert of(events.Started, seen)[0].round == 2
    assert [event.round for event in of(Round, seen)] == [3, 4]
    taken, counted = bench.steps(4)
    assert taken == counted > 0
    assert [round_ for (round_,) in rows(bench, "SELECT round FROM rounds ORDER BY round")] == [1, 2, 3, 4]


def test_what_a_model_learned_here_is_found_with_its_pace(bench: Bench) -> None:
    seen = of(Round, bench.run(rounds=2))
    (found,) = trainings(bench.home)
    assert found.rounds == 2 and found.round_s is not None
    assert found.round_s == pytest.approx(sum(one.seconds for one in seen) / 2, rel=0.5)
    state = bench.checkpoints / "round-000002" / checkpoint.STATE_FILE
    state.write_text("{")
    (found,) = trainings(bench.home)
    assert found.rounds == 2 and found.round_s is None


def test_the_same_seed_gives_the_same_rounds_also_across_a_restart(bench: Bench, tmp_path: Path) -> None:
    bench.run(rounds=2)
    bench.run(rounds=2)
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other")
    other.run(rounds=4)
    query = "SELECT round, seed, rewards, completions FROM groups ORDER BY round, position"
    assert rows(bench, query) == rows(other, query)


def test_stopping_loses_only_the_round_in_flight(bench: Bench) -> None:
    seen = bench.run(
        rounds=None, stop_when=lambda event: isinstance(event, events.CheckpointSaved) and event.round == 2
    )
    assert seen[-1].round == 2 and seen[-1].reason == "stopped"
    seen = bench.run(rounds=1)
    assert [event.round for event in of(Round, seen)] == [3]


def test_a_round_without_a_lesson_is_still_a_round(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "always wrong")
    seen = bench.run(rounds=2)
    done = of(Round, seen)
    assert [event.informative_own for event in done] == [0, 0]
    assert not any(event.stepped for event in done)
    assert json.loads((bench.checkpoints / "round-000002" / "adapter.json").read_text())["steps"] == 0


def test_a_refused_step_is_told_and_the_round_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "refuse to learn")
    seen = bench.run(rounds=1)
    assert [event.stepped for event in of(Round, seen)] == [False]
    assert "t finite" in of(events.NodeNote, seen)[0].sentence


@pytest.mark.parametrize("when", ["sampling", "learning", "saving"])
def test_a_dead_trainer_costs_one_round(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, when: str, no_waiting: None
) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", f"die while {when} @{tmp_path / 'marker'}")
    seen = bench.run(rounds=3)
    (restart,) = of(events.TrainerRestarted, seen)
    assert "memory ran short" in restart.sentence and "-9" not in restart.sentence
    assert restart.sentence.endswith(".")
    assert [event.round for event in of(Round, seen)] == [1, 2, 3]
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,), (3,)]
    taken, counted = bench.steps(3)
    assert taken == counted > 0
    assert [kind for (kind,) in rows(bench, "SELECT kind FROM events")] == ["trainer_restarted"]
    assert not list(bench.checkpoints.glob(".*"))


def test_processes_that_need_no_secret_have_none(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_PRIVATE", "six words")
    held: list[dict[str, str]] = []

    def look(event: events.Event) -> bool:
        if isinstance(event, Round):
            held.extend(child.environ() for child in psutil.Process().children())
        return False

    bench.run(look, rounds=1)
    assert len(held) >= 2 and not any("SHOAL_PRIVATE" in one for one in held)


def test_a_trainer_that_hangs_is_noticed_and_started_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_waiting: None
) -> None:
    monkeypatch.setattr(link, "SILENCE_S", 4.0)
    monkeypatch.setenv("FAKE_TROUBLE", f"hang while sampling @{tmp_path / 'marker'}")
    seen = bench.run(rounds=3)
    (restart,) = of(events.TrainerRestarted, seen)
    assert restart.sentence.startswith("The trainer hasn't answered for 4 s. It restarts")
    assert [event.round for event in of(Round, seen)] == [1, 2, 3]
    assert bench.steps(3)[0] == bench.steps(3)[1]


@pytest.mark.long
def test_a_trainer_that_is_only_slow_is_left_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight seconds without an answer, token by token, where five without a token are its end."""
    monkeypatch.setattr(link, "SILENCE_S", 5.0)
    monkeypatch.setenv("FAKE_TROUBLE", "crawls")
    seen = bench.run(lambda event: isinstance(event, Probe), rounds=1)
    assert of(Probe, seen) and not of(events.TrainerRestarted, seen)


def test_a_trainer_that_always_dies_ends_the_node_with_a_sentence(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, no_waiting: None
) -> None:
    bench.run(rounds=2)
    monkeypatch.setenv("FAKE_TROUBLE", "die while sampling")
    with pytest.raises(NodeError, match=r"5 times in a row.*Round 2 is safe"):
        bench.run(rounds=2)
    assert len(of(events.TrainerRestarted, bench.events)) == 4
    assert bench.events[-1].reason == "failed"
    monkeypatch.delenv("FAKE_TROUBLE")
    assert of(Round, bench.run(rounds=1))[0].round == 3


def test_a_model_that_cannot_be_opened_ends_the_node(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "unopenable")
    with pytest.raises(NodeError, match="choose another one"):
        bench.run()
    assert not of(events.TrainerRestarted, bench.events)


def test_an_installed_app_without_an_engine_says_so_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_waiting: None
) -> None:
    monkeypatch.setenv("SHOAL_PACKS", str(tmp_path / "packs"))
    monkeypatch.setattr(place, "installed", lambda: True)
    with pytest.raises(NodeError, match=r"engine isn't installed.*pack install"):
        bench.run()
    assert not (bench.home / "logs" / "trainer.log").exists(), "no trainer was started"
    monkeypatch.setattr(place, "python", lambda: Path(sys.executable))
    monkeypatch.setenv("FAKE_TROUBLE", "unopenable")
    with pytest.raises(NodeError, match="engine isn't installed"):  # and not: run ./shoal setup
        bench.run()
    assert not of(events.TrainerRestarted, bench.events) and bench.events[-1].reason == "failed"


def test_new_families_make_a_new_curve_and_old_ones_keep_their_progress(bench: Bench) -> None:
    bench.run(rounds=1)
    seen = bench.run(rounds=1, families={"chain_sum": 1, "gcd": 0})
    assert [event.round for event in of(Probe, seen)] == [1, 2]
    state = json.loads((bench.checkpoints / "round-000002" / "state.json").read_text())["state"]
    windows = {row["family"]: len(row["window"]) for row in state["curriculum"]["families"]}
    assert windows["chain_sum"] >= 1 and set(windows) == {"chain_sum", "gcd"}
    assert len(bench.node.snapshot.curve) == 2


def test_puzzles_of_a_new_version_begin_a_new_curve_and_nothing_is_lost(bench: Bench) -> None:
    """As the first ladder left a folder: its state does not name the questions, and its probes asked others."""
    bench.run(rounds=2)
    file = bench.checkpoints / "round-000002" / "state.json"
    kept = json.loads(file.read_text())
    assert kept["state"].pop("questions") == VERSION
    file.write_text(json.dumps(kept))
    with sqlite3.connect(bench.history) as db:
        db.execute("UPDATE probes SET questions_mark='old', record=json_set(record, '$.questions_mark', 'old')")
        db.execute("UPDATE groups SET version='0.1.25/1'")
    seen = bench.run(rounds=2)
    before = of(Probe, bench.events)[:-2]
    told = [one.sentence for one in of(events.NodeNote, seen)]
    assert told == [
        "This version of Shoal has other puzzles, so the curve starts over. "
        f"The one before ended at {before[-1]} after round 2; it stays in the history. "
        "Some puzzles that are kept apart now were perhaps practised before."
    ]
    assert [one.round for one in of(Probe, seen)] == [2, 4] and len(bench.node.snapshot.curve) == 2
    assert rows(bench, "SELECT round, questions_mark='old' FROM probes ORDER BY round, 2 DESC") == [
        *[(one.round, 1) for one in before],
        (2, 0),
        (4, 0),
    ]
    assert rows(bench, "SELECT count(DISTINCT round), count(DISTINCT version) FROM groups") == [(4, 2)]
    state = json.loads((bench.checkpoints / "round-000004" / "state.json").read_text())["state"]
    (family,) = state["curriculum"]["families"]
    assert state["questions"] == VERSION and (family["level"], len(family["window"])) == (1, 2)
    assert not of(events.NodeNote, bench.run(rounds=1)), "once is enough"


def test_no_process_is_left_behind(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_module, "Sandbox", Sandbox)
    before = psutil.Process().children(recursive=True)
    bench.run(rounds=1)
    deadline = time.monotonic() + 2
    while (left := [p for p in psutil.Process().children(recursive=True) if p not in before]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.05)
    assert left == []


def test_a_scoring_process_that_cannot_be_started_leaves_nothing_running(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(**how: object) -> Sandbox:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(node_module, "Sandbox", none)
    before = psutil.Process().children(recursive=True)
    with pytest.raises(BlockingIOError):
        bench.run(rounds=1)
    assert [one for one in psutil.Process().children(recursive=True) if one not in before] == []


def test_that_the_scoring_process_starts_slowly_is_told_while_it_does(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = node_module.Sandbox

    def starved(*, late: Callable[[], object], **how: bool) -> Sandbox:
        threading.Thread(target=late).start()  # as when its first answer is overdue
        return make(late=late, **how)

    monkeypatch.setattr(node_module, "Sandbox", starved)
    told = [one.sentence for one in of(events.NodeNote, bench.run(rounds=1))]
    assert [one for one in told if "very busy" in one] == [node_module._STARVED]


def test_the_history_forgets_old_texts_and_later_old_groups(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.node.history.store.TEXTS_KEPT_ROUNDS", 2)
    bench.run(rounds=4)
    kept = rows(
        bench, "SELECT round, count(completions), count(rewards) FROM groups GROUP BY round ORDER BY round"
    )
    assert kept == [(1, 0, 4), (2, 0, 4), (3, 4, 4), (4, 4, 4)]


def test_the_snapshot_holds_what_views_show(bench: Bench) -> None:
    bench.run(rounds=2)
    snapshot = bench.node.snapshot
    assert snapshot.safe_round == 2 and snapshot.round == 3 and snapshot.last_round == 2
    assert [point.round for point in snapshot.curve] == [0, 2]
    assert snapshot.families[0].title == "Sums" and snapshot.families[0].latest is not None
    assert len(snapshot.answers) == 4 and snapshot.answers[0].question
    assert snapshot.engine.name == "fake"


def test_standard_output_of_the_trainer_goes_to_its_log(bench: Bench) -> None:
    bench.run(rounds=1)
    log = (bench.home / "logs" / "trainer.log").read_text()
    assert "noise that is no message" in log and "more noise, past Python" in log
