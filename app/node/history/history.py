"""Reads the history in every format that was ever written: for the node itself, and read-only for a window or
an export while a node runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from app.node.data.home import SKILLS
from app.node.record.records import GroupRow, LogEntry, Probe, Record, Round, Run
from app.sapo.questions import Coordinates

FILE = "history.sqlite"
MAX_GROUPS_READ = 240
"""Maximum number of groups whose answers are read."""
UNREADABLE = (sqlite3.Error, msgspec.MsgspecError, OSError, ValueError)
_Row = TypeVar("_Row", bound=Record)


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of one model's learning, oldest first except for `groups`."""

    folder: Path | None = None
    curve: tuple[Probe, ...] = ()
    """Probes over the latest set of held-out questions."""
    rounds: tuple[Round, ...] = ()
    runs: tuple[Run, ...] = ()
    happenings: tuple[LogEntry, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    """Groups whose texts are stored, newest first."""


class _Engine(msgspec.Struct):
    name: str = ""
    device: str = ""


def newest(home: Path) -> Path | None:
    """Returns the folder of the model whose history, or that of one of its skills, was written last; None
    before the first."""
    found = [
        (max(path.stat().st_mtime for path in place.parent.glob(f"{FILE}*")), folder)
        for folder in home.glob("models/*")
        for place in (*folder.glob(FILE), *folder.glob(f"{SKILLS}/*/{FILE}"))
    ]
    return max(found)[1] if found else None


def model_of(folder: Path) -> str:
    """Returns the model's name as given to the last run in this folder, or of one of its skills if it has run
    nothing else; empty if unknown."""
    places = [folder / FILE, *folder.glob(f"{SKILLS}/*/{FILE}")]
    try:
        with closing(open_read_only(next(filter(Path.is_file, places), places[0]))) as db:
            row = db.execute("SELECT settings FROM runs ORDER BY id DESC LIMIT 1").fetchone()
        return str(msgspec.json.decode(row[0], type=dict[str, Any])["model"]) if row else ""
    except (*UNREADABLE, KeyError):
        return ""


def read(folder: Path | None) -> History:
    """Reads the history of one model. A damaged or newer file counts as an empty history; the node reports
    it.
    """
    if folder is None or not (folder / FILE).is_file():
        return History(folder=folder)
    try:
        with closing(open_read_only(folder / FILE)) as db:
            return _read(folder, db)
    except UNREADABLE:
        return History(folder=folder)


def open_read_only(file: Path) -> sqlite3.Connection:
    """Opens a history file read-only."""
    return sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=1.0)


def rounds(db: sqlite3.Connection) -> list[Round]:
    return _records(db, "rounds", Round)


def probes(db: sqlite3.Connection) -> list[Probe]:
    return _records(db, "probes", Probe)


def _records(db: sqlite3.Connection, table: str, kind: type[_Row]) -> list[_Row]:
    """Reads a table in the order of rounds. Before format 3 some fields were columns and the others in
    `details`."""
    found = db.execute(f"SELECT * FROM {table} ORDER BY round")
    names = [column[0] for column in found.description]
    if "record" in names:
        decode, at = msgspec.json.Decoder(kind).decode, names.index("record")
        return [decode(row[at]) for row in found]
    spread = (dict(zip(names, row, strict=True)) for row in found)
    return [msgspec.convert(msgspec.json.decode(row.pop("details")) | row, kind) for row in spread]


def _read(folder: Path, db: sqlite3.Connection) -> History:
    every, measured = rounds(db), probes(db)
    latest = max(measured, key=lambda probe: probe.at).questions_mark if measured else ""
    return History(
        folder=folder,
        curve=tuple(probe for probe in measured if probe.questions_mark == latest),
        rounds=tuple(every),
        runs=tuple(_runs(db, {one.run: one.round for one in every})),
        happenings=tuple(
            LogEntry(at=at, round=round, kind=kind, sentence=sentence)
            for at, round, kind, sentence in db.execute(
                "SELECT at, round, kind, sentence FROM events ORDER BY id"
            )
        ),
        groups=tuple(_groups(db, {one.round: one.at for one in every})),
    )


def _runs(db: sqlite3.Connection, last: dict[int, int]) -> list[Run]:
    found = []
    for run, started, ended, first, outcome, settings in db.execute(
        "SELECT id, started, ended, first_round, outcome, engine FROM runs ORDER BY id"
    ):
        engine = msgspec.json.decode(settings, type=_Engine)
        named = " ".join(filter(None, (engine.name, engine.device)))
        found.append(
            Run(
                run=run, started=started, ended=ended, first_round=first, last_round=last.get(run),
                outcome=outcome, engine=named,
            )
        )  # fmt: skip
    return found


def _groups(db: sqlite3.Connection, at: dict[int, float]) -> list[GroupRow]:
    found = db.execute(
        "SELECT * FROM groups WHERE completions IS NOT NULL ORDER BY round DESC, position LIMIT ?",
        (MAX_GROUPS_READ,),
    )
    return _rows(found, at)


def own_groups(db: sqlite3.Connection, most: int = -1) -> list[GroupRow]:
    """Returns this node's own groups whose completions are stored, latest first, at most `most` (-1: all)."""
    return _rows(
        db.execute(
            "SELECT * FROM groups WHERE source = 'own' AND completions IS NOT NULL"
            " ORDER BY round DESC, position LIMIT ?",
            (most,),
        )
    )


def _rows(found: sqlite3.Cursor, at: Mapping[int, float] = MappingProxyType({})) -> list[GroupRow]:
    names = [column[0] for column in found.description]
    return [_group(dict(zip(names, row, strict=True)), at) for row in found]


def _group(row: dict[str, Any], at: Mapping[int, float]) -> GroupRow:
    """Converts a row. Fills in columns missing in older formats: peers (before 2), and the question's text
    (before 4)."""
    where = Coordinates(
        family=row["family"], level=row["level"], seed=row["seed"], index=row["item"], version=row["version"]
    )
    texts = {
        f"{name}_G": msgspec.json.decode(row[name]) for name in ("rewards", "finished", "scores", "completions")
    }
    peer = (row.get("peer") or "?") if row["source"] == "peer" else None
    return msgspec.convert(
        texts
        | {"round": row["round"], "at": at.get(row["round"], 0.0), "coordinates": where, "peer": peer}
        | {"question": row.get("question")},
        GroupRow,
    )
