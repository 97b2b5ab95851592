"""The past, read from the node's own history file without ever writing to it.

Needed because a node tells only what happens now: what happened before the window was opened lies on the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from app.ui.model import Answer, Group, Happening, Point, Round, Run, Value

GROUPS = 240
"""Groups whose answers are read back for the page Live."""


class Past(Value, frozen=True):
    """`probed` has each probe's families: (round, at, questions, family to share)."""

    folder: Path | None = None
    curve: tuple[Point, ...] = ()
    probed: tuple[tuple[int, float, int, dict[str, float]], ...] = ()
    rounds: tuple[Round, ...] = ()
    levels: tuple[tuple[float, dict[str, tuple[int, int, int]]], ...] = ()
    """Of every round: its moment, and family to (level, solved, answered)."""
    runs: tuple[Run, ...] = ()
    happenings: tuple[Happening, ...] = ()
    groups: tuple[Group, ...] = ()


class _Details(msgspec.Struct):
    families: dict[str, tuple[int, int, int]] = {}


class _Probed(msgspec.Struct):
    families: dict[str, float] = {}


class _Engine(msgspec.Struct):
    name: str = ""
    device: str = ""


def newest(home: Path) -> Path | None:
    """The model folder whose history was written to last, None before the first."""
    found = [
        (max(path.stat().st_mtime for path in folder.glob("history.sqlite*")), folder)
        for folder in home.glob("models/*")
        if (folder / "history.sqlite").is_file()
    ]
    return max(found)[1] if found else None


def read(folder: Path | None) -> Past:
    """Everything of one model's history. A file that cannot be read (damaged, newer) is an empty past: the node
    is the one who says so."""
    if folder is None or not (folder / "history.sqlite").is_file():
        return Past(folder=folder)
    try:
        with closing(opened(folder)) as db:
            return _read(folder, db)
    except (sqlite3.Error, msgspec.MsgspecError, OSError):
        return Past(folder=folder)


def groups_of(folder: Path, first_round: int, count: int = GROUPS) -> tuple[Group, ...]:
    """The groups from `first_round` on, newest first, at most `count`."""
    try:
        with closing(opened(folder)) as db:
            return _groups(db, first_round, count)
    except (sqlite3.Error, msgspec.MsgspecError, OSError):
        return ()


def round_row(
    round: int,
    run: int,
    at: float,
    seconds: float,
    own: int,
    peer: int,
    train_solved: float,
    families: dict[str, tuple[int, int, int]],
) -> Round:
    """A round of the history from its figures; `families` has (level, solved, answered) of each."""
    return Round(
        round=round,
        run=run,
        at=at,
        seconds=seconds,
        informative_own=own,
        informative_peer=peer,
        train_solved=train_solved,
        solved=sum(counts[1] for counts in families.values()),
        answered=sum(counts[2] for counts in families.values()),
    )


def opened(folder: Path) -> sqlite3.Connection:
    """A model folder's history, read-only."""
    path = quote(str(folder / "history.sqlite"))
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1.0)


def _read(folder: Path, db: sqlite3.Connection) -> Past:
    details = msgspec.json.Decoder(_Details)
    rounds, levels = [], []
    for row in db.execute(
        "SELECT round, run, at, seconds, informative_own, informative_peer, train_solved, details FROM rounds"
        " ORDER BY round"
    ):
        families = details.decode(row[7]).families
        rounds.append(round_row(row[0], row[1], row[2], row[3], row[4], row[5], row[6], families))
        levels.append((row[2], families))
    last = {round.run: round.round for round in rounds}
    curve, probed = _probes(db)
    return Past(
        folder=folder,
        curve=tuple(curve),
        probed=tuple(probed),
        rounds=tuple(rounds),
        levels=tuple(levels),
        runs=tuple(_runs(db, last)),
        happenings=tuple(
            Happening(at=row[0], round=row[1], kind=row[2], sentence=row[3])
            for row in db.execute("SELECT at, round, kind, sentence FROM events ORDER BY id")
        ),
        groups=_groups(db, 0, GROUPS),
    )


def _probes(db: sqlite3.Connection) -> tuple[list[Point], list[tuple[int, float, int, dict[str, float]]]]:
    """Probes over the questions measured last: only equal questions make one curve."""
    decode = msgspec.json.Decoder(_Probed).decode
    curve, probed = [], []
    for row in db.execute(
        "SELECT round, at, questions, pass_at_1, stderr, details FROM probes WHERE questions_mark ="
        " (SELECT questions_mark FROM probes ORDER BY at DESC LIMIT 1) ORDER BY round"
    ):
        curve.append(Point(round=row[0], pass_at_1=row[3], stderr=row[4], at=row[1]))
        probed.append((row[0], row[1], row[2], decode(row[5]).families))
    return curve, probed


def _runs(db: sqlite3.Connection, last: dict[int, int]) -> Iterable[Run]:
    for row in db.execute("SELECT id, started, ended, first_round, outcome, engine FROM runs ORDER BY id"):
        engine = msgspec.json.decode(row[5], type=_Engine)
        yield Run(
            run=row[0],
            started=row[1],
            ended=row[2],
            first_round=row[3],
            last_round=last.get(row[0]),
            outcome=row[4],
            engine=" ".join(filter(None, (engine.name, engine.device))),
        )


def _groups(db: sqlite3.Connection, first_round: int, count: int) -> tuple[Group, ...]:
    columns = {row[1] for row in db.execute("PRAGMA table_info(groups)")}
    peer = "groups.peer" if "peer" in columns else "NULL"  # histories of the first format knew no peers
    rows: Iterable[tuple[Any, ...]] = db.execute(
        f"SELECT groups.round, rounds.at, family, level, source, {peer}, rewards, completions FROM groups"
        " JOIN rounds USING (round) WHERE completions IS NOT NULL AND groups.round >= ?"
        " ORDER BY groups.round DESC, position LIMIT ?",
        (first_round, count),
    )
    made = []
    for round, at, family, level, source, who, rewards, completions in rows:
        pairs = zip(
            msgspec.json.decode(completions, type=list[str]),
            msgspec.json.decode(rewards, type=list[int]),
            strict=True,
        )
        answers = tuple(Answer(text=text, solved=bool(reward)) for text, reward in pairs)
        made.append(
            Group(
                round=round,
                at=at,
                family=family,
                level=level,
                answers=answers,
                peer=(who or "?") if source == "peer" else None,
            )
        )
    return tuple(made)
