"""What a limit on the disk takes, in which order, and what it never takes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.node.data import contents
from app.node.history.store import Store

MB = 10**6


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "starter-1"
    Store(folder / "history.sqlite").close()
    with closing(sqlite3.connect(folder / "history.sqlite")) as db, db:
        for at in range(1, 61):
            db.execute("INSERT INTO rounds VALUES (?, '{}')", (at,))
            db.execute(
                "INSERT INTO groups VALUES (?, 0, 'own', 'gcd', 0, 7, 0, 'v', '[1]', '[true]', '[1]', ?, "
                "NULL, 'gcd(4, 6)?')",
                (at, "x" * 50_000),
            )
        db.execute("INSERT INTO probes VALUES (0, 'm', '{}')")
    write(folder / "checkpoints" / "000060" / "adapter_model.safetensors", 2 * MB)
    write(tmp_path / "hub" / "weights", 3 * MB)
    write(tmp_path / "logs" / "node.old.log", MB)
    write(tmp_path / "logs" / "node.log", MB)
    write(tmp_path / "cache" / "gguf" / "old.gguf", 2 * MB)
    write(tmp_path / "cache" / "gguf" / "used.gguf", MB)
    os.utime(tmp_path / "cache" / "gguf" / "old.gguf", (1, 1))
    return tmp_path


def write(path: Path, length: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"line of a log\n" * (length // 14))


def kinds(home: Path) -> dict[str, int]:
    return {row.kind: row.bytes for row in contents.sizes(home)}


def texts(home: Path) -> int:
    with closing(sqlite3.connect(home / "models" / "starter-1" / "history.sqlite")) as db, db:
        kept = "SELECT count(*) FROM groups WHERE completions IS NOT NULL OR question IS NOT NULL"
        return int(db.execute(kept).fetchone()[0])


def test_without_a_limit_or_below_it_nothing_happens(home: Path) -> None:
    before = kinds(home)
    assert contents.delete_old_data(home, 0).sentence == contents.delete_old_data(home, 10**12).sentence == ""
    assert kinds(home) == before and texts(home) == 60


def test_rounds_that_an_earlier_version_kept_to_go_back_to_go_before_all_else(home: Path) -> None:
    write(home / "models" / "starter-1" / "points" / "round-000040" / "adapter_model.safetensors", MB)
    contents.delete_old_data(home, contents.folder_size(home) - MB // 2)
    assert not (home / "models" / "starter-1" / "points").exists() and texts(home) == 60


def test_answers_go_first_then_logs_then_what_can_be_made_again(home: Path) -> None:
    whole = contents.folder_size(home)
    found = contents.delete_old_data(home, whole - MB)
    assert (
        texts(home) == 20
        and (home / "logs" / "node.old.log").exists()
        and "MB of old answers" in found.sentence
    )
    assert found.before == whole and found.after == contents.folder_size(home) < whole - MB
    contents.delete_old_data(home, contents.folder_size(home) - MB // 2)
    assert not (home / "logs" / "node.old.log").exists() and kinds(home)["logs"] > MB // 2
    contents.delete_old_data(home, contents.folder_size(home) - MB // 2)
    assert 60_000 < kinds(home)["logs"] < 70_000 and (home / "logs" / "node.log").read_text().startswith("line")
    assert (home / "cache" / "gguf" / "old.gguf").exists()
    contents.delete_old_data(home, contents.folder_size(home) - MB // 2)
    assert (
        not (home / "cache" / "gguf" / "old.gguf").exists() and (home / "cache" / "gguf" / "used.gguf").exists()
    )


def test_what_was_learned_is_never_taken_and_a_limit_below_it_is_told(home: Path) -> None:
    found = contents.delete_old_data(home, 1)
    assert "Delete models you don't need" in found.sentence and found.after > 5 * MB
    assert kinds(home)["models"] > 2.9 * MB
    assert (home / "models" / "starter-1" / "checkpoints" / "000060" / "adapter_model.safetensors").exists()
    with closing(sqlite3.connect(home / "models" / "starter-1" / "history.sqlite")) as db, db:
        for table, rows in (("rounds", 60), ("groups", 60), ("probes", 1)):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (rows,)
    assert contents.delete_old_data(home, 1).after == found.after, "there is nothing more to take"


def test_a_history_that_is_being_written_is_left_for_later(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_PATIENCE_S", 0.05)
    with closing(sqlite3.connect(home / "models" / "starter-1" / "history.sqlite")) as db, db:
        db.execute("BEGIN IMMEDIATE")
        contents.delete_old_data(home, 1)
        db.rollback()
    assert texts(home) == 60 and not (home / "logs" / "node.old.log").exists()


def test_a_node_goes_on_writing_beside_it(home: Path) -> None:
    store = Store(home / "models" / "starter-1" / "history.sqlite")
    contents.delete_old_data(home, 1)
    assert store.begin_run(61, {}, {}) == 1 and store.last_round() == 60
    store.close()
