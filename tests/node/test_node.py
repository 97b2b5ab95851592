"""A whole node around a fake engine: rounds, probes, resuming, damaged files, dead trainers."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from app.node import checkpoint, events
from app.node import node as node_module
from app.node.errors import DiskFullError, NodeError
from app.node.node import wait_before_restart
from app.sapo.sandbox import Sandbox
from tests.node.bench import Bench

Event = TypeVar("Event", bound=events.Event)


def of(kind: type[Event], seen: list[events.Event]) -> list[Event]:
    return [event for event in seen if isinstance(event, kind)]


def rows(bench: Bench, query: str) -> list[tuple]:
    with sqlite3.connect(bench.history) as db:
        return db.execute(query).fetchall()


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_module, "wait_before_restart", lambda deaths: 0.0)


def test_rounds_probes_and_safe_points(bench: Bench) -> None:
    seen = bench.run(rounds=3, probe_every=2)
    assert [event.round for event in of(events.RoundDone, seen)] == [1, 2, 3]
    assert [event.round for event in of(events.ProbeDone, seen)] == [0, 2, 3]
    assert [event.round for event in of(events.Checkpointed, seen)] == [1, 2, 3]
    assert isinstance(seen[0], events.Started) and isinstance(seen[-1], events.Ended)
    assert [folder.name for folder in checkpoint.newest_first(bench.checkpoints)] == [
        "round-000003",
        "round-000002",
    ]
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,), (3,)]
    assert rows(bench, "SELECT count(*), count(DISTINCT round) FROM groups") == [(12, 3)]
    assert rows(bench, "SELECT outcome FROM runs") == [("rounds",)]
    texts = [json.loads(text) for (text,) in rows(bench, "SELECT completions FROM groups")]
    assert all(len(completions) == 8 for completions in texts)


def test_history_agrees_with_the_events(bench: Bench) -> None:
    seen = bench.run(rounds=2)
    for event in of(events.RoundDone, seen):
        groups = rows(bench, f"SELECT rewards FROM groups WHERE round = {event.round}")
        rewards = [json.loads(text) for (text,) in groups]
        assert event.informative_own == sum(len(set(group)) > 1 for group in rewards)
        assert event.train_solved == sum(map(sum, rewards)) / sum(map(len, rewards))
    for event in of(events.ProbeDone, seen):
        assert event.stderr == (event.pass_at_1 * (1 - event.pass_at_1) / event.questions) ** 0.5


def test_a_second_run_goes_on_where_the_first_ended(bench: Bench) -> None:
    bench.run(rounds=2)
    seen = bench.run(rounds=2)
    assert of(events.Started, seen)[0].round == 2
    assert [event.round for event in of(events.RoundDone, seen)] == [3, 4]
    assert json.loads((bench.checkpoints / "round-000004" / "adapter.json").read_text())["steps"] == 4
    assert [round_ for (round_,) in rows(bench, "SELECT round FROM rounds ORDER BY round")] == [1, 2, 3, 4]


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
        rounds=None, stop_when=lambda event: isinstance(event, events.Checkpointed) and event.round == 2
    )
    assert seen[-1].round == 2 and seen[-1].reason == "stopped"
    seen = bench.run(rounds=1)
    assert [event.round for event in of(events.RoundDone, seen)] == [3]


def test_a_round_without_a_lesson_is_still_a_round(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "always wrong")
    seen = bench.run(rounds=2)
    done = of(events.RoundDone, seen)
    assert [event.informative_own for event in done] == [0, 0]
    assert not any(event.stepped for event in done)
    assert json.loads((bench.checkpoints / "round-000002" / "adapter.json").read_text())["steps"] == 0


def test_a_refused_step_is_told_and_the_round_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "refuse to learn")
    seen = bench.run(rounds=1)
    assert [event.stepped for event in of(events.RoundDone, seen)] == [False]
    assert "not finite" in of(events.Noted, seen)[0].sentence


@pytest.mark.parametrize("when", ["sampling", "learning", "saving"])
def test_a_dead_trainer_costs_one_round(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, when: str, no_waiting: None
) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", f"die while {when} @{tmp_path / 'marker'}")
    seen = bench.run(rounds=3)
    (restart,) = of(events.TrainerRestarted, seen)
    assert "memory ran short" in restart.sentence and "-9" not in restart.sentence
    assert restart.sentence.count(".") == 1
    assert [event.round for event in of(events.RoundDone, seen)] == [1, 2, 3]
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,), (3,)]
    assert json.loads((bench.checkpoints / "round-000003" / "adapter.json").read_text())["steps"] == 3
    assert [kind for (kind,) in rows(bench, "SELECT kind FROM events")] == ["trainer_restarted"]
    assert not list(bench.checkpoints.glob(".*"))


def test_a_trainer_that_always_dies_ends_the_node_with_a_sentence(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, no_waiting: None
) -> None:
    bench.run(rounds=2)
    monkeypatch.setenv("FAKE_TROUBLE", "die while sampling")
    with pytest.raises(NodeError, match=r"5 times in a row.*round 2 is safe"):
        bench.run(rounds=2)
    assert len(of(events.TrainerRestarted, bench.events)) == 4
    assert bench.events[-1].reason == "failed"
    monkeypatch.delenv("FAKE_TROUBLE")
    assert of(events.RoundDone, bench.run(rounds=1))[0].round == 3


def test_waits_grow_and_end() -> None:
    waits = [wait_before_restart(deaths) for deaths in range(1, 9)]
    assert waits == sorted(waits) and waits[0] <= 1 and waits[-1] == 30


def test_a_model_that_cannot_be_opened_ends_the_node(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "unopenable")
    with pytest.raises(NodeError, match="choose another one"):
        bench.run()
    assert not of(events.TrainerRestarted, bench.events)


def cut_off(folder: Path) -> None:
    path = folder / "optimizer.bin"
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_bit(folder: Path) -> None:
    path = folder / "adapter.json"
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


def remove_a_file(folder: Path) -> None:
    (folder / "adapter.json").unlink()


def spoil_the_state(folder: Path) -> None:
    (folder / "state.json").write_text("{]")


def remove_the_state(folder: Path) -> None:
    (folder / "state.json").unlink()


DAMAGES = [cut_off, flip_a_bit, remove_a_file, spoil_the_state, remove_the_state]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_falls_back_to_the_one_before(bench: Bench, damage) -> None:
    bench.run(rounds=3)
    damage(bench.checkpoints / "round-000003")
    seen = bench.run(rounds=2)
    (note,) = of(events.Noted, seen)
    assert "round-000003 cannot be used" in note.sentence and "Going on from round 2" in note.sentence
    assert [event.round for event in of(events.RoundDone, seen)] == [3, 4]
    assert (bench.checkpoints / "damaged-round-000003").is_dir()
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,), (3,), (4,)]
    assert json.loads((bench.checkpoints / "round-000004" / "adapter.json").read_text())["steps"] == 4


def test_without_a_valid_checkpoint_it_starts_anew_and_deletes_nothing(bench: Bench) -> None:
    bench.run(rounds=3)
    for folder in checkpoint.newest_first(bench.checkpoints):
        cut_off(folder)
    seen = bench.run(rounds=1)
    anew, history = of(events.Noted, seen)
    assert "starts anew" in anew.sentence and "history of before is kept" in history.sentence
    assert [event.round for event in of(events.RoundDone, seen)] == [1]
    kept = {path.name for path in bench.checkpoints.iterdir()}
    assert kept == {"damaged-round-000003", "damaged-round-000002", "round-000001"}
    (old,) = bench.history.parent.glob("damaged-*history.sqlite")
    with sqlite3.connect(old) as db:
        assert db.execute("SELECT count(*) FROM rounds").fetchone() == (3,)


def test_lost_checkpoints_do_not_cost_the_history(bench: Bench) -> None:
    bench.run(rounds=3)
    shutil.rmtree(bench.checkpoints)
    seen = bench.run(rounds=1)
    assert [event.round for event in of(events.RoundDone, seen)] == [1]
    assert list(bench.history.parent.glob("damaged-*history.sqlite"))


def test_a_damaged_history_is_kept_aside_and_learning_goes_on(bench: Bench) -> None:
    bench.run(rounds=2)
    bench.history.write_bytes(b"this is no database, but long enough to be taken for one" * 40)
    seen = bench.run(rounds=1)
    assert "history cannot be read" in of(events.Noted, seen)[0].sentence
    assert [event.round for event in of(events.RoundDone, seen)] == [3]
    (old,) = bench.history.parent.glob("damaged-*history.sqlite")
    assert old.read_bytes().startswith(b"this is no database")


def test_an_adapter_that_the_engine_refuses_counts_as_damaged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(rounds=1)
    monkeypatch.setenv("FAKE_TROUBLE", "unloadable")
    seen = bench.run(rounds=1)
    assert "made for another model" in of(events.Noted, seen)[0].sentence
    assert (bench.checkpoints / "damaged-round-000001").is_dir()


def test_rows_beyond_the_checkpoint_are_forgotten(bench: Bench) -> None:
    """As after a kill between the history's transaction and the checkpoint's new name."""
    bench.run(rounds=3)
    shutil.rmtree(bench.checkpoints / "round-000003")
    (bench.checkpoints / ".writing-000003-1-aa").mkdir()
    seen = bench.run(rounds=1)
    assert not of(events.Noted, seen)
    assert [event.round for event in of(events.RoundDone, seen)] == [3]
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,), (3,)]
    assert not list(bench.checkpoints.glob(".*"))


def no_room_while(monkeypatch: pytest.MonkeyPatch, full: Callable[[], bool]) -> None:
    """The disk refuses to take a checkpoint's last file as long as `full` says so."""
    seal = checkpoint.seal

    def refusing(*arguments: object) -> None:
        if full():
            raise OSError(errno.ENOSPC, "No space left on device")
        seal(*arguments)

    monkeypatch.setattr(checkpoint, "seal", refusing)


