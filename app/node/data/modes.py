"""No one else reads the data folder: it and its folders are 0700, its files 0600, on systems that have modes.
On Windows the platform's own place belongs to its person already; a folder that --home names keeps its rights.

What a process makes gets these modes from `app.common.home.MASK`; here the folders of an older Shoal are
closed, once.
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
    """Makes the data folder if missing and closes it. Raises OSError where it cannot be made."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix":
        close(home)


def close(home: Path) -> None:
    """Closes what is ours, and the folder itself unless something else lies in it or all may write there.
    What the system does not let us close stays as it is."""
    for entry in contents.ours(home):
        if _open(entry):
            _close(entry)
    if _open(home) and all(entry.name == POINTER for entry in contents.others(home)):
        _shut(home)


def _close(entry: Path) -> None:
    """A folder itself comes last: killed before, it is gone through again at the next start."""
    if stat.S_ISDIR(entry.lstat().st_mode):
        for folder, folders, names in os.walk(entry):
            for name in (*folders, *names):
                _shut(Path(folder) / name)
    _shut(entry)


def _open(path: Path) -> bool:
    """Whether others may do anything with it. Links have no modes of their own."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        return not stat.S_ISLNK(mode) and bool(mode & _OTHERS) and not mode & stat.S_ISVTX
    return False


def _shut(path: Path) -> None:
    if _open(path):
        with suppress(OSError):
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
