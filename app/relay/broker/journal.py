"""The durable backplane of a single relay: a journal in SQLite, in the folder of `--state`.

One thread writes; everything that arrives during a transaction goes into the next one. If the disk takes 10 ms
to sync, a group is delayed by up to 20 ms, and so are a hundred groups. A group enters the window and is
acknowledged only after its transaction, so kill -9 at any moment loses no acknowledged group."""

from __future__ import annotations

import asyncio
import logging
import queue
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from app.common.files import create_tables, sole_writer, transaction
from app.relay.store.backplane import (
    BEHIND,
    BackplaneError,
    CheckedGroup,
    OnGroup,
    OnPresence,
    OnValue,
    Unavailable,
    mark_used,
)
from app.relay.store.window import Added, WindowLimits

FORMAT = 1
FILE = "journal.sqlite3"
MAX_KEYS = 50_000
MAX_VALUES = 150_000
"""`MAX_KEYS`: maximum keys whose sequence numbers are kept (the latest ones); `MAX_VALUES`: maximum stored
values."""
MAX_CHANGES = 512
"""Maximum changes in one transaction."""
PRUNE_EVERY_S = 60.0
RETRY_S = 1.0
"""Seconds until the disk is tried again after a failed write."""

_SCHEMA = """
CREATE TABLE facts (what TEXT PRIMARY KEY, is_ ANY) WITHOUT ROWID;
CREATE TABLE groups (
    place INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, key BLOB NOT NULL, key_seq INTEGER NOT NULL,
    address TEXT NOT NULL, family TEXT NOT NULL, level INTEGER NOT NULL, arrived_ms INTEGER NOT NULL,
    raw BLOB NOT NULL);
CREATE TABLE numbers (
    key BLOB PRIMARY KEY, highest INTEGER NOT NULL, came BLOB NOT NULL, at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE held (key TEXT PRIMARY KEY, value BLOB NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
INSERT INTO facts VALUES ('stored', 0);
"""
_MAP_BYTES = BEHIND // 8 + 1

_log = logging.getLogger(__name__)


class _Group(msgspec.Struct, frozen=True):
    record: CheckedGroup
    done: asyncio.Future[Added]


class _Held(msgspec.Struct, frozen=True):
    key: str
    value: bytes | None
    until: float
    done: asyncio.Future[None]


class _Erasing(msgspec.Struct, frozen=True):
    author: bytes
    done: asyncio.Future[None]


_Change = _Group | _Held | _Erasing


