"""The history of one model's learning: rounds, groups, probes, runs and events in SQLite.

A round's rows are written in one transaction, after its step and before its checkpoint gets its name. So at a
restart the history is never behind the checkpoint, and what is ahead of it is forgotten: neither gaps nor
doubles.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.node.format import NewerError, newer
from app.node.records import EventRow, GroupRow, ProbeRow, RoundRow
from app.sapo.questions import Coordinates
from app.transaction import transaction

FORMAT = 2
TEXTS_KEPT_ROUNDS = 200
GROUPS_KEPT_ROUNDS = 2000
"""Of older rounds, first the completions and then the groups are dropped; the rounds themselves stay."""
EVENTS_KEPT = 5000

_SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, ended REAL, first_round INTEGER NOT NULL, outcome TEXT,
    settings TEXT NOT NULL, engine TEXT NOT NULL);
CREATE TABLE rounds (
    round INTEGER PRIMARY KEY, run INTEGER NOT NULL, at REAL NOT NULL, seconds REAL NOT NULL,
    informative_own INTEGER NOT NULL, informative_peer INTEGER NOT NULL, train_solved REAL NOT NULL,
    details TEXT NOT NULL);
CREATE TABLE groups (
    round INTEGER NOT NULL, position INTEGER NOT NULL, source TEXT NOT NULL, family TEXT NOT NULL, level INTEGER
    NOT NULL, seed INTEGER NOT NULL, item INTEGER NOT NULL, version TEXT NOT NULL, rewards TEXT NOT NULL,
    finished TEXT NOT NULL, scores TEXT NOT NULL, completions TEXT, peer TEXT,
    PRIMARY KEY (round, position)) WITHOUT ROWID;
CREATE TABLE probes (
    round INTEGER NOT NULL, questions_mark TEXT NOT NULL, at REAL NOT NULL, questions INTEGER NOT NULL,
    pass_at_1 REAL NOT NULL, stderr REAL NOT NULL, details TEXT NOT NULL,
    PRIMARY KEY (round, questions_mark));
CREATE TABLE events (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, round INTEGER NOT NULL, kind TEXT NOT NULL, sentence TEXT NOT
    NULL);
"""
_FROM_1 = "ALTER TABLE groups ADD COLUMN peer TEXT;"
"""Format 1 knew no peers."""


class StoreError(Exception):
    """The history file cannot be used; the message says why."""


class Store:
    """One open history. All methods raise sqlite3.Error when the disk does not take the rows."""

    def __init__(self, path: Path) -> None:
        """Opens or makes the history. Raises StoreError for a damaged file, NewerError for one of a newer
        Shoal, which stays as it is."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            (format_,) = self._db.execute("PRAGMA user_version").fetchone()
            if format_ == 0:
                self._db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={FORMAT}; COMMIT;")
            elif format_ == 1:
                self._db.executescript(f"BEGIN; {_FROM_1} PRAGMA user_version={FORMAT}; COMMIT;")
            elif format_ > FORMAT:
                raise newer(str(path), format_)
            elif format_ != FORMAT:
                raise StoreError(f"it is of format {format_}, which no version knows")
            self._db.execute("SELECT max(round) FROM rounds").fetchone()
        except (sqlite3.OperationalError, NewerError):
            self._db.close()
            raise
        except (sqlite3.DatabaseError, StoreError) as error:
            self._db.close()
            raise StoreError(str(error)) from error

    def close(self) -> None:
        self._db.close()

    def begin_run(self, first_round: int, settings: object, engine: object) -> int:
        cursor = self._db.execute(
            "INSERT INTO runs (started, first_round, settings, engine) VALUES (?, ?, ?, ?)",
            (time.time(), first_round, _json(settings), _json(engine)),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def end_run(self, run: int, outcome: str) -> None:
        self._db.execute("UPDATE runs SET ended = ?, outcome = ? WHERE id = ?", (time.time(), outcome, run))

    def forget_after(self, round: int) -> int:
        """Deletes what lies beyond the checkpoint; returns how many rounds that were."""
        with transaction(self._db):
            gone = self._db.execute("DELETE FROM rounds WHERE round > ?", (round,)).rowcount
            self._db.execute("DELETE FROM groups WHERE round > ?", (round,))
            self._db.execute("DELETE FROM probes WHERE round > ?", (round,))
        return gone

    def add_round(self, row: RoundRow, groups: Sequence[GroupRow]) -> None:
        """A round with its groups, all or nothing; it takes the place of what a failed attempt may have
        left."""
        with transaction(self._db):
            self._db.execute("DELETE FROM rounds WHERE round = ?", (row.round,))
            self._db.execute("DELETE FROM groups WHERE round = ?", (row.round,))
            self._db.execute(
                "INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    row.round,
                    row.run,
                    row.at,
                    row.seconds,
                    row.informative_own,
                    row.informative_peer,
                    row.train_solved,
                    _json(row.details),
                ),
            )
            self._db.executemany(
                "INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(row.round, position, *_group(group)) for position, group in enumerate(groups)],
            )
            self._db.execute(
                "UPDATE groups SET completions = NULL WHERE round = ? AND completions IS NOT NULL",
                (row.round - TEXTS_KEPT_ROUNDS,),
            )
            self._db.execute("DELETE FROM groups WHERE round <= ?", (row.round - GROUPS_KEPT_ROUNDS,))

    def add_probe(self, row: ProbeRow) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO probes VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                row.round,
                row.questions_mark,
                row.at,
                row.questions,
                row.pass_at_1,
                row.stderr,
                _json(row.details),
            ),
        )

    def add_event(self, row: EventRow) -> None:
        with transaction(self._db):
            cursor = self._db.execute(
                "INSERT INTO events (at, round, kind, sentence) VALUES (?, ?, ?, ?)",
                (row.at, row.round, row.kind, row.sentence),
            )
            self._db.execute("DELETE FROM events WHERE id <= ?", ((cursor.lastrowid or 0) - EVENTS_KEPT,))

    def last_round(self) -> int:
        (last,) = self._db.execute("SELECT max(round) FROM rounds").fetchone()
        return last or 0

    def used(self, most: int = 8192) -> list[Coordinates]:
        """The questions of the peers' groups that were trained on lately."""
        found = self._db.execute(
            "SELECT family, level, seed, item, version FROM groups WHERE source = 'peer'"
            " ORDER BY round DESC LIMIT ?",
            (most,),
        )
        return [
            Coordinates(family=family, level=level, seed=seed, index=index, version=version)
            for family, level, seed, index, version in found
        ]

    def probes(self, questions_mark: str) -> list[ProbeRow]:
        """The curve: probes over the same questions, oldest first."""
        rows = self._db.execute(
            "SELECT round, questions_mark, at, questions, pass_at_1, stderr, details FROM probes"
            " WHERE questions_mark = ? ORDER BY round",
            (questions_mark,),
        )
        return [
            msgspec.convert(
                {**dict(zip(_PROBE, row, strict=True)), "details": msgspec.json.decode(row[-1])}, ProbeRow
            )
            for row in rows
        ]


_PROBE = ("round", "questions_mark", "at", "questions", "pass_at_1", "stderr", "details")


def _group(group: GroupRow) -> tuple[object, ...]:
    where = group.coordinates
    return (
        group.source,
        where.family,
        where.level,
        where.seed,
        where.index,
        where.version,
        _json(group.rewards_G),
        _json(group.finished_G),
        _json(group.scores_G),
        _json(group.completions_G),
        group.peer,
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