def test_a_full_disk_costs_the_older_safe_point_but_not_the_round(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(rounds=3)
    with monkeypatch.context() as context:
        no_room_while(context, lambda: len(checkpoint.newest_first(bench.checkpoints)) > 1)
        with pytest.raises(DiskFullError, match=r"is full: make some room.*round 4 is safe"):
            bench.run(rounds=5)
    names = [folder.name for folder in checkpoint.newest_first(bench.checkpoints)]
    assert names == ["round-000004", "round-000003"]
    assert bench.events[-1].reason == "failed" and "is full" in bench.events[-1].sentence
    seen = bench.run(rounds=1)
    assert [event.round for event in of(events.RoundDone, seen)] == [5]
    assert [round_ for (round_,) in rows(bench, "SELECT round FROM rounds ORDER BY round")] == [1, 2, 3, 4, 5]


def test_a_disk_that_takes_nothing_leaves_the_last_safe_point(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(rounds=1)
    with monkeypatch.context() as context:
        no_room_while(context, lambda: True)
        with pytest.raises(DiskFullError, match="round 1 is safe"):
            bench.run(rounds=5)
    assert [path.name for path in bench.checkpoints.iterdir()] == ["round-000001"]
    assert [event.round for event in of(events.RoundDone, bench.run(rounds=1))] == [2]


def test_another_model_gets_a_folder_of_its_own(bench: Bench) -> None:
    bench.run(rounds=2)
    (bench.model / "model.safetensors").write_bytes(b"other weights")
    seen = bench.run(rounds=1)
    assert "another model" in of(events.Noted, seen)[0].sentence
    assert of(events.RoundDone, seen)[0].round == 1
    assert len(list(bench.home.glob("models/*"))) == 2


def test_new_families_make_a_new_curve_and_old_ones_keep_their_progress(bench: Bench) -> None:
    bench.run(rounds=1)
    seen = bench.run(rounds=1, families={"chain_sum": 1, "gcd": 0})
    assert [event.round for event in of(events.ProbeDone, seen)] == [1, 2]
    state = json.loads((bench.checkpoints / "round-000002" / "state.json").read_text())["state"]
    windows = {row["family"]: len(row["window"]) for row in state["curriculum"]["families"]}
    assert windows["chain_sum"] >= 1 and set(windows) == {"chain_sum", "gcd"}
    assert len(bench.node.snapshot.curve) == 2


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


def test_the_history_keeps_old_rewards_but_not_old_texts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.node.store.TEXTS_KEPT_ROUNDS", 2)
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
    assert snapshot.families[0].title == "Sums" and snapshot.families[0].train_solved is not None
    assert len(snapshot.answers) == 4 and snapshot.answers[0].question
    assert snapshot.engine.name == "fake"


def test_standard_output_of_the_trainer_goes_to_its_log(bench: Bench) -> None:
    bench.run(rounds=1)
    log = (bench.home / "logs" / "trainer.log").read_text()
    assert "noise that is no message" in log and "more noise, past Python" in log


def test_the_identity_is_private_and_stays(bench: Bench) -> None:
    bench.run(rounds=1, seed=None)
    path = bench.home / "identity"
    first = path.read_bytes()
    assert len(first) == 32
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    bench.run(rounds=1, seed=None)
    assert path.read_bytes() == first