class Journal:
    """An open journal, used by one process."""

    shared = False

    def __init__(
        self,
        folder: Path,
        swarm: str,
        *,
        limits: WindowLimits = WindowLimits(),  # noqa: B008 (frozen)
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Opens or creates the journal. Raises BackplaneError if the folder cannot be used, or the journal is
        damaged, in use, of another version or of another swarm."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BackplaneError(
                f"{folder} cannot be made: {error.strerror}. Choose another --state."
            ) from error
        self._path = folder / FILE
        self._limits = limits
        self._wall = wall
        self._queue: queue.SimpleQueue[_Change | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="journal", daemon=True)
        self._pruned = float("-inf")
        self._closing = False
        self.ready = False
        try:
            self._db = sqlite3.connect(self._path, isolation_level=None, timeout=1.0, check_same_thread=False)
        except sqlite3.Error as error:
            raise BackplaneError(_why(error, self._path)) from error
        try:
            self._prepare(swarm)
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise BackplaneError(_why(error, self._path)) from error
        except BackplaneError:
            self._db.close()
            raise
        self.salt: bytes = self._fact("salt")
        self.stored: int = self._fact("stored")
        self._total = self.stored
        """Number of groups ever stored, as the writing thread counts it; `stored` is the copy for the loop's
        thread."""

    async def start(self, on_group: OnGroup, on_value: OnValue, on_presence: OnPresence) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_group, self._on_value = on_group, on_value
        self._prune()
        for key, value in self._db.execute("SELECT key, value FROM held"):
            on_value(key, value)
        groups = self._db.execute(
            "SELECT id, key, key_seq, address, family, level, arrived_ms, raw FROM groups ORDER BY place"
        )
        for row in groups:
            on_group(CheckedGroup(**dict(zip(CheckedGroup.__struct_fields__, row, strict=True))))
        for key, highest, came in self._db.execute("SELECT key, highest, came FROM numbers ORDER BY at_ms"):
            on_value(f"numbers.{key.hex()}", highest.to_bytes(8, "big") + came)
        self.ready = True
        self._thread.start()

    def publish(self, record: CheckedGroup) -> asyncio.Future[Added]:
        done: asyncio.Future[Added] = self._loop.create_future()
        self._queue.put(_Group(record, done))
        return done

    def presence(self, summary: bytes) -> None:
        pass

    async def kv_put(self, key: str, value: bytes | None, until: float) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue.put(_Held(key, value, until, done))
        await done

    async def erase(self, key: bytes) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue.put(_Erasing(key, done))
        await done

    async def close(self) -> None:
        self.ready, self._closing = False, True
        if self._thread.is_alive():
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)
            await asyncio.sleep(0)  # what the thread has handed over lands
        self._db.close()

    def _write(self) -> None:
        """Runs in the writing thread until it takes None from the queue."""
        going_on = True
        while going_on:
            changes = self._waiting()
            batch = [change for change in changes if change is not None]
            going_on = len(batch) == len(changes)
            failed = None
            try:
                if batch:
                    self._commit(batch)
                elif not self.ready:
                    self._probe()
                if self._wall() - self._pruned > PRUNE_EVERY_S:
                    self._prune()
            except sqlite3.Error as error:
                failed = _why(error, self._path)
                _log.error("%s", failed)
            self._loop.call_soon_threadsafe(self._landed, batch, failed, self._total)

    def _waiting(self) -> list[_Change | None]:
        """Takes everything from the queue, up to a None; empty if nothing arrives within a second."""
        try:
            changes = [self._queue.get(timeout=RETRY_S)]
        except queue.Empty:
            return []
        while len(changes) < MAX_CHANGES and changes[-1] is not None:
            try:
                changes.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return changes

    def _landed(self, batch: list[_Change], failed: str | None, total: int) -> None:
        """Called on the loop's thread after a transaction: adds the written groups to the window and resolves
        the futures of their publishers."""
        if not self._closing:
            self.ready = failed is None
        self.stored = total
        for change in batch:
            if failed is not None:
                if not change.done.done():
                    change.done.set_exception(Unavailable("The relay cannot store groups at the moment."))
            elif isinstance(change, _Group):
                added = self._on_group(change.record)
                if not change.done.done():
                    change.done.set_result(added)
            else:
                if isinstance(change, _Held):
                    self._on_value(change.key, change.value)
                if not change.done.done():
                    change.done.set_result(None)

    def _commit(self, batch: list[_Change]) -> None:
        total = self._total
        with transaction(self._db):
            for change in batch:
                if isinstance(change, _Group):
                    total += self._store(change.record)
                elif isinstance(change, _Erasing):
                    self._db.execute("DELETE FROM groups WHERE key = ?", (change.author,))
                elif change.value is None:
                    self._db.execute("DELETE FROM held WHERE key = ?", (change.key,))
                else:
                    self._db.execute(
                        "INSERT OR REPLACE INTO held VALUES (?, ?, ?)", (change.key, change.value, change.until)
                    )
            self._db.execute("UPDATE facts SET is_ = ? WHERE what = 'stored'", (total,))
        self._total = total
        if any(isinstance(change, _Erasing) for change in batch):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what was erased is in no file any more

    def _store(self, record: CheckedGroup) -> int:
        """Writes a group. Returns 1, or 0 if an earlier attempt of unknown outcome had already written it."""
        stored = self._db.execute(
            "INSERT OR IGNORE INTO groups (id, key, key_seq, address, family, level, arrived_ms, raw)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            msgspec.structs.astuple(record),
        ).rowcount
        row = self._db.execute("SELECT highest, came FROM numbers WHERE key = ?", (record.key,)).fetchone()
        highest, came = (row[0], int.from_bytes(row[1], "big")) if row else (0, 0)
        highest, came = mark_used(highest, came, record.key_seq)
        self._db.execute(
            "INSERT OR REPLACE INTO numbers VALUES (?, ?, ?, ?)",
            (record.key, highest, came.to_bytes(_MAP_BYTES, "big"), record.arrived_ms),
        )
        return stored

    def _probe(self) -> None:
        with transaction(self._db):
            self._db.execute("INSERT OR REPLACE INTO facts VALUES ('probe', ?)", (self._wall(),))

    def _prune(self) -> None:
        """Deletes groups too old for any window, expired values, and the sequence numbers of the keys silent
        for longest."""
        self._pruned = self._wall()
        whole = self._limits.whole
        oldest_ms = int((self._wall() - max(self._limits.age_s, self._limits.remember_s)) * 1000)
        with transaction(self._db):
            self._db.execute("DELETE FROM groups WHERE arrived_ms < ?", (oldest_ms,))
            self._db.execute(
                "DELETE FROM groups WHERE place <= (SELECT place FROM (SELECT place,"
                " row_number() OVER latest AS n, sum(length(raw)) OVER latest AS bytes"
                " FROM groups WINDOW latest AS (ORDER BY place DESC))"
                " WHERE n > ? OR bytes > ? ORDER BY place DESC LIMIT 1)",
                (whole.groups, whole.bytes),
            )
            self._db.execute("DELETE FROM held WHERE until < ?", (self._wall(),))
            self._db.execute(
                "DELETE FROM held WHERE key IN (SELECT key FROM held ORDER BY until DESC LIMIT -1 OFFSET ?)",
                (MAX_VALUES,),
            )
            self._db.execute(
                "DELETE FROM numbers WHERE key IN"
                " (SELECT key FROM numbers ORDER BY at_ms DESC LIMIT -1 OFFSET ?)",
                (MAX_KEYS,),
            )

    def _prepare(self, swarm: str) -> None:
        sole_writer(self._db)
        self._db.execute("PRAGMA secure_delete=ON")
        with transaction(self._db):
            if not create_tables(self._db, _SCHEMA, FORMAT):
                raise BackplaneError(
                    f"{self._path} was written by another version of Shoal: update it, or move it away."
                )
            # journals of before have none, and an author is erased by key
            self._db.execute("CREATE INDEX IF NOT EXISTS by_key ON groups (key)")
            self._db.execute(
                "INSERT OR IGNORE INTO facts VALUES ('swarm', ?), ('salt', ?)", (swarm, secrets.token_bytes(16))
            )
        if self._fact("swarm") != swarm:
            raise BackplaneError(
                f"{self._path} belongs to the swarm {self._fact('swarm')}: give another --state for {swarm}."
            )

    def _fact(self, what: str) -> Any:
        row = self._db.execute("SELECT is_ FROM facts WHERE what = ?", (what,)).fetchone()
        return row[0] if row else None


def _why(error: sqlite3.Error, path: Path) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_BUSY:
        return f"{path} is in use by another relay: end that one first."
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"{path} is damaged: move it away, and the relay begins anew."
    return f"{path} takes nothing: {error}. Is the disk full, or not to be written to?"
