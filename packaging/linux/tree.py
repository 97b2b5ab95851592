"""Lays out the tree installed on Linux below a folder: usr/lib/shoal, usr/bin and usr/share.

All files get the date of the last commit and fixed permissions, so the same commit gives the same bytes."""

from __future__ import annotations

import calendar
import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

from frozen.bundle import ROOT, BuildError, Bundle, run
from linux import tables

HERE = Path(__file__).resolve().parent
PIXELS = (48, 128, 256)

_LICENCES = """
import importlib.metadata
for one in importlib.metadata.distributions():
    for file in one.files or ():
        if file.name.upper().startswith(("LICEN", "COPYING", "NOTICE")):
            print(one.metadata["Name"], file.locate(), sep="\\t")
"""
_DRAW = """
import sys
from PySide6.QtGui import QGuiApplication, QIcon
application = QGuiApplication([])
QIcon(sys.argv[1]).pixmap(int(sys.argv[3])).save(sys.argv[2])
"""


def lay_out(made: Bundle, to: Path) -> Path:
    """Builds the tree from scratch and returns its folder. Raises BuildError."""
    shutil.rmtree(to, ignore_errors=True)
    share, library = to / "usr" / "share", to / "usr" / "lib" / "shoal"
    shutil.copytree(made.folder, library, symlinks=True)
    _slim(library)
    (to / "usr" / "bin").mkdir(parents=True)
    (to / "usr" / "bin" / "shoal").symlink_to("../lib/shoal/shoal")
    _put(HERE / "shoal.desktop", share / "applications" / "shoal.desktop", made)
    _put(HERE / "metainfo.xml", share / "metainfo" / "io.github.shoal.Shoal.metainfo.xml", made)
    _put(HERE / "lintian-overrides", share / "lintian" / "overrides" / "shoal", made)
    _put(HERE / "copyright", share / "doc" / "shoal" / "copyright", made)
    _squeeze((HERE / "shoal.1").read_text(encoding="utf-8"), share / "man" / "man1" / "shoal.1.gz", made)
    _squeeze(_changelog(made), share / "doc" / "shoal" / "changelog.gz", made)
    _icons(made, share / "icons" / "hicolor")
    _licences(made, share / "doc" / "shoal" / "licences")
    set_permissions_and_dates(to, made)
    return to


def set_permissions_and_dates(tree: Path, made: Bundle) -> None:
    """Sets permissions and dates of everything below `tree`."""
    date = epoch(made)
    for path in sorted(tree.rglob("*"), reverse=True):  # a folder's date changes with what is in it
        if not path.is_symlink():
            program = path.stat().st_mode & 0o100 and ".so" not in path.name
            path.chmod(0o755 if path.is_dir() or program else 0o644)
        os.utime(path, (date, date), follow_symlinks=False)


def epoch(made: Bundle) -> int:
    """Returns the day of the last commit in seconds since 1970."""
    return calendar.timegm(made.date.timetuple())


def size(tree: Path) -> int:
    """Returns the bytes of all files."""
    return sum(path.stat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())


def output(*command: str | Path, **variables: str) -> str:
    """Runs a program and returns its stdout, stripped. Raises BuildError."""
    return run(command, {**os.environ, **variables}).strip()


def _slim(folder: Path) -> None:
    """Strips symbol tables from the libraries, and reduces ICU's data. The program itself is not stripped:
    Python's archive is appended to it."""
    for path in sorted(folder.rglob("*.so*")):
        if path.is_file() and not path.is_symlink():
            subprocess.run(["strip", "--strip-unneeded", path], stderr=subprocess.DEVNULL)
    translated = (ROOT / "resources" / "translations").glob("*.qm")
    languages = {"en", *(path.stem.rpartition("_")[2] for path in translated)}
    for path in folder.rglob("libicudata.so.*"):
        try:
            tables.shrink(path, languages)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise BuildError(f"ICU's tables cannot be made smaller ({error}).") from error


def _put(source: Path, to: Path, made: Bundle) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(_filled(source.read_text(encoding="utf-8"), made), encoding="utf-8")


def _squeeze(text: str, to: Path, made: Bundle) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(gzip.compress(_filled(text, made).encode(), 9, mtime=0))


def _filled(text: str, made: Bundle) -> str:
    return text.replace("@VERSION@", made.version).replace("@DATE@", made.date.isoformat())


def _changelog(made: Bundle) -> str:
    signed = f" -- The Shoal authors <shoal@example.org>  {made.date:%a, %d %b %Y} 00:00:00 +0000"
    return f"shoal ({made.version}) stable; urgency=low\n\n  * Release {made.version}.\n\n{signed}\n"


def _icons(made: Bundle, to: Path) -> None:
    source = ROOT / "resources" / "icons" / "shoal.svg"
    scalable = to / "scalable" / "apps"
    scalable.mkdir(parents=True)
    shutil.copyfile(source, scalable / "shoal.svg")
    for pixels in PIXELS:
        folder = to / f"{pixels}x{pixels}" / "apps"
        folder.mkdir(parents=True)
        drawn = folder / "shoal.png"
        output(made.python, "-c", _DRAW, source, drawn, str(pixels), QT_QPA_PLATFORM="offscreen")


def _licences(made: Bundle, to: Path) -> None:
    """Copies each bundled package's licence files."""
    to.mkdir(parents=True)
    for line in output(made.python, "-c", _LICENCES).splitlines():
        name, _, path = line.partition("\t")
        if name not in ("pip", "setuptools", "pyinstaller", "uv") and Path(path).is_file():
            shutil.copyfile(path, to / f"{name}-{Path(path).name}")


_SYMBOL = re.compile(r"Name: GLIBC_(\d+)\.(\d+)")


def newest_symbol(folder: Path) -> tuple[int, int]:
    """Returns the newest glibc version that any file below `folder` needs.

    >>> newest_symbol(Path("/nowhere"))
    (2, 17)
    """
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    named = [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]
    if not named:
        return 2, 17
    done = subprocess.run(["readelf", "-W", "-V", *named], capture_output=True, text=True)
    return max(((int(one), int(two)) for one, two in _SYMBOL.findall(done.stdout)), default=(2, 17))
