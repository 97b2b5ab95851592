"""An older Shoal and a data folder of a newer one: a sentence, and not a byte is changed. A newer one and an
older folder: everything goes on."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.install.updates import installed
from app.node.data.home import (
    FORMAT,
    FORMAT_FILE,
    Format,
    NewerVersionError,
    check_format,
    read_format,
    stamp_format,
)
from app.node.history import checkpoint, store
from app.node.history.resume import HISTORY, open_history
from app.node.rules.preferences import Preferences
from app.swarm.client import outbox
from app.ui.view.settings import Choices

ROOT = Path(__file__).parents[3]
WITH = {2: (3, 1, 1), 3: (4, 1, 1)}
"""Formats of the data folder, and with which formats of history, checkpoints and outbox each of them goes."""


def contents(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app.cli", *options, "--home", str(home)]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


def write(home: Path, format_: int, version: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / FORMAT_FILE).write_bytes(msgspec.json.encode(Format(format=format_, version=version)))


def test_the_folders_format_goes_up_with_any_of_its_files() -> None:
    assert WITH[FORMAT] == (store.FORMAT, checkpoint.FORMAT, outbox.FORMAT), (
        "raise app.node.data.home.FORMAT too"
    )


def test_a_folder_is_stamped_once_for_each_version(tmp_path: Path) -> None:
    stamp_format(tmp_path)
    path = tmp_path / FORMAT_FILE
    assert read_format(tmp_path) == Format(format=FORMAT, version=installed.version())
    before = path.stat().st_mtime_ns
    stamp_format(tmp_path)
    assert path.stat().st_mtime_ns == before
    write(tmp_path, FORMAT, "0.0.1")
    stamp_format(tmp_path)
    assert read_format(tmp_path) == Format(format=FORMAT, version=installed.version())
    for nonsense in (b"", b"[]", b'{"format": "x"}', b"\xff"):
        path.write_bytes(nonsense)
        check_format(tmp_path)


def test_a_newer_folder_is_left_as_it_is(tmp_path: Path) -> None:
    """The node, before it takes the lock."""
    home = tmp_path / "home"
    write(home, FORMAT + 1, "0.9.0")
    (home / "settings.json").write_text('{"idle_s": 61, "later": [1]}')
    before = contents(home)
    done = run(home, "run", "--solo", "--rounds", "1")
    assert done.returncode == 1 and contents(home) == before
    assert "was last used by Shoal 0.9.0, and this is" in done.stderr and "install that version" in done.stderr
    write(home, FORMAT + 1, "<b>")
    with pytest.raises(NewerVersionError, match="by a newer Shoal"):
        check_format(home)


def test_a_newer_history_or_checkpoint_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    made, said = open_history(tmp_path)
    made.begin_run(1, {}, {})
    made.close()
    assert not said
    with sqlite3.connect(tmp_path / HISTORY) as db:
        db.execute("PRAGMA user_version=9")
    db.close()
    with pytest.raises(NewerVersionError, match="of format 9"):
        open_history(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if "damaged" in path.name] == []
    with sqlite3.connect(tmp_path / HISTORY) as db:
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    db.close()
    safe = tmp_path / "round-000001"
    safe.mkdir()
    (safe / checkpoint.STATE_FILE).write_text('{"format": 9, "all": "different"}')
    with pytest.raises(NewerVersionError, match="of format 9"):
        checkpoint.read(safe, "m")
    (safe / checkpoint.STATE_FILE).write_text('{"format": 0}')
    with pytest.raises(checkpoint.CheckpointError):
        checkpoint.read(safe, "m")


def test_settings_of_a_newer_version_survive_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"idle_s": 61, "later": [1, {"a": 2}]}')
    (tmp_path / "window.json").write_text('{"theme": "dark", "sound": "loud"}')
    made = Preferences(tmp_path)
    made.change({"idle_s": 90})
    choices = Choices(tmp_path)
    choices.put("theme", "light")
    kept = msgspec.json.decode((tmp_path / "settings.json").read_bytes())
    assert kept == {"idle_s": 90, "later": [1, {"a": 2}]} and Preferences(tmp_path).values["idle_s"] == 90
    window = msgspec.json.decode((tmp_path / "window.json").read_bytes())
    assert window["sound"] == "loud" and window["theme"] == "light"
