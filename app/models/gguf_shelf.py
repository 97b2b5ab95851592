"""The model folders converted from GGUF files: HOME/hub/gguf/NAME-DIGEST, each converted once.

`gguf.json` (Origin) beside the model's files records the source file. The same file under another name is not
converted again. A change of the file is noticed by its size and time, then by its digest. A folder gets its
name only when it is complete; the next conversion removes what a killed process left."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engines.contract import EngineError
from engines.files import DISK_SPARE, discard, folder_lock, in_bytes, size_on_disk, write_json

if TYPE_CHECKING:
    from engines.models.gguf.config import UnpackPlan

HUB_FOLDER = "hub"
"""Name of the folder with all models in the data folder; app.models.shelf describes its layout."""
FOLDER = "gguf"
ORIGIN = "gguf.json"
CONVERSION_VERSION = 1
"""Version of the conversion: folders of another version are converted again."""
_READ = 2**22  # bytes read at a time
_MAKING = ".making-"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The file that a folder was converted from: its path, bytes and modification time at that moment, and its
    SHA-256."""

    path: str
    title: str
    bytes: int
    modified_ns: int
    sha256: str
    version: int = CONVERSION_VERSION


class ConvertedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A converted model folder and its source file."""

    folder: Path
    origin: Origin


def is_gguf(name: str | Path) -> bool:
    """Returns whether a name is that of a GGUF file; Ollama's files are named by their digest.

    >>> is_gguf("~/Model-Q8_0.GGUF"), is_gguf("starter"), is_gguf("blobs/sha256-" + 64 * "0")
    (True, False, True)
    """
    return bool(re.search(r"(\.gguf|[/\\]sha256-[0-9a-f]{64})$", str(name), re.IGNORECASE))


class GgufShelf:
    """The converted models of one data folder. Creates no folder before it is needed."""

    def __init__(self, home: Path) -> None:
        self.root = home / HUB_FOLDER / FOLDER

    def converted_models(self) -> list[ConvertedModel]:
        """Returns all converted models, sorted by name."""
        return sorted(self._made(), key=lambda one: one.folder.name)

    def _made(self) -> Iterator[ConvertedModel]:
        for note in self.root.glob(f"[!.]*/{ORIGIN}"):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                origin = msgspec.json.decode(note.read_bytes(), type=Origin)
                if origin.version == CONVERSION_VERSION and (note.parent / "config.json").is_file():
                    yield ConvertedModel(folder=note.parent, origin=origin)

    def find(self, file: Path) -> Path | None:
        """Returns the folder converted from `file`, even if the file no longer exists; None if it was never
        converted or has changed."""
        path = file.expanduser().absolute()
        for one in self._made():
            if one.origin.path == str(path) and _same(path, one.origin):
                return one.folder
        return None

    def convert(self, file: Path, tell: Callable[[float], None] | None = None) -> Path:
        """Returns the folder converted from a file, converting it first if needed; `tell` is called with the
        share done. Raises EngineError, one sentence, and leaves nothing behind then."""
        path = file.expanduser().absolute()
        if found := self.find(path):
            return found
        from engines.models.gguf.config import UnpackPlan  # here: an installed app's node does without gguf

        plan = UnpackPlan(path)
        try:
            return self._convert(path, plan, tell)
        except OSError as error:
            raise EngineError(
                f"{plan.title} couldn't be added into {self.root} ({error.strerror or error}): free some "
                "space, or check that it can be read."
            ) from error

    def _convert(self, path: Path, plan: UnpackPlan, tell: Callable[[float], None] | None) -> Path:
        before = path.stat()
        digest = _digest(path)
        origin = Origin(
            path=str(path),
            title=plan.title,
            bytes=before.st_size,
            modified_ns=before.st_mtime_ns,
            sha256=digest,
        )
        readable = re.sub(r"[^A-Za-z0-9._]+", "-", path.stem).strip("-.")[:40].casefold() or "model"
        for one in self._made():
            if one.origin.sha256 == digest:
                write_json(one.folder / ORIGIN, origin)  # the same file under another name
                return one.folder
        folder = self.root / f"{readable}-{digest[:12]}"
        making = self.root / f"{_MAKING}{folder.name}"
        with folder_lock(making, wait_s=3600.0):
            if found := self.find(path):
                shutil.rmtree(making, ignore_errors=True)  # another process has just made it
                return found
            self._clear(making)
            self._room(plan.title, plan.weight_bytes)
            making.mkdir(exist_ok=True)
            try:
                plan.write(making, tell)
                after = path.stat()
                if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                    raise EngineError(f"{path.name} changed while it was read: wait until it is whole.")
                write_json(making / ORIGIN, origin)
                discard(folder)
                making.rename(folder)
            finally:
                shutil.rmtree(making, ignore_errors=True)
        for old in self._made():
            if old.origin.path == str(path) and old.folder != folder:
                discard(old.folder)  # converted from an earlier version of the file
        return folder

    def remove(self, name: str) -> int | None:
        """Deletes the folder converted from the file at path `name` and returns the bytes freed; the file
        itself stays. None if there is no such folder."""
        path = Path(name).expanduser().absolute()
        for one in self._made():
            if one.origin.path == str(path):
                freed = size_on_disk(one.folder)
                discard(one.folder)
                return freed
        return None

    def _clear(self, making: Path) -> None:
        """Removes unfinished conversions of killed processes."""
        shutil.rmtree(making, ignore_errors=True)
        for left in self.root.glob(f"{_MAKING}*"):
            if left.is_dir() and left != making:
                with folder_lock(left) as ours:
                    if ours:
                        shutil.rmtree(left, ignore_errors=True)

    def _room(self, name: str, needed: int) -> None:
        free = shutil.disk_usage(self.root).free
        if needed + DISK_SPARE > free:
            raise EngineError(
                f"{name} takes {in_bytes(needed)} to learn with, and {in_bytes(free)} are free on the disk "
                f"that holds {self.root}: free up some space, or move the data folder."
            )


def _same(path: Path, origin: Origin) -> bool:
    """Returns whether a file has the size and time recorded at its conversion; True if it no longer exists."""
    try:
        found = path.stat()
    except OSError:
        return True  # the file or its disk is gone: the converted model still works
    return (found.st_size, found.st_mtime_ns) == (origin.bytes, origin.modified_ns)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_READ):
            digest.update(chunk)
    return digest.hexdigest()
