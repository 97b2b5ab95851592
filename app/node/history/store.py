"""Writes the history of one model: rounds, groups, probes, runs and events in SQLite.

A round's rows are written in one transaction, after its steps and before its checkpoint gets its final name. So
at a restart the history is never behind the checkpoint; rows ahead of it are deleted. There are neither gaps
nor duplicates.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.common.files import transaction
from app.node.data.home import NewerVersionError, newer_format_error
from app.node.history import history
from app.node.record.records import GroupRow, LogEntry, Probe, Round
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates

FORMAT = 4
TEXTS_KEPT_ROUNDS = 200  # the window shows the latest rounds only
GROUPS_KEPT_ROUNDS = 2000
"""Number of rounds whose groups are kept. Older ones first lose their completions, then their groups; the
rounds themselves stay."""
EVENTS_KEPT = 5000  # bounds the size of the history

_SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, ended REAL, first_round INTEGER NOT NULL, outcome TEXT,
    settings TEXT NOT NULL, engine TEXT NOT NULL);
CREATE TABLE groups (
    round INTEGER NOT NULL, position INTEGER NOT NULL, source TEXT NOT NULL, family TEXT NOT NULL, level INTEGER
    NOT NULL, seed INTEGER NOT NULL, item INTEGER NOT NULL, version TEXT NOT NULL, rewards TEXT NOT NULL,
    finished TEXT NOT NULL, scores TEXT NOT NULL, completions TEXT, peer TEXT, question TEXT,
    PRIMARY KEY (round, position)) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, round INTEGER NOT NULL, kind TEXT NOT NULL, sentence TEXT NOT
    NULL);
"""
_RECORDS = {
    "rounds": "CREATE TABLE rounds (round INTEGER PRIMARY KEY, record TEXT NOT NULL)",
    "probes": "CREATE TABLE probes (round INTEGER NOT NULL, questions_mark TEXT NOT NULL, record TEXT NOT NULL,"
    " PRIMARY KEY (round, questions_mark))",
}
"""A record is JSON; fields that SQL searches by have a column as well."""


class StoreError(Exception):
    """The history file cannot be used; the message says why."""


class Store:
    """One open history file. All methods raise sqlite3.Error if the rows cannot be written."""

    def __init__(self, path: Path) -> None:
        """Opens or creates the history. Raises StoreError if the file is damaged, and NewerVersionError if a
        newer Shoal wrote it; the file is unchanged then."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            (format_,) = self._db.execute("PRAGMA user_version").fetchone()
            if format_ > FORMAT:
                raise newer_format_error(str(path), format_)
            if format_ < FORMAT:
                self._migrate(format_)
            self._db.execute("SELECT max(round) FROM rounds").fetchone()
        except (sqlite3.OperationalError, NewerVersionError):
            self._db.close()
            raise
        except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
            self._db.close()
            raise StoreError(str(error)) from error

    def _migrate(self, format_: int) -> None:
        """Creates the tables (format 0) or upgrades an older format: 1 had no peers, 2 spread a record over
        columns, 3 stored no question text."""
        with transaction(self._db):
            if format_ == 0:
                for statement in (*_SCHEMA.split(";"), *_RECORDS.values()):
                    self._db.execute(statement)
            if format_ == 1:
                self._db.execute("ALTER TABLE groups ADD COLUMN peer TEXT")
            if format_ in (1, 2, 3):
                self._db.execute("ALTER TABLE groups ADD COLUMN question TEXT")
            if format_ in (1, 2):
                rounds, probes = history.rounds(self._db), history.probes(self._db)
                for table, statement in _RECORDS.items():
                    self._db.execute(f"DROP TABLE {table}")
                    self._db.execute(statement)
                for round_ in rounds:
                    self._put_round(round_)
                for probe in probes:
                    self.add_probe(probe)
            self._db.execute(f"PRAGMA user_version={FORMAT}")

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
        """Deletes all rounds after `round`; returns how many."""
        with transaction(self._db):
            gone = self._db.execute("DELETE FROM rounds WHERE round > ?", (round,)).rowcount
            self._db.execute("DELETE FROM groups WHERE round > ?", (round,))
            self._db.execute("DELETE FROM probes WHERE round > ?", (round,))
        return gone

    def add_round(self, row: Round, groups: Iterable[GroupRow]) -> None:
        """Adds a round and its groups in one transaction; replaces rows that a failed attempt may have left."""
        with transaction(self._db):
            self._put_round(row)
            self._db.execute("DELETE FROM groups WHERE round = ?", (row.round,))
            self._db.executemany(
                "INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(row.round, position, *_group(group)) for position, group in enumerate(groups)],
            )
            self._db.execute(
                "UPDATE groups SET completions = NULL, question = NULL"
                " WHERE round = ? AND completions IS NOT NULL",
                (row.round - TEXTS_KEPT_ROUNDS,),
            )
            self._db.execute("DELETE FROM groups WHERE round <= ?", (row.round - GROUPS_KEPT_ROUNDS,))

    def _put_round(self, row: Round) -> None:
        self._db.execute("INSERT OR REPLACE INTO rounds VALUES (?, ?)", (row.round, _json(row)))

    def add_probe(self, row: Probe) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO probes VALUES (?, ?, ?)", (row.round, row.questions_mark, _json(row))
        )

    def add_event(self, row: LogEntry) -> None:
        with transaction(self._db):
            cursor = self._db.execute(
                "INSERT INTO events (at, round, kind, sentence) VALUES (?, ?, ?, ?)",
                (row.at, row.round, row.kind, row.sentence),
            )
            self._db.execute("DELETE FROM events WHERE id <= ?", ((cursor.lastrowid or 0) - EVENTS_KEPT,))

    def last_round(self) -> int:
        (last,) = self._db.execute("SELECT max(round) FROM rounds").fetchone()
        return last or 0

    def used_questions(self, most: int = 8192) -> list[Coordinates]:
        """Returns the coordinates of peers' questions that were trained on recently, at most `most`, latest
        first."""
        found = self._db.execute(
            "SELECT family, level, seed, item, version FROM groups WHERE source = 'peer'"
            " ORDER BY round DESC LIMIT ?",
            (most,),
        )
        return [
            Coordinates(family=family, level=level, seed=seed, index=index, version=version)
            for family, level, seed, index, version in found
        ]

    def own_groups(self, most: int) -> list[GroupRecord]:
        """This node's own groups whose completions are stored, latest first."""
        return [
            GroupRecord(
                coordinates=row.coordinates,
                completions_G=row.completions_G,
                finished_G=row.finished_G,
                model="",
            ).with_scores(row.scores_G, row.rewards_G)
            for row in history.own_groups(self._db, most)
        ]

    def last_probe(self) -> Probe | None:
        """Returns the latest probe over any set of questions."""
        return max(history.probes(self._db), key=lambda probe: (probe.round, probe.at), default=None)

    def probes(self, questions_mark: str) -> list[Probe]:
        """Returns the curve: all probes over this set of questions, oldest first."""
        return [probe for probe in history.probes(self._db) if probe.questions_mark == questions_mark]


def _group(group: GroupRow) -> tuple[object, ...]:
    where = group.coordinates
    return (
        "own" if group.peer is None else "peer",
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
        group.question,
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
