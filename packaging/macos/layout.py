"""Lays the bundle out as macOS can sign it: code in Contents/Frameworks, everything else in
Contents/Resources.

A signature is stored inside a Mach-O file or a framework, so Contents/Frameworks may contain only these, and
no folder name there may contain a dot. PyInstaller's program looks for its files there, so everything else
has a link there, and a folder without code has one link for all of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from frozen.bundle import BuildError

PROGRAM = "shoal"
TOGETHER = ("source", "python", "packs")
"""Folders that are moved as a whole: Shoal's own files, the Python for engine packs, and an offline pack."""
DOT = "__dot__"

_THIN = {b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xfe\xed\xfa\xcf", b"\xfe\xed\xfa\xce"}
_FAT = {b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf"}
_ARCHITECTURES = 40
"""Maximum architectures in a universal Mach-O file. A Java class begins with the same bytes, followed by a
larger number."""


def lay_out(bundle: Path, contents: Path) -> None:
    """Builds `contents` from scratch from `bundle`, which has the program and _internal. Raises BuildError."""
    shutil.rmtree(contents, ignore_errors=True)
    for name in ("MacOS", "Frameworks", "Resources"):
        (contents / name).mkdir(parents=True)
    if not (bundle / PROGRAM).is_file():
        raise BuildError(f"{bundle} has no program {PROGRAM}: build the bundle again.")
    shutil.copy2(bundle / PROGRAM, contents / "MacOS" / PROGRAM)
    _sort(bundle / "_internal", contents / "Frameworks", contents / "Resources")
    broken = [path for path in contents.rglob("*") if path.is_symlink() and not path.exists()]
    if broken:
        raise BuildError(
            f"{broken[0].relative_to(contents)} leads nowhere: the bundle is not whole, build it again."
        )


def code(contents: Path) -> Iterator[Path]:
    """Yields every Mach-O file outside frameworks, the deepest first."""
    found = []
    for folder, folders, files in os.walk(contents):
        folders[:] = [name for name in folders if not name.endswith(".framework")]
        found += [path for name in files if is_code(path := Path(folder, name))]
    yield from sorted(found, key=lambda path: (-len(path.parts), path))


def frameworks(contents: Path) -> list[Path]:
    """Returns all frameworks, nested ones before those that contain them."""
    found = [path for path in contents.rglob("*.framework") if path.is_dir() and not path.is_symlink()]
    return sorted(found, key=lambda path: (-len(path.parts), path))


def is_code(path: Path) -> bool:
    """Returns whether the file is a Mach-O file. False for links."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(8)
    return head[:4] in _THIN or (head[:4] in _FAT and int.from_bytes(head[4:8], "big") < _ARCHITECTURES)


def _sort(source: Path, to_code: Path, to_data: Path) -> None:
    for entry in sorted(source.iterdir()):
        name = entry.name
        if entry.is_symlink():
            (to_code / name).symlink_to(entry.readlink())
        elif entry.is_dir() and name.endswith(".framework"):
            shutil.copytree(entry, to_code / name, symlinks=True)
        elif entry.is_dir() and (name in TOGETHER or not _has_code(entry)):
            to_data.mkdir(parents=True, exist_ok=True)
            shutil.copytree(entry, to_data / name, symlinks=True)
            _link(to_code / name, to_data / name)
        elif entry.is_dir():
            inside = to_code / name.replace(".", DOT)
            inside.mkdir()
            if inside.name != name:
                (to_code / name).symlink_to(inside.name)
            _sort(entry, inside, to_data / name)
        elif is_code(entry):
            shutil.copy2(entry, to_code / name)
        else:
            to_data.mkdir(parents=True, exist_ok=True)
            shutil.copy2(entry, to_data / name)
            _link(to_code / name, to_data / name)


def _has_code(folder: Path) -> bool:
    return any(path.name.endswith(".framework") or is_code(path) for path in folder.rglob("*"))


def _link(at: Path, to: Path) -> None:
    at.symlink_to(os.path.relpath(to, at.parent))
