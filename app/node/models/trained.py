"""Reads what a model learned in this data folder: its newest valid checkpoint and its history, both read-only.
Also undoes training (start over, or go back to the best round), which needs exclusive use of the data folder.

A running node may replace the files meanwhile. So a checkpoint is copied first and the copy is checked; if it
was just replaced, the next newest is tried.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from app.common import files
from app.node.data.home import SKILLS, model_mark
from app.node.history import checkpoint, history
from app.node.history.store import Store, StoreError
from app.node.record.errors import NodeError, raising_disk_full
from app.node.record.records import Probe
from app.node.record.state import NodeState
from engines import remedy

READ_ATTEMPTS = 6  # a second in all, while a node replaces the files
_PAUSE_S = 0.2  # between two attempts


class PlayedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as stored in the history: its Settings and EngineInfo as JSON, and its first and last finished
    round."""

    settings: dict[str, Any]
    engine: dict[str, Any]
    first_round: int
    last_round: int


class TrainedModel(msgspec.Struct, frozen=True, kw_only=True):
    """`folder`: a copy of the checkpoint, with the adapter in PEFT's format and the state. `place`: the model's
    folder in the data folder. The other fields come from the history up to the checkpoint's round; empty if it
    has none."""

    folder: Path
    place: Path
    state: NodeState
    curve: tuple[Probe, ...] = ()
    """The probes over the latest set of held-out questions, oldest first."""
    own_groups: int = 0
    peer_groups: int = 0
    """Number of groups that carried weight."""
    imitated: int = 0
    """Number of peers' right answers that were imitated."""
    runs: tuple[PlayedRun, ...] = ()

    @property
    def first(self) -> Probe | None:
        return self.curve[0] if self.curve else None

    @property
    def last(self) -> Probe | None:
        return self.curve[-1] if self.curve else None

    @property
    def recipes(self) -> tuple[str, ...]:
        return _distinct(run.settings.get("recipe") for run in self.runs)

    @property
    def learning_rates(self) -> tuple[float, ...]:
        return _distinct(run.settings.get("learning_rate") for run in self.runs)

    @property
    def engines(self) -> tuple[str, ...]:
        return _distinct(
            " ".join(str(run.engine.get(k, "")) for k in ("name", "device", "dtype")) for run in self.runs
        )


class NothingLearned(NodeError):
    """The model has no checkpoint yet."""


def newest(home: Path, model: Path, copy: Path, skill: str = "") -> TrainedModel:
    """Copies the newest checkpoint of the model in the folder `model`, or the best of its skill of the question
    set with the mark `skill`, to `copy`, which must not exist, and reads it. Raises NothingLearned, or
    NodeError if every checkpoint is damaged."""
    mark = model_mark(model)
    reason = ""
    for _ in range(READ_ATTEMPTS):
        folders = checkpoint.of_model(home, mark, skill)
        if not folders:
            raise NothingLearned(
                f"Nothing was learned yet with {model.name} in {home}: start {remedy.command('run')}, or name "
                "another model or data folder with --model and --home."
            )
        for folder in folders:
            shutil.rmtree(copy, ignore_errors=True)
            try:
                shutil.copytree(folder, copy)
                state = checkpoint.read(copy, mark)
            except (checkpoint.CheckpointError, OSError, shutil.Error) as error:
                reason = reason or str(error).rstrip(".")
                continue
            return _with_history(TrainedModel(folder=copy, place=_place(folder), state=state))
        time.sleep(_PAUSE_S)
    raise NodeError(
        f"What was learned can't be read ({reason}): start {remedy.command('run')} once, which looks "
        "after damaged files, and try again."
    )


def _place(safe: Path) -> Path:
    """Returns the folder with the history of a checkpoint."""
    return safe.parent if safe.name == checkpoint.BEST_FOLDER else safe.parents[1]


def _with_history(trained: TrainedModel) -> TrainedModel:
    """Adds what the history has; nothing if it is missing or unreadable."""
    try:
        with closing(history.open_read_only(trained.place / history.FILE)) as db:
            return _filled(db, trained)
    except history.UNREADABLE:
        return trained


def _filled(db: sqlite3.Connection, trained: TrainedModel) -> TrainedModel:
    last = trained.state.round
    rounds = [one for one in history.rounds(db) if one.round <= last]
    probes = [one for one in history.probes(db) if one.round <= last]
    newest = max(probes, key=lambda one: (one.round, one.at), default=None)
    played: dict[int, list[int]] = {}
    for one in rounds:
        played.setdefault(one.run, []).append(one.round)
    return msgspec.structs.replace(
        trained,
        curve=tuple(
            one for one in probes if newest is not None and one.questions_mark == newest.questions_mark
        ),
        own_groups=sum(one.informative_own for one in rounds),
        peer_groups=sum(one.taken for one in rounds),
        imitated=sum(one.imitated for one in rounds),
        runs=tuple(
            PlayedRun(
                settings=msgspec.json.decode(settings, type=dict[str, Any]),
                engine=msgspec.json.decode(engine, type=dict[str, Any]),
                first_round=min(played[run]),
                last_round=max(played[run]),
            )
            for settings, engine, run in db.execute("SELECT settings, engine, id FROM runs ORDER BY id")
            if run in played
        ),
    )


def _distinct(values: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))


def start_over(home: Path, folder: Path) -> None:
    """Deletes everything the model learned from puzzles, including the history; its skills stay. Raises
    NodeError."""
    with raising_disk_full(home):
        if not (folder / SKILLS).is_dir():
            if folder.is_dir():
                files.discard(folder)
            return
        for entry in sorted(folder.iterdir()):  # the checkpoints before the history
            if entry.is_dir() and entry.name != SKILLS:
                files.discard(entry)
            elif entry.is_file():
                entry.unlink()


def back_to_best(home: Path, folder: Path, model: str) -> int:
    """Resets the model to its best-measured round and returns that round; later rounds are deleted. `model` is
    its mark (app.node.data.home.model_mark). Raises NodeError. A kill halfway leaves the model undamaged, at a
    later round than the best."""
    best, root = folder / checkpoint.BEST_FOLDER, folder / "checkpoints"
    if not best.is_dir():
        raise NodeError("There is no best round yet: Shoal picks one at the second measurement.")
    try:
        round_ = checkpoint.read(best, model).round
    except (checkpoint.CheckpointError, PermissionError) as error:
        raise NodeError(f"The best round can't be read ({error}). Nothing was changed.") from error
    with raising_disk_full(home):
        safe = checkpoint.checkpoint_folder(root, round_)
        if not safe.exists():
            unfinished = checkpoint.begin(root, round_)
            shutil.copytree(best, unfinished, dirs_exist_ok=True)
            for path in (*unfinished.rglob("*"), unfinished):
                files.flush(path)
            unfinished.rename(safe)
            files.flush(root)
        for later in checkpoint.newest_first(root):
            if later.name > safe.name:
                files.discard(later)
        with suppress(StoreError):  # the node reports what is wrong with it
            store = Store(folder / history.FILE)
            store.forget_after(round_)
            store.close()
    return round_
