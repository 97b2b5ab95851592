"""The needs of programs and libraries from the system."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_SYMBOL = re.compile(r"Name: GLIBC_(\d+)\.(\d+)")


def newest_symbol(folder: Path) -> tuple[int, int]:
    """The oldest C library that has everything that the files below ask it for.

    >>> newest_symbol(Path("/nowhere"))
    (2, 17)
    """
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    named = [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]
    if not named:
        return 2, 17
    done = subprocess.run(["readelf", "-W", "-V", *named], capture_output=True, text=True)
    return max(((int(one), int(two)) for one, two in _SYMBOL.findall(done.stdout)), default=(2, 17))
