"""Nobody else can read the data folder: it and its folders have mode 0700, its files 0600, on systems with
modes. On Windows the platform's own place already belongs to its user; a folder that --home names keeps its
rights.

New files get these modes from `app.common.home.MASK`; here the folders of an older Shoal are closed, once.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from app.common.home import POINTER
from app.node.data import contents

_OTHERS = 0o077


def make(home: Path) -> None:
    """Creates the data folder if missing and closes it to others. Raises OSError if it cannot be created."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix":
        close(home)


def close(home: Path) -> None:
    """Closes our files to others, and the folder itself unless it has other contents or everybody may write
    there. Files whose mode the system refuses to change stay as they are."""
    for entry in contents.ours(home):
        if _open(entry):
            _close(entry)
    if _open(home) and all(entry.name == POINTER for entry in contents.others(home)):
        _shut(home)


def _close(entry: Path) -> None:
    """A folder itself is closed last: if the process is killed before, the next start goes through it again."""
    if stat.S_ISDIR(entry.lstat().st_mode):
        for folder, folders, names in os.walk(entry):
            for name in (*folders, *names):
                _shut(Path(folder) / name)
    _shut(entry)


def _open(path: Path) -> bool:
    """Whether others have any rights to it. Links have no modes of their own."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        return not stat.S_ISLNK(mode) and bool(mode & _OTHERS) and not mode & stat.S_ISVTX
    return False


def _shut(path: Path) -> None:
    if _open(path):
        with suppress(OSError):
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
