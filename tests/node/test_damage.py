"""What a node does about damaged files, full disks and other models: it goes on, says so, deletes nothing."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from app.node.history import checkpoint
from app.node.record import events
from app.node.record.errors import DiskFullError
from app.node.record.records import Round
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
        with pytest.raises(DiskFullError, match=r"is full: free up some space.*Round 4 is safe"):
            bench.run(rounds=5)
    names = [folder.name for folder in checkpoint.newest_first(bench.checkpoints)]
    assert names == ["round-000004", "round-000003"]
    assert bench.events[-1].reason == "failed" and "is full" in bench.events[-1].sentence
    seen = bench.run(rounds=1)
    assert [event.round for event in of(Round, seen)] == [5]
    assert [round_ for (round_,) in rows(bench, "SELECT round FROM rounds ORDER BY round")] == [1, 2, 3, 4, 5]


def test_a_disk_that_takes_nothing_leaves_the_last_safe_point(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(rounds=1)
    with monkeypatch.context() as context:
        no_room_while(context, lambda: True)
        with pytest.raises(DiskFullError, match="Round 1 is safe"):
            bench.run(rounds=5)
    assert [path.name for path in bench.checkpoints.iterdir()] == ["round-000001"]
    assert [event.round for event in of(Round, bench.run(rounds=1))] == [2]


def test_another_model_gets_a_folder_of_its_own(bench: Bench) -> None:
    bench.run(rounds=2)
    (bench.model / "model.safetensors").write_bytes(b"other weights")
    seen = bench.run(rounds=1)
    assert "another model" in of(events.NodeNote, seen)[0].sentence
    assert of(Round, seen)[0].round == 1
    assert len(list(bench.home.glob("models/*"))) == 2
