"""Checkpoints: saves the state after every round so that kill -9 at any moment leaves a valid checkpoint.

A checkpoint is a folder `round-000012`: what the engine saved (adapter, optimiser), and `state.json` with the
node's state and the SHA-256 of every other file. It is written under a temporary name, flushed, and renamed.
The last two are kept.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

import msgspec

from app.common import files
from app.node.data.home import SKILLS, newer_format_error
from app.node.record.state import NodeState

STATE_FILE = "state.json"
BEST_FOLDER = "best"
"""Folder of the best-measured checkpoint, beside the folder of the checkpoints."""
CHECKPOINTS_KEPT = 2  # the newest, and one before it in case that is damaged
FORMAT = 1
_UNFINISHED = ".writing-"
_NAME = re.compile(r"round-(\d{6,})")
_STATE_BYTES = 2**20  # a state has some 10 kB
_CHUNK = 2**20  # bytes hashed at a time


class FileMark(msgspec.Struct, frozen=True, kw_only=True):
    bytes: int
    sha256: str


class CheckpointManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a checkpoint's state.json. `model` is the fingerprint of the base model that the adapter
    was trained on; `files` has the size and SHA-256 of every other file."""

    format: int
    model: str
    state: NodeState
    files: dict[str, FileMark]


class _Head(msgspec.Struct, frozen=True):
    """The field that every version of the manifest has."""

    format: int


class CheckpointError(Exception):
    """A checkpoint cannot be used. The message gives the reason as a clause, to be put into a sentence."""


def begin(root: Path, round: int) -> Path:
    """Creates an empty temporary folder for the engine to save into."""
    root.mkdir(parents=True, exist_ok=True)
    unfinished = root / f"{_UNFINISHED}{round:06d}-{os.getpid()}-{token_hex(4)}"
    unfinished.mkdir()
    return unfinished


def seal(unfinished: Path, model: str, state: NodeState) -> None:
    """Adds `state.json` to what the engine saved and flushes everything to disk. Raises OSError."""
    marks = {path.relative_to(unfinished).as_posix(): _mark(path) for path in _files(unfinished)}
    manifest = CheckpointManifest(format=FORMAT, model=model, state=state, files=marks)
    (unfinished / STATE_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    for path in (*unfinished.rglob("*"), unfinished):
        files.flush(path)


def publish(unfinished: Path, root: Path, round: int) -> Path:
    """Renames a sealed folder to its final name, which makes it the checkpoint. All but the last two are
    deleted."""
    safe = checkpoint_folder(root, round)
    if safe.exists():
        set_aside(safe)
    unfinished.rename(safe)
    files.flush(root)
    for _, old in _numbered(root)[CHECKPOINTS_KEPT:]:
        files.discard(old)
    return safe


def checkpoint_folder(root: Path, round: int) -> Path:
    return root / f"round-{round:06d}"


def newest_first(root: Path) -> list[Path]:
    """Returns the folders of all checkpoints, newest first, without reading them."""
    return [folder for _, folder in _numbered(root)]


def of_model(home: Path, mark: str, skill: str = "") -> list[Path]:
    """Returns the checkpoint folders of a model, under any name it was trained with, most recently written
    first. `mark` is the model's (app.node.data.home.model_mark), `skill` a question set's: then the best one
    comes first."""
    found, best = [], []
    for folder in (home / "models").glob(f"*-{mark}/{SKILLS}/*-{skill}" if skill else f"*-{mark}"):
        best += [folder / BEST_FOLDER] if skill and (folder / BEST_FOLDER).is_dir() else []
        for safe in newest_first(folder / "checkpoints"):
            with suppress(OSError):  # replaced meanwhile
                found.append(((safe / STATE_FILE).stat().st_mtime, safe))
    return [*best, *(safe for _, safe in sorted(found, reverse=True))]


def read(folder: Path, model: str) -> NodeState:
    """Reads the state of a checkpoint after verifying that it belongs to this model and that all its files are
    unchanged. Raises CheckpointError, NewerVersionError if a newer Shoal wrote it, and PermissionError."""
    try:
        with (folder / STATE_FILE).open("rb") as file:
            content = file.read(_STATE_BYTES)
        head = msgspec.json.decode(content, type=_Head)
        if head.format > FORMAT:
            raise newer_format_error(str(folder), head.format)
        manifest = msgspec.json.decode(content, type=CheckpointManifest)
    except FileNotFoundError:
        raise CheckpointError(f"{STATE_FILE} is missing") from None
    except PermissionError:
        raise
    except (OSError, msgspec.MsgspecError) as error:
        raise CheckpointError(f"{STATE_FILE} can't be read: {error}") from error
    if manifest.format != FORMAT:
        raise CheckpointError(f"it is of format {manifest.format}, which this version does not know")
    if manifest.model != model:
        raise CheckpointError("it belongs to another model")
    for name, mark in manifest.files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
            raise CheckpointError(f"{name} is missing")
        if _mark(path) != mark:
            raise CheckpointError(f"{name} was changed or cut off")
    return manifest.state


def set_aside(folder: Path) -> Path:
    """Renames a damaged folder instead of deleting it. Returns the new path."""
    aside = folder.with_name(f"damaged-{folder.name}")
    while aside.exists():
        aside = folder.with_name(f"damaged-{folder.name}-{token_hex(2)}")
    folder.rename(aside)
    return aside


def sweep(root: Path) -> None:
    """Removes unfinished folders left by a killed node."""
    for prefix in (_UNFINISHED, files.REMOVING_PREFIX):
        for stale in root.glob(f"{prefix}*"):
            shutil.rmtree(stale, ignore_errors=True)


def sweep_files(folder: Path) -> None:
    """Removes temporary files (`files.staged`) left in a model's folder by a killed node."""
    for stale in folder.rglob(".*-*"):
        if stale.name.rpartition("-")[2].isdigit() and stale.is_file():
            stale.unlink(missing_ok=True)


def _numbered(root: Path) -> list[tuple[int, Path]]:
    if not root.is_dir():
        return []
    named = ((_NAME.fullmatch(path.name), path) for path in root.iterdir())
    return sorted(((int(match[1]), path) for match, path in named if match and path.is_dir()), reverse=True)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _mark(path: Path) -> FileMark:
    digest, size = sha256(), 0
    for chunk in _chunks(path):
        digest.update(chunk)
        size += len(chunk)
    return FileMark(bytes=size, sha256=digest.hexdigest())


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
