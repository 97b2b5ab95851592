"""What a node does about damaged files, full disks and other models: it goes on, says so, deletes nothing."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

import pytest

from app.node.history import checkpoint
from app.node.history.store import Store
from app.node.record import events
from app.node.record.records import Round
from app.node.record.snapshot import Phase
from app.node.round import keeping, placing
from tests.node.bench import Bench, of, rows


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
    (note,) = of(events.NodeNote, seen)
    assert "round-000003 can't be used" in note.sentence and "continues from round 2" in note.sentence
    assert [event.round for event in of(Round, seen)] == [3, 4]
    assert (bench.checkpoints / "damaged-round-000003").is_dir()
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,), (3,), (4,)]
    taken, counted = bench.steps(4)
    assert taken == counted > 0


def test_without_a_valid_checkpoint_it_starts_anew_and_deletes_nothing(bench: Bench) -> None:
    bench.run(rounds=3)
    for folder in checkpoint.newest_first(bench.checkpoints):
        cut_off(folder)
    seen = bench.run(rounds=1)
    anew, history = of(events.NodeNote, seen)
    assert "starts again" in anew.sentence and "earlier history is kept" in history.sentence
    assert [event.round for event in of(Round, seen)] == [1]
    kept = {path.name for path in bench.checkpoints.iterdir()}
    assert kept == {"damaged-round-000003", "damaged-round-000002", "round-000001"}
    (old,) = bench.history.parent.glob("damaged-*history.sqlite")
    with sqlite3.connect(old) as db:
        assert db.execute("SELECT count(*) FROM rounds").fetchone() == (3,)


def test_lost_checkpoints_do_not_cost_the_history(bench: Bench) -> None:
    bench.run(rounds=3)
    shutil.rmtree(bench.checkpoints)
    seen = bench.run(rounds=1)
    assert [event.round for event in of(Round, seen)] == [1]
    assert list(bench.history.parent.glob("damaged-*history.sqlite"))


def test_a_damaged_history_is_kept_aside_and_learning_goes_on(bench: Bench) -> None:
    bench.run(rounds=2)
    bench.history.write_bytes(b"this is no database, but long enough to be taken for one" * 40)
    seen = bench.run(rounds=1)
    assert "history can't be read" in of(events.NodeNote, seen)[0].sentence
    assert [event.round for event in of(Round, seen)] == [3]
    (old,) = bench.history.parent.glob("damaged-*history.sqlite")
    assert old.read_bytes().startswith(b"this is no database")


def test_an_adapter_that_the_engine_refuses_counts_as_damaged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(rounds=1)
    monkeypatch.setenv("FAKE_TROUBLE", "unloadable")
    seen = bench.run(rounds=1)
    assert "made for another model" in of(events.NodeNote, seen)[0].sentence
    assert (bench.checkpoints / "damaged-round-000001").is_dir()


class Killed(BaseException):
    pass


def test_the_history_comes_before_the_checkpoints_name(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other order would leave a gap when the node is killed between the two."""
    bench.run(rounds=1)

    def killed(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as context:
        context.setattr(checkpoint, "publish", killed)
        with pytest.raises(Killed):
            bench.run(rounds=1)
    assert [folder.name for folder in checkpoint.newest_first(bench.checkpoints)] == ["round-000001"]
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,)]
    assert [event.round for event in of(Round, bench.run(rounds=1))] == [2]
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,)]


def test_rows_beyond_the_checkpoint_are_forgotten(bench: Bench) -> None:
    """As after a kill between the history's transaction and the checkpoint's new name."""
    bench.run(rounds=3)
    shutil.rmtree(bench.checkpoints / "round-000003")
    (bench.checkpoints / ".writing-000003-1-aa").mkdir()
    bench.run(stop_when=lambda event: isinstance(event, events.Started))
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,)]
    assert rows(bench, "SELECT DISTINCT round FROM probes ORDER BY round") == [(0,), (2,)]
    seen = bench.run(rounds=1)
    assert not of(events.NodeNote, seen)
    assert [event.round for event in of(Round, seen)] == [3]
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,), (3,)]
    assert not list(bench.checkpoints.glob(".*"))


WRITES = {
    "the round": (checkpoint, "seal", {}),
    "its row": (Store, "add_round", {}),
    "a measurement": (Store, "add_probe", {}),
    "the run": (Store, "begin_run", {}),
    "the placement": (placing, "write", {"place": True}),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_full_disk_makes_it_wait_and_costs_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(keeping, "DISK_CHECK_S", 0.05)
    owner, name, changes = WRITES[what]
    write, phases, refusals = getattr(owner, name), [], [4]

    def refusing(*arguments: object) -> object:
        if not refusals[0]:
            return write(*arguments)
        refusals[0] -= 1
        assert bench.node is not None
        phases.append(bench.node.snapshot.phase)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(owner, name, refusing)
    seen = bench.run(rounds=3, **changes)
    assert not refusals[0] and (Phase.NO_ROOM in phases) == (what != "the run")  # which a new trainer begins
    notes = [event.sentence for event in of(events.NodeNote, seen)]
    assert [("is full" in one, "has room again" in one) for one in notes] == [(True, False), (False, True)]
    assert str(bench.home) in notes[0] and "free up" in notes[0]
    assert [event.round for event in of(Round, seen)] == [1, 2, 3] and seen[-1].reason == "rounds"
    assert rows(bench, "SELECT round FROM rounds ORDER BY round") == [(1,), (2,), (3,)]
    taken, counted = bench.steps(3)
    assert taken == counted
    assert sorted(path.name for path in bench.checkpoints.iterdir()) == ["round-000002", "round-000003"]


def test_what_a_trainer_had_no_room_for_is_begun_again_from_the_checkpoint(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A program that samples keeps its adapter on the disk as well."""
    monkeypatch.setattr(keeping, "DISK_CHECK_S", 0.05)
    monkeypatch.setenv("FAKE_TROUBLE", f"no room while sampling @{tmp_path / 'once'}")
    seen = bench.run(rounds=3)
    assert [event.round for event in of(Round, seen)] == [1, 2, 3] and (tmp_path / "once").exists()
    assert ["is full" in event.sentence for event in of(events.NodeNote, seen)] == [True, False]
    taken, counted = bench.steps(3)
    assert taken == counted


def test_a_node_that_waits_for_room_is_stopped_at_once_and_loses_the_round_in_flight_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(rounds=1)

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(checkpoint, "seal", full)
        bench.run(rounds=5, stop_when=lambda event: "is full" in getattr(event, "sentence", ""))
    assert bench.events[-1].reason == "stopped"
    assert [path.name for path in bench.checkpoints.iterdir()] == ["round-000001"]
    assert [event.round for event in of(Round, bench.run(rounds=1))] == [2]


def test_another_model_gets_a_folder_of_its_own(bench: Bench) -> None:
    bench.run(rounds=2)
    (bench.model / "model.safetensors").write_bytes(b"other weights")
    seen = bench.run(rounds=1)
    assert "a curve of its own" in of(events.NodeNote, seen)[0].sentence
    assert of(Round, seen)[0].round == 1
    assert len(list(bench.home.glob("models/*"))) == 2
