"""A few earlier rounds of a model, kept so that its owner can go back to one of them.

Each is a checkpoint's folder in MODEL_FOLDER/points, with `measured.json` where it was measured. They share
their files with the checkpoints they come from, so one costs disk only once its checkpoint is gone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.common import files
from app.node.data.library import Point
from app.node.history import checkpoint

FOLDER = "points"
MOST = 6
_MEASURED = "measured.json"


class _Saved(msgspec.Struct, frozen=True):
    round: int = 0
    saved_at: float = 0.0


class _Head(msgspec.Struct, frozen=True):
    state: _Saved


class _Measured(msgspec.Struct, frozen=True):
    solved: float


def keep(folder: Path, solved: float) -> None:
    """Keeps the newest checkpoint of the model folder, of which this share of new puzzles was solved, and gives
    up one where there are too many. A full disk keeps none."""
    with contextlib.suppress(OSError, shutil.Error):
        for newest in checkpoint.newest_first(folder / "checkpoints")[:1]:
            put(newest, folder / FOLDER, msgspec.json.encode(_Measured(solved)))
        rounds = [point.round for point in kept(folder)]
        if len(rounds) > MOST:
            files.discard(place(folder, spared(rounds)))


def put(safe: Path, root: Path, measured: bytes = b"") -> None:
    """Gives the folder of a safe point a second home under `root`. Raises OSError."""
    checkpoint.sweep(root)
    unfinished = checkpoint.begin(root, 0)
    shutil.copytree(safe, unfinished, copy_function=linked, dirs_exist_ok=True)
    if measured:
        files.write(unfinished / _MEASURED, measured)
    if (root / safe.name).exists():
        files.discard(root / safe.name)
    unfinished.rename(root / safe.name)
    files.flush(root)


def kept(folder: Path) -> tuple[Point, ...]:
    """The rounds of the model folder that one can go back to, the oldest first."""
    found = (_point(path) for path in checkpoint.newest_first(folder / FOLDER))
    return tuple(sorted((point for point in found if point is not None), key=lambda point: point.round))


def newest(folder: Path) -> Point | None:
    """The newest checkpoint of the model folder."""
    return next((_point(path) for path in checkpoint.newest_first(folder / "checkpoints")), None)


def place(folder: Path, round: int) -> Path:
    return folder / FOLDER / f"round-{round:06d}"


def spared(rounds: Sequence[int]) -> int:
    """The round to give up: the one whose neighbours are closest for its age. So the recent past stays dense
    and the far past does not vanish. `rounds` ascend; the first and the last are never given up.

    >>> spared([10, 20, 30, 40, 50, 60, 70]), spared([10, 30, 50, 51, 60])
    (20, 51)
    """
    newest = rounds[-1]

    def crowding(at: int) -> float:
        return (rounds[at + 1] - rounds[at - 1]) / (newest - rounds[at])

    return rounds[min(range(1, len(rounds) - 1), key=crowding)]


def linked(source: str, target: str) -> str:
    """Another name for the file, or a copy where the disk knows no second names. For files that are only ever
    replaced, never written into."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def _point(folder: Path) -> Point | None:
    head = files.read_json(folder / checkpoint.STATE, _Head)
    measured = files.read_json(folder / _MEASURED, _Measured)
    if head is None:
        return None
    return Point(
        round=head.state.round, at=head.state.saved_at, solved=measured.solved if measured is not None else None
    )
