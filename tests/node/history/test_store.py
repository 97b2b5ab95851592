"""The history: transactions, forgetting, full disks."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.node.data.home import NewerVersionError
from app.node.history import history
from app.node.history.store import Store
from app.node.record import errors, records
from app.sapo.questions import Coordinates

GROUP = records.GroupRow(
    round=1,
    at=0.0,
    coordinates=Coordinates(family="gcd", level=0, seed=2**53 - 1, index=0),
    rewards_G=(0, 1),
    finished_G=(True, False),
    scores_G=(0.0, 1.0),
    completions_G=("#1 \N{SNOWMAN}", "\x00\n"),
)


def round_row(number: int) -> records.Round:
    return records.Round(
        round=number, run=1, seconds=1.0, informative_own=1, train_solved=0.5, tokens=10, sample_s=2.0,
        families={"gcd": (0, 1, 2)},
    )  # fmt: skip


def probe_row(number: int, mark: str = "m") -> records.Probe:
    return records.Probe(
        round=number, questions_mark=mark, questions=4, share=0.25, stderr=0.2, families={"gcd": 0.25}
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "history.sqlite")


def test_a_round_is_written_whole_or_not_at_all(store: Store) -> None:
    broken = msgspec.structs.replace(GROUP, coordinates=Coordinates(family="gcd", level=0, seed=2**64, index=0))
    with pytest.raises(OverflowError):
        store.add_round(round_row(1), [GROUP, broken])
    assert store.last_round() == 0
    store.add_round(round_row(1), [GROUP, GROUP])
    assert store.last_round() == 1


def test_writing_a_round_again_leaves_no_doubles(store: Store, tmp_path: Path) -> None:
    store.add_round(round_row(1), [GROUP, GROUP, GROUP])
    store.add_round(round_row(1), [GROUP])
    with sqlite3.connect(tmp_path / "history.sqlite") as db:
        assert db.execute("SELECT (SELECT count(*) FROM rounds), (SELECT count(*) FROM groups)").fetchone() == (
            1,
            1,
        )


def test_what_is_read_back_has_its_question_without_making_it_again(store: Store, tmp_path: Path) -> None:
    known = msgspec.structs.replace(GROUP, question="What is the greatest common divisor of 4 and 6?")
    store.add_round(round_row(1), [known, GROUP])
    assert [one.question for one in history.read(tmp_path).groups] == [known.question, None]


def test_forgetting_what_lies_beyond_a_round(store: Store) -> None:
    for number in (1, 2, 3):
        store.add_round(round_row(number), [GROUP])
        store.add_probe(probe_row(number))
    assert store.forget_after(1) == 2
    assert store.last_round() == 1 and [row.round for row in store.probes("m")] == [1]
    assert store.forget_after(1) == 0


def test_probes_come_back_as_they_were_and_curves_do_not_mix(store: Store) -> None:
    store.add_probe(probe_row(2))
    store.add_probe(probe_row(0))
    store.add_probe(probe_row(1, "other"))
    assert store.probes("m") == [probe_row(0), probe_row(2)]


def test_events_are_bounded(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.node.history.store.EVENTS_KEPT", 3)
    for number in range(9):
        store.add_event(records.LogEntry(at=0.0, round=number, kind="note", sentence="x"))
    with sqlite3.connect(tmp_path / "history.sqlite") as db:
        assert db.execute("SELECT round FROM events ORDER BY id").fetchall() == [(6,), (7,), (8,)]


def test_another_reader_sees_rounds_while_the_node_writes(store: Store, tmp_path: Path) -> None:
    store.add_round(round_row(1), [GROUP])
    with sqlite3.connect(f"file:{tmp_path / 'history.sqlite'}?mode=ro", uri=True) as db:
        db.execute("BEGIN")
        assert db.execute("SELECT count(*) FROM rounds").fetchone() == (1,)
        store.add_round(round_row(2), [GROUP])
        assert db.execute("SELECT count(*) FROM rounds").fetchone() == (1,)


def test_a_history_of_a_later_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "history.sqlite") as db:
        db.execute("PRAGMA user_version=99")
    with pytest.raises(NewerVersionError, match="format 99"):
        Store(tmp_path / "history.sqlite")


def test_a_kill_in_the_middle_of_a_transaction_leaves_nothing_of_it(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from app.node.history.store import Store\n"
        "sys.path.insert(0, '.'); from tests.node.history.test_store import GROUP, round_row\n"
        f"store = Store(Path({str(tmp_path / 'history.sqlite')!r})); store.add_round(round_row(1), [GROUP])\n"
        "def groups():\n"
        "    yield GROUP\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "store.add_round(round_row(2), groups())"
    )
    killed = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], timeout=30)
    assert killed.returncode == -9
    store = Store(tmp_path / "history.sqlite")
    assert store.last_round() == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no size limit to set")
def test_no_room_is_recognised_and_what_was_there_stays(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from pathlib import Path; from app.node.history.store import Store\n"
        "from app.node.record.errors import raising_disk_full, DiskFullError\n"
        "sys.path.insert(0, '.'); from tests.node.history.test_store import GROUP, round_row\n"
        f"store = Store(Path({str(tmp_path / 'history.sqlite')!r})); store.add_round(round_row(1), [GROUP])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "try:\n"
        "    with raising_disk_full(Path('somewhere')): store.add_round(round_row(2), [GROUP] * 9000)\n"
        "except DiskFullError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert "somewhere is full" in done.stdout and done.stdout.count("\n") == 1, done.stderr
    store = Store(tmp_path / "history.sqlite")
    assert store.last_round() == 1
    store.add_round(round_row(2), [GROUP])


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(28, "No space left on device"), True),
        (OSError(122, "Disk quota exceeded"), True),
        (OSError(27, "File too large"), True),
        (OSError(13, "Permission denied"), False),
        (RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"), True),
        (RuntimeError("no room"), False),
    ],
)
def test_how_systems_say_that_a_disk_is_full(error: Exception, full: bool) -> None:
    assert errors.says_disk_full(error) is full
    try:
        raise ValueError("saving failed") from error
    except ValueError as outer:
        assert errors.says_disk_full(outer) is full
