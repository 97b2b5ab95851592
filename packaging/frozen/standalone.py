"""The Python that engine packs are made with on Windows and macOS, whose own systems bring none."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import shutil
import tarfile
from pathlib import Path

from frozen.errors import BuildError

KNOWN = Path(__file__).resolve().parents[1] / "release" / "python.json"
_LIBRARY = ("lib/python3.*", "Lib")
NOT_NEEDED = (
    *("include", "share", "tcl", "libs", "lib/pkgconfig", "DLLs/_tkinter*", "DLLs/tcl*", "DLLs/tk*"),
    *("lib/tcl*", "lib/tk*", "lib/thread*", "lib/itcl*", "lib/libtcl*", "lib/libtk*"),
    *(
        f"{place}/{name}"
        for place in _LIBRARY
        for name in ("test", "idlelib", "tkinter", "turtledemo", "config-*")
    ),
    *(f"{place}/{name}" for place in _LIBRARY for name in ("lib-dynload/_tkinter*", "site-packages/pip*")),
)
"""What is left out of what it brings: headers, manual pages, its own tests, a toolkit for windows, and pip."""


def carry(archive: Path, to: Path) -> None:
    """Unpacks an archive of python-build-standalone whose digest is known. Raises BuildError."""
    known = {
        one["file"]: one["sha256"] for one in json.loads(KNOWN.read_text(encoding="utf-8"))["files"].values()
    }
    try:
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BuildError(f"{archive} cannot be read ({error.strerror}): fetch it again.") from error
    if known.get(archive.name) != digest:
        raise BuildError(
            f"{archive.name} is not the file that packaging/release/python.json names: fetch it with "
            "packaging/release/python."
        )
    unpack(archive, to)


def unpack(archive: Path, to: Path) -> None:
    """Its folder python/ becomes `to`, less what no one needs. Raises BuildError."""
    fresh = to.with_name(f".{to.name}-new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(to, ignore_errors=True)
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(fresh, filter="data")
        (fresh / "python").rename(to)
    except (OSError, tarfile.TarError) as error:
        raise BuildError(f"{archive.name} cannot be unpacked ({error}): fetch it again.") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    for path in sorted(to.rglob("*")):
        if any(fnmatch.fnmatchcase(path.relative_to(to).as_posix(), one) for one in NOT_NEEDED):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
