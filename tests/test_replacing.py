"""A file gets another's name, also where a reader is in the way for an instant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app import replacing


def test_on_windows_a_reader_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, real = [], os.replace

    def refuses_twice(fresh: Path, path: Path) -> None:
        asked.append(path)
        if len(asked) < 3:
            raise PermissionError(13, "in use")
        real(fresh, path)

    monkeypatch.setattr(os, "replace", refuses_twice)
    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    replacing.replace(tmp_path / "new", tmp_path / "old", "win32")
    assert (tmp_path / "old").read_text() == "new" and len(asked) == 3
    asked.clear()
    (tmp_path / "new").write_text("newer")
    with pytest.raises(PermissionError):
        replacing.replace(tmp_path / "new", tmp_path / "old", "linux")


def test_who_never_lets_go_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise PermissionError(13, "in use")

    monkeypatch.setattr(os, "replace", refuses)
    monkeypatch.setattr(replacing, "PATIENCE_S", 0.05)
    with pytest.raises(PermissionError):
        replacing.replace(tmp_path / "new", tmp_path / "old", "win32")
