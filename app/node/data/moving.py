"""Moves the data folder: copies it, reads the copy back, records the new location, and only then empties the
old folder. A process killed before the record leaves the old folder in use; after it, the new one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from app.common import home as place
from app.common.files import flush, free_bytes
from app.common.text import in_bytes
from app.node.data import contents
from app.node.data.home import lock_data_folder
from app.node.record.errors import NodeError, says_disk_full

UNFINISHED_MARK = ".shoal-unfinished"
"""Name of a file in a new folder until everything is copied; while it exists the folder is not used."""
_SPARE_BYTES = 64 * 2**20  # what a node writes meanwhile
_CHUNK = 2**20  # bytes copied at a time

Tell = Callable[[int, int], None]
"""Progress callback: bytes done and total bytes; copying and reading back both count."""


class MoveError(NodeError):
    """The data folder could not be moved and stays where it was. The message says why and what to do."""


def move(to: Path, tell: Tell = lambda done, total: None, current: Path | None = None) -> Path:
    """Moves this computer's data folder to `to`, which must be missing, empty, or left by an interrupted move.
    Returns it. Raises MoveError, and NodeError while a node uses the data folder."""
    empty_old_folder()
    old = place.default_home()
    if current is not None and current != old:
        raise MoveError(
            f"This data folder was chosen with --home or SHOAL_HOME: close Shoal, move {current} yourself, and "
            "name the new place there."
        )
    to = Path(os.path.abspath(to))
    _refuse(old, to)
    old.mkdir(parents=True, exist_ok=True)
    with lock_data_folder(old):
        _copy(old, to, tell)
        try:
            place.remember_folder(place.MovedHome(to, leaving=old))
        except OSError as error:
            raise MoveError(
                f"The new place can't be remembered in {place.move_record()} ({error.strerror}): the data "
                "folder stays where it was."
            ) from error
    empty_old_folder()
    return to


def empty_old_folder() -> list[Path]:
    """Empties the folder that an earlier move came from, if that is still to be done. Returns the entries of
    Shoal that are left there because the system refused to delete them or a node is using it."""
    found = place.moved()
    if found is None or found.leaving is None or not found.to.is_dir() or found.leaving == found.to:
        return []
    with suppress(OSError):
        (found.to / UNFINISHED_MARK).unlink(missing_ok=True)
    if found.leaving.is_dir():
        try:
            with lock_data_folder(found.leaving):
                pass
        except NodeError:
            return contents.shoal_entries(found.leaving)  # a node was started there meanwhile
    left = contents.remove(found.leaving)
    with suppress(OSError):
        place.remember_folder(None if found.to == place.platform_place() else place.MovedHome(found.to))
    return left


def _refuse(old: Path, to: Path) -> None:
    if to == old:
        raise MoveError(f"The data folder already is {to}: choose another one.")
    if old in to.parents or to in old.parents:
        raise MoveError(f"{to} and the data folder {old} lie within each other: choose another one.")
    if to.exists() and not to.is_dir():
        raise MoveError(f"{to} is a file: choose a folder.")
    begun = (to / UNFINISHED_MARK).exists()
    if to.is_dir() and not begun and any(entry.name != place.POINTER_FILE for entry in to.iterdir()):
        raise MoveError(f"{to} isn't empty: choose a new or an empty folder.")


def _copy(old: Path, to: Path, tell: Tell) -> None:
    """Copies Shoal's files from the old folder into the new one. Raises MoveError."""
    try:
        if (to / UNFINISHED_MARK).exists():
            contents.remove(to)
        to.mkdir(parents=True, exist_ok=True)
        (to / UNFINISHED_MARK).touch()
        entries = [entry for entry in contents.shoal_entries(old) if entry.name not in contents.LOCKS]
        found = [file for entry in entries for file in contents.files_of_entry(entry)]
        total = 2 * sum(size for _, size in found)
        if free_bytes(to) < total // 2 + _SPARE_BYTES:
            raise MoveError(
                f"The disk of {to} has too little room ({in_bytes(total // 2 + _SPARE_BYTES)} are needed): "
                "choose another one."
            )
        done = 0
        tell(0, total)
        for file, _ in found:
            target = to / file.relative_to(old)
            _folder(file.parent, target.parent, old, to)
            for part in _copied(file, target):
                done += part
                tell(min(done, total), total)
        for folder in {target for target, _, _ in os.walk(to)}:
            flush(Path(folder))
        tell(total, total)
    except OSError as error:
        why = "it is full" if says_disk_full(error) else error.strerror or str(error)
        raise MoveError(
            f"The data folder couldn't be copied to {to} ({why}): it stays where it was. Fix that or "
            "choose another place."
        ) from error


def _folder(source: Path, target: Path, old: Path, to: Path) -> None:
    """Creates the folders of a copied file, with the modes of the originals."""
    if target != to and not target.exists():
        _folder(source.parent, target.parent, old, to)
        target.mkdir()
        shutil.copymode(source, target)


def _copied(source: Path, target: Path) -> Iterator[int]:
    """Copies one file, flushes it to disk, and compares it with the original by reading it back. Yields bytes
    done. Raises OSError."""
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
        return
    written = blake2b()
    with source.open("rb") as reader, target.open("xb") as writer:
        shutil.copymode(source, target)
        while chunk := reader.read(_CHUNK):
            writer.write(chunk)
            written.update(chunk)
            yield len(chunk)
    flush(target)
    shutil.copystat(source, target)
    again = blake2b()
    with target.open("rb") as reader:
        while chunk := reader.read(_CHUNK):
            again.update(chunk)
            yield len(chunk)
    if again.digest() != written.digest():
        raise OSError(5, "what was written cannot be read back")
