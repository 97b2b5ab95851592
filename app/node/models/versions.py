"""The versions of a model, as its owner handles them: name it, go back to an earlier round, start over, put
it by, and take it up again.

HOME/models/NAME-MARK/            what learns, with points/ (see app.node.history.points) and name.json
HOME/kept/NAME-MARK.2/            the same, put by; nothing but this file looks there

Everything but a name needs the data folder to itself.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

from app.common import files
from app.node.data.library import LONGEST_NAME, NAME, TrainingName, Version, called, can_be_called
from app.node.history import checkpoint, history, points
from app.node.history.store import Store, StoreError
from app.node.record.errors import NodeError, room_on_disk

KEPT = "kept"


def call(folder: Path, name: str) -> None:
    """Gives it a name, or takes it away with an empty one. Raises NodeError."""
    name = " ".join(name.split())
    if name and not can_be_called(name):
        raise NodeError(f"A name has at most {LONGEST_NAME} letters. Pick a shorter one.")
    with room_on_disk(folder.parent):
        if name:
            folder.mkdir(parents=True, exist_ok=True)
            files.write_json(folder / NAME, TrainingName(name))
        else:
            (folder / NAME).unlink(missing_ok=True)


def versions(home: Path, folder: Path) -> tuple[Version, ...]:
    """What was put by of this model, the newest first."""
    found = [_version(path) for path in _kept_of(home, folder)]
    return tuple(sorted(found, key=lambda one: (-one.at, one.id)))


def start_over(home: Path, folder: Path, keep: bool) -> None:
    """The model knows nothing of what it learned here, and begins with round 1. With `keep` that is put by,
    else deleted for good. Raises NodeError."""
    with room_on_disk(home):
        if keep:
            _put_by(home, folder)
        elif folder.is_dir():
            files.discard(folder)


def back(home: Path, folder: Path, round: int, keep: bool) -> None:
    """The model is again what it was after that round, which must be one of its points. With `keep` what it is
    now is put by too, else all later rounds are deleted for good. Raises NodeError.

    Killed on the way, the model is at a later round than asked for, never damaged."""
    point = points.place(folder, round)
    if not point.is_dir():
        there = ", ".join(str(one.round) for one in points.kept(folder)) or "no round yet"
        raise NodeError(f"Round {round} isn't kept. You can go back to: {there}.")
    with room_on_disk(home):
        if keep:
            copy = _free_place(home, folder)
            shutil.copytree(folder, copy, copy_function=_copied)
        points.put(point, folder / "checkpoints")
        for root in (folder / "checkpoints", folder / points.FOLDER):
            for later in checkpoint.newest_first(root):
                if later.name > point.name:
                    files.discard(later)
        if (folder / "best").is_dir():
            files.discard(folder / "best")  # it may be of a later round; the next measurement keeps another
        with suppress(StoreError):  # the node says what is wrong with it
            store = Store(folder / history.FILE)
            store.forget_after(round)
            store.close()


def bring_back(home: Path, folder: Path, id: str) -> None:
    """What was put by learns again, and what learned so far is put by instead. Raises NodeError."""
    wanted = _kept_version(home, folder, id)
    with room_on_disk(home):
        _put_by(home, folder)
        wanted.rename(folder)


def forget(home: Path, folder: Path, id: str) -> int:
    """Deletes what was put by, for good; returns the bytes that are free again. Raises NodeError."""
    wanted = _kept_version(home, folder, id)
    freed = files.size(wanted)
    with room_on_disk(home):
        files.discard(wanted)
    return freed


def _put_by(home: Path, folder: Path) -> None:
    """Where there is something to put by."""
    if any(checkpoint.newest_first(folder / "checkpoints")):
        folder.rename(_free_place(home, folder))
    elif folder.is_dir():
        files.discard(folder)


def _free_place(home: Path, folder: Path) -> Path:
    (home / KEPT).mkdir(exist_ok=True)
    taken = [int(path.name.rpartition(".")[2]) for path in _kept_of(home, folder)]
    return home / KEPT / f"{folder.name}.{max(taken, default=0) + 1}"


def _kept_version(home: Path, folder: Path, id: str) -> Path:
    found = {path.name: path for path in _kept_of(home, folder)}
    if id not in found:
        there = ", ".join(found) or "nothing"
        raise NodeError(f"{id} isn't one of the kept versions of this model. There is: {there}.")
    return found[id]


def _kept_of(home: Path, folder: Path) -> list[Path]:
    form = re.compile(re.escape(folder.name) + r"\.\d{1,6}")
    root = home / KEPT
    return [path for path in (root.iterdir() if root.is_dir() else ()) if form.fullmatch(path.name)]


def _version(folder: Path) -> Version:
    latest = max(points.kept(folder), key=lambda point: point.round, default=None)
    newest = points.newest(folder)
    same = latest is not None and newest is not None and latest.round == newest.round
    return Version(
        id=folder.name,
        called=called(folder),
        rounds=newest.round if newest is not None else 0,
        at=newest.at if newest is not None else 0.0,
        solved=latest.solved if same and latest is not None else None,
        bytes=files.size(folder),
    )


def _copied(source: str, target: str) -> str:
    """The history is written into, all else is only ever replaced."""
    if Path(source).name.startswith(history.FILE):
        return str(shutil.copy2(source, target))
    return points.linked(source, target)
