"""Where a soak runs: on a small disk of its own, and under a clock that can be moved."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.bench import Tell

DISK_MB = 320


def clock_library(out: Path) -> Path | None:
    """The library that moves the wall clock; None where nothing compiles it."""
    to = out / "clock.so"
    cc = shutil.which("cc")
    if cc is None:
        return None
    source = Path(__file__).with_name("clock.c")
    done = subprocess.run([cc, "-O2", "-shared", "-fPIC", "-o", to, source], capture_output=True)
    return to if done.returncode == 0 else None


@contextmanager
def disk(out: Path, tell: Tell) -> Iterator[Path]:
    """A small disk with the homes on it, which are kept in OUT/kept between pieces; without the right to mount
    one, that folder itself."""
    kept, place = out / "kept", out / "disk"
    kept.mkdir(exist_ok=True)
    place.mkdir(exist_ok=True)
    mounted = os.path.ismount(place) or _mounts(place)
    if not mounted:
        tell("This user may not mount a small disk: it is never full.")
        yield kept
        return
    if not (place / ".small").exists():
        shutil.copytree(kept, place, dirs_exist_ok=True)
        (place / ".small").touch()
    try:
        yield place
    finally:
        fresh = out / "kept.new"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(place, fresh, ignore=shutil.ignore_patterns(".small", "filler"))
        shutil.rmtree(kept)
        fresh.rename(kept)
        subprocess.run(["umount", place], capture_output=True)


def _mounts(place: Path) -> bool:
    if sys.platform != "linux" or os.geteuid():
        return False
    options = ["-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0700", "soak", str(place)]
    return subprocess.run(["mount", *options], capture_output=True).returncode == 0
