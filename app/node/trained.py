"""What a model became in this data folder: its newest whole safe point and its history, both only read.

A node may be learning beside it and replace the very files. So the safe point is copied first and checked as a
copy; where that fails because it has just been replaced, the next newest is looked for.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from app import remedy
from app.node import checkpoint
from app.node.errors import NodeError
from app.node.home import model_mark
from app.node.records import ProbeDetails
from app.node.resume import HISTORY
from app.node.state import State

TRIES = 6
_PAUSE_S = 0.2


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """A held-out score and its standard error, both as shares."""

    round: int
    questions: int
    pass_at_1: float
    stderr: float
    families: dict[str, float] = {}


class Trained(msgspec.Struct, frozen=True, kw_only=True):
    """`folder` is a copy of the safe point: adapter in PEFT's files, and its state. The rest is of the history
    up to its round; what the history does not tell is empty."""

    folder: Path
    state: State
    first: Probe | None = None
    last: Probe | None = None
    """The first and the newest probe over the same questions."""
    own_groups: int = 0
    peer_groups: int = 0
    """Groups that carried weight."""
    recipes: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    learning_rates: tuple[float, ...] = ()


class NothingLearned(NodeError):
    """There is no safe point."""


def newest(home: Path, model: Path, copy: Path) -> Trained:
    """The newest safe point of the model in the folder `model`, copied to `copy`, which must not exist.

    Raises NothingLearned, or NodeError where every safe point is damaged."""
    mark = model_mark(model)
    reason = ""
    for _ in range(TRIES):
        folders = _newest_first(home, mark)
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
            return _with_history(folder.parents[1] / HISTORY, Trained(folder=copy, state=state))
        time.sleep(_PAUSE_S)
    raise NodeError(
        f"What was learned cannot be read ({reason}): start {remedy.command('run')} once, which looks "
        "after damaged files, and try again."
    )


def _newest_first(home: Path, mark: str) -> list[Path]:
    """The safe points of a model, under whatever name it was trained, the last written folder's first."""
    found = []
    for folder in (home / "models").glob(f"*-{mark}"):
        for safe in checkpoint.newest_first(folder / "checkpoints"):
            try:
                found.append(((safe / checkpoint.STATE).stat().st_mtime, safe))
            except OSError:  # replaced meanwhile
                continue
    return [safe for _, safe in sorted(found, reverse=True)]


def _with_history(file: Path, trained: Trained) -> Trained:
    """With what the history adds. One that is missing or cannot be read adds nothing."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=1.0)) as db:
            return _filled(db, trained)
    except (sqlite3.Error, msgspec.MsgspecError, ValueError):
        return trained


def _filled(db: sqlite3.Connection, trained: Trained) -> Trained:
    round = trained.state.round
    probes = db.execute(
        "SELECT round, questions, pass_at_1, stderr, details FROM probes WHERE questions_mark ="
        " (SELECT questions_mark FROM probes WHERE round <= ? ORDER BY round DESC, at DESC LIMIT 1)"
        " AND round <= ? ORDER BY round",
        (round, round),
    ).fetchall()
    own, peer = db.execute(
        "SELECT total(informative_own), total(informative_peer) FROM rounds WHERE round <= ?", (round,)
    ).fetchone()
    runs = db.execute(
        "SELECT settings, engine FROM runs WHERE id IN (SELECT run FROM rounds WHERE round <= ?) ORDER BY id",
        (round,),
    ).fetchall()
    settings: list[dict[str, Any]] = [msgspec.json.decode(row[0]) for row in runs]
    engines: list[dict[str, Any]] = [msgspec.json.decode(row[1]) for row in runs]
    return msgspec.structs.replace(
        trained,
        first=_probe(probes[0]) if probes else None,
        last=_probe(probes[-1]) if probes else None,
        own_groups=int(own),
        peer_groups=int(peer),
        recipes=_distinct(one.get("recipe") for one in settings),
        learning_rates=_distinct(one.get("learning_rate") for one in settings),
        engines=_distinct(
            " ".join(str(one.get(k, "")) for k in ("name", "device", "dtype")) for one in engines
        ),
    )


def _probe(row: tuple[int, int, float, float, str]) -> Probe:
    details = msgspec.json.decode(row[4], type=ProbeDetails)
    return Probe(round=row[0], questions=row[1], pass_at_1=row[2], stderr=row[3], families=details.families)


def _distinct(values: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))
