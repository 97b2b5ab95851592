"""What a child of ours starts with, whatever its owner's shell has set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.common.process import surroundings as ours

ROOT = Path(__file__).parents[2]


def test_a_numpy_of_the_owners_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('the owner\\'s')")
    given = {**os.environ, "PYTHONPATH": str(tmp_path)}
    asked = [sys.executable, "-c", "import numpy; print(numpy.zeros(2).sum())"]
    told = subprocess.run(asked, env=given, capture_output=True, text=True, cwd=tmp_path)
    assert "the owner's" in told.stderr, "this is what is guarded against"
    done = subprocess.run(
        asked, env=ours.child_environment(given), capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stdout.strip()) == (0, "0.0")
    assert ours.variables_left_out(ours.child_environment(given)) == ["PYTHONPATH"]
    assert ours.variables_left_out(ours.child_environment(ours.child_environment(given))) == ["PYTHONPATH"]


def test_only_folders_with_a_clashing_library_leave_the_path() -> None:
    files = {"/odd": ["libstdc++.so.6"], "/cuda": ["libcudart.so.12"], "/lib64": ["libstdc++.so.6"]}

    def names(place: str) -> list[str]:
        return files.get(place, [])

    assert ours.without_clashing("/odd:/cuda", names, ("/lib64",)) == "/cuda"
    assert ours.without_clashing("/odd:/cuda", names, ("/nowhere",)) == "/odd:/cuda"
    assert ours.without_clashing("/lib64", names, ("/lib64",)) == "/lib64"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a folder that is in use")
def test_a_deleted_folder_and_closed_streams_do_no_harm(tmp_path: Path) -> None:
    """`./shoal --help` in a folder that is gone, its standard output closed."""
    gone = tmp_path / "gone"
    gone.mkdir()
    words = f'rmdir "{gone}"; "{sys.executable}" "{ROOT / "shoal"}" --help >&-'
    done = subprocess.run(["/bin/sh", "-c", words], cwd=gone, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
