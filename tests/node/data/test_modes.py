"""The data folder is its owner's alone: new ones, those of an older Shoal, and not what others put there."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from app.node.data import home as data_home
from app.node.data.home import make_private, prepare_data_folder, restrict_to_owner
from app.node.record.errors import NodeError

if os.name != "posix":
    pytest.skip("modes are of POSIX", allow_module_level=True)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """As an older Shoal left it."""
    home = tmp_path / "home"
    for name in ("logs", "models/starter-1/checkpoints", "cache"):
        (home / name).mkdir(parents=True, mode=0o755)
    for name in ("identity.json", "logs/node.log", "models/starter-1/history.sqlite", "cache/tool"):
        (home / name).write_text("x")
        (home / name).chmod(0o644)
    (home / "cache" / "tool").chmod(0o755)
    home.chmod(0o755)
    return home


def test_an_older_home_is_closed_with_all_that_is_in_it(old: Path) -> None:
    (old / "cache" / "elsewhere").symlink_to(old.parent / "target")
    (old.parent / "target").write_text("y")
    before = mode(old.parent / "target")
    prepare_data_folder(old)
    assert mode(old) == mode(old / "models" / "starter-1") == 0o700
    assert mode(old / "logs" / "node.log") == mode(old / "models/starter-1/history.sqlite") == 0o600
    assert mode(old / "cache" / "tool") == 0o700, "what runs goes on running"
    assert mode(old.parent / "target") == before


def test_a_folder_that_others_use_too_stays_open_but_not_what_is_ours(old: Path) -> None:
    (old / "holiday.jpg").write_text("x")
    (old / "holiday.jpg").chmod(0o644)
    restrict_to_owner(old)
    assert mode(old) == 0o755 and mode(old / "holiday.jpg") == 0o644
    assert mode(old / "logs") == 0o700 and mode(old / "identity.json") == 0o600


def test_a_closed_home_is_not_gone_through_again(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restrict_to_owner(old)
    monkeypatch.setattr(data_home, "_close_tree", lambda entry: pytest.fail(f"{entry} again"))
    restrict_to_owner(old)
    (old / "logs" / "node.log").chmod(0o644)  # nobody gets there
    restrict_to_owner(old)


def test_a_place_where_all_may_write_is_not_taken_from_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    make_private(tmp_path)
    assert mode(tmp_path) == 0o1777


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is Unicode")
def test_a_folder_whose_name_the_trainer_cannot_be_told_is_refused(tmp_path: Path) -> None:
    home = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    with pytest.raises(NodeError, match="isn't UTF-8"):
        prepare_data_folder(home)
    assert not home.exists()
    assert prepare_data_folder(tmp_path / "café 山").is_dir()
