"""Programs that tests run and Shoal does not bring: from the environment, from PATH, or Debian's package,
downloaded and unpacked but not installed."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest


@functools.cache
def _found(name: str, variable: str, place: str) -> tuple[str | None, str]:
    """The program, or why there is none. Asked once a run."""
    found = (
        os.environ.get(variable) or shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    )
    if found:
        return found, ""
    user = os.getuid() if hasattr(os, "getuid") else 0
    cache = Path(tempfile.gettempdir()) / f"shoal-tests-{user}" / name
    there = cache / place
    if there.exists():
        return str(there), ""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return None, f"no {name}: put one on PATH or name it in {variable}"
    cache.parent.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as folder:
        quiet: dict[str, Any] = {"cwd": folder, "check": True, "capture_output": True, "timeout": 60}
        try:
            subprocess.run(["apt-get", "download", name], **quiet)
            (package,) = Path(folder).glob("*.deb")
            subprocess.run(["dpkg", "-x", str(package), "root"], **quiet)
            (Path(folder) / "root").rename(cache)
        except (subprocess.SubprocessError, OSError, ValueError):
            if not there.exists():  # another test process may have been quicker
                return None, f"no {name}, and Debian's cannot be downloaded here: name one in {variable}"
    return str(there), ""


def program(name: str, variable: str, place: str) -> str:
    """Where `name` is; `place` is its path in the package of the same name. Skips the test where it cannot be
    had."""
    found, why = _found(name, variable, place)
    if found is None:
        pytest.skip(why)
    return found
