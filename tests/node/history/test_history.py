from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from app.node.history import history
from app.node.history.store import Store

SCHEMA = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, started REAL, ended REAL, first_round INTEGER, outcome TEXT, settings TEXT, engine TEXT);
CREATE TABLE rounds (round INTEGER PRIMARY KEY, run INTEGER, at REAL, seconds REAL, informative_own INTEGER, informative_peer INTEGER, train_solved REAL, details TEXT);
CREATE TABLE groups (round INTEGER, position INTEGER, source TEXT, family TEXT, level INTEGER, seed INTEGER, item INTEGER, version TEXT, rewards TEXT, finished TEXT, scores TEXT, completions TEXT, PRIMARY KEY (round, position)) WITHOUT ROWID;
CREATE TABLE probes (round INTEGER, questions_mark TEXT, at REAL, questions INTEGER, pass_at_1 REAL, stderr REAL, details TEXT, PRIMARY KEY (round, questions_mark));
CREATE TABLE events (id INTEGER PRIMARY KEY, at REAL, round INTEGER, kind TEXT, sentence TEXT);
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A history of the first format, as old homes have it."""
    made = tmp_path / "models" / "starter-12345678"
    made.mkdir(parents=True)
    with sqlite3.connect(made / "history.sqlite") as db:
        db.executescript(SCHEMA)
        db.execute(
            'INSERT INTO runs VALUES (1, 10, NULL, 1, NULL, \'{}\', \'{"name":"torch","device":"CPU"}\')'
        )
        for at in (1, 2):
            db.execute(
                'INSERT INTO rounds VALUES (?, 1, ?, 2, 3, 0, 0.5, \'{"families":{"gcd":[0,4,8]}}\')',
                (at, 100.0 + at),
            )
            db.execute(
                "INSERT INTO groups VALUES (?, 0, 'own', 'gcd', 0, 7, 0, 'v', '[1,0]', '[true,true]', "
                "'[1,0]', '[\"4\",\"5\"]')",
                (at,),
            )
        db.execute("INSERT INTO probes VALUES (0, 'old', 50, 64, 0.9, 0.1, '{\"families\":{}}')")
        db.execute("INSERT INTO probes VALUES (0, 'new', 90, 256, 0.2, 0.02, '{\"families\":{\"gcd\":0.2}}')")
        db.execute("INSERT INTO events VALUES (1, 95, 0, 'note', 'A new adapter.')")
    return made


def test_everything_comes_back(folder: Path, tmp_path: Path) -> None:
    assert history.newest(tmp_path) == folder
    found = history.read(folder)
    assert [point.share for point in found.curve] == [0.2], "probes over other questions are another curve"
    assert [(row.round, row.solved, row.answered) for row in found.rounds] == [(1, 4, 8), (2, 4, 8)]
    assert found.runs[0].engine == "torch CPU" and found.runs[0].last_round == 2
    assert found.groups[0].round == 2
    assert (found.groups[0].completions_G, found.groups[0].rewards_G) == (("4", "5"), (1, 0))
    assert found.happenings[0].sentence == "A new adapter."


def test_it_is_the_same_after_a_node_has_taken_it_over(folder: Path) -> None:
    before = history.read(folder)
    with sqlite3.connect(folder / "history.sqlite") as db:
        db.execute("PRAGMA user_version=1")
    store = Store(folder / "history.sqlite")
    assert store.last_round() == 2 and [probe.share for probe in store.probes("old")] == [0.9]
    store.close()
    assert history.read(folder) == before and len(before.rounds) == 2
    Store(folder / "history.sqlite").close()
    assert history.read(folder) == before


def test_nothing_is_written_by_reading(folder: Path) -> None:
    file = folder / "history.sqlite"
    before = file.read_bytes(), file.stat().st_mtime_ns
    history.read(folder)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be looked at as one" * 40])
def test_a_damaged_history_is_an_empty_past(folder: Path, content: bytes) -> None:
    (folder / "history.sqlite").write_bytes(content)
    assert history.read(folder).rounds == ()


def test_no_history_at_all(tmp_path: Path) -> None:
    assert history.newest(tmp_path) is None and history.read(None).curve == ()


def test_the_history_written_last_is_taken(folder: Path, tmp_path: Path) -> None:
    import os

    other = tmp_path / "models" / "other-1"
    other.mkdir()
    (other / "history.sqlite").write_bytes(b"")
    os.utime(other / "history.sqlite", (time.time() + 60, time.time() + 60))
    assert history.newest(tmp_path) == other
