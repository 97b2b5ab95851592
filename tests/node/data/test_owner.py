"""One start with sudo: what root left is not damaged, and nothing of the owner's is renamed for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform == "win32" or os.geteuid() != 0:
    pytest.skip("only root can become another user", allow_module_level=True)

ROOT = Path(__file__).parents[3]
NOBODY = 65534
OPENS = """
import os, pathlib, pwd, sys
from app.node.data.home import prepare_data_folder
if int(sys.argv[2]):
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
prepare_data_folder(pathlib.Path(sys.argv[1]))
"""
"""Imports first: another user may have no right to this copy of Shoal."""


@pytest.fixture
def home() -> Iterator[Path]:
    """A data folder of another user's, with a checkpoint, in a folder that everybody may enter."""
    above = Path(tempfile.mkdtemp())
    above.chmod(0o755)
    made = above / "home"
    point = made / "models" / "starter-1" / "checkpoints" / "round-000002"
    point.mkdir(parents=True)
    (point / "state.json").write_text("{}")
    for path in (made, *made.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    yield made
    shutil.rmtree(above)


def opened(home: Path, user: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", OPENS, str(home), str(user)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True)


def test_root_is_refused_in_somebody_elses_folder(home: Path) -> None:
    before = sorted(home.rglob("*"))
    done = opened(home, 0)
    assert "NodeError" in done.stderr and "without sudo" in done.stderr
    assert sorted(home.rglob("*")) == before
    done = opened(home, NOBODY)
    assert done.returncode == 0, done.stderr


def test_what_a_disk_has_of_its_own_and_what_its_owner_protects_is_nobodys_fault(home: Path) -> None:
    (home / "lost+found").mkdir(mode=0o700)
    (home / "models" / "starter-1" / "note.txt").write_text("mine")
    (home / "models" / "starter-1" / "note.txt").chmod(0o444)
    os.chown(home / "models" / "starter-1" / "note.txt", NOBODY, NOBODY)
    done = opened(home, NOBODY)
    assert done.returncode == 0, done.stderr


def test_what_root_left_is_told_with_the_command_that_mends(home: Path) -> None:
    for path in (home / "models").rglob("*"):
        os.chown(path, 0, 0)
        path.chmod(0o700 if path.is_dir() else 0o600)
    before = sorted(home.rglob("*"))
    done = opened(home, NOBODY)
    assert "NodeError" in done.stderr and f"sudo chown -R nobody {home}" in done.stderr, done.stderr
    assert sorted(home.rglob("*")) == before
