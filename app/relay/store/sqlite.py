"""The backing of a single relay that remembers: a file of SQLite in the folder of `--state`, which holds the
window, a day of groups, and the values. Relays on NATS keep their day in one too.

One thread works on the file; everything that arrives during a transaction goes into the next one. If the disk
takes 10 ms to sync, a group is delayed by up to 20 ms, and so are a hundred groups. A group enters the window
and is acknowledged only after its transaction, so kill -9 at any moment loses no acknowledged group."""

from __future__ import annotations

import asyncio
import logging
import queue
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from app.common.files import create_tables, sole_writer, transaction
from app.relay.store.backing import (
    ArchivedGroup,
    CheckedGroup,
    GroupsToDelete,
    OnGroup,
    OnPresence,
    OnValue,
    StoreError,
    Unavailable,
    Weight,
)
from app.relay.store.day import COLUMNS, CREATE_INDICES, DAY_MS, Day
from app.relay.store.sequences import SEQUENCE_WINDOW, mark_used
from app.relay.store.window import Added, WindowLimits
from app.swarm.wire.limits import RELAY_FILE
from app.swarm.wire.protocol import WantedQuestions

FORMAT = 1
MAX_KEYS = 50_000
MAX_VALUES = 150_000
"""`MAX_KEYS`: maximum keys whose sequence numbers are kept (the latest ones); `MAX_VALUES`: maximum stored
values."""
MAX_JOBS = 512
"""Maximum jobs in one transaction."""
PRUNE_EVERY_S = 60.0  # the archive keeps a day
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
_MAP_BYTES = SEQUENCE_WINDOW // 8 + 1
_OLD = ("id", "key", "address", "family", "level", "arrived_ms", "raw")

_log = logging.getLogger(__name__)


class _Job(msgspec.Struct, frozen=True):
    """Work for the thread, inside its transaction, and what its result becomes on the loop's thread after the
    commit. `coming`: bytes of the envelope that it adds."""

    work: Callable[[], Any]
    done: asyncio.Future[Any]
    after: Callable[[Any], Any]
    coming: int = 0


class SQLite:
    """An open file, used by one process. `archive`: most bytes of the file with a day of groups in it; 0 for
    the window alone. The groups of the last hour are never thinned out."""

    shared = False

    def __init__(
        self,
        folder: Path,
        swarm: str,
        *,
        archive: int = 0,
        limits: WindowLimits = WindowLimits(),  # noqa: B008 (frozen)
        wall: Callable[[], float] = time.time,
        rng: Random | None = None,
    ) -> None:
        """Opens or creates the file. Raises StoreError if the folder cannot be used, or the file is damaged, in
        use, of another version or of another swarm."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder} cannot be made: {error.strerror}. Choose another --state.") from error
        self._path = folder / RELAY_FILE
        self._archive = archive
        self._limits = limits
        self._wall = wall
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="store", daemon=True)
        self._pruned = float("-inf")
        self._closing = False
        self._overwrite = False
        self.ready = False
        self.archived: int | None = 0 if archive else None
        try:
            self._db = sqlite3.connect(self._path, isolation_level=None, timeout=1.0, check_same_thread=False)
        except sqlite3.Error as error:
            raise StoreError(_why(error, self._path)) from error
        try:
            self._prepare(swarm)
            self._total = self.stored = int(self._fact("stored"))
            self.salt: bytes = self._fact("salt")
            self._day = Day(self._db, archive, self.salt, rng or Random())
            with transaction(self._db):
                self._adopt(folder / f"archive-{swarm}.sqlite3")
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise StoreError(_why(error, self._path)) from error
        except StoreError:
            self._db.close()
            raise

    async def start(self, on_group: OnGroup, on_value: OnValue, on_presence: OnPresence) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_group, self._on_value = on_group, on_value
        with transaction(self._db):
            self._prune()
        for key, value in self._db.execute("SELECT key, value FROM held"):
            on_value(key, value)
        groups = self._db.execute(
            f"SELECT {COLUMNS} FROM groups WHERE arrived_ms >= ? ORDER BY place", (self._window_ms(),)
        )
        for row in groups:
            on_group(CheckedGroup(**dict(zip(CheckedGroup.__struct_fields__, row, strict=True))))
        for key, highest, came in self._db.execute("SELECT key, highest, came FROM numbers ORDER BY at_ms"):
            on_value(f"numbers.{key.hex()}", highest.to_bytes(8, "big") + came)
        self.ready = True
        self._thread.start()

    def publish(self, record: CheckedGroup) -> asyncio.Future[Added]:
        return self._do(lambda: self._store(record), lambda _: self._on_group(record), coming=len(record.raw))

    async def recall(
        self, wanted: Sequence[WantedQuestions], k: int, exclude_author: bytes, weight: Weight
    ) -> list[ArchivedGroup]:
        def work() -> tuple[list[ArchivedGroup], int]:
            oldest_ms = int(self._wall() * 1000) - DAY_MS  # those that expired since the last pruning
            drawn = self._day.sample(wanted, k, exclude_author, weight)
            return [one for one in drawn if one.arrived_ms >= oldest_ms], self._day.count()

        found: list[ArchivedGroup]
        found, self.archived = await self._do(work)
        return found

    async def delete(self, doomed: GroupsToDelete) -> int:
        def work() -> int:
            gone = self._day.delete(doomed)
            self._overwrite |= gone > 0
            return gone

        gone: int = await self._do(work)
        return gone

    delete_everywhere = delete

    def presence(self, summary: bytes) -> None:
        pass

    async def kv_put(self, key: str, value: bytes | None, until: float) -> None:
        def work() -> None:
            if value is None:
                self._db.execute("DELETE FROM held WHERE key = ?", (key,))
            else:
                self._db.execute("INSERT OR REPLACE INTO held VALUES (?, ?, ?)", (key, value, until))

        await self._do(work, lambda _: self._on_value(key, value))

    async def close(self) -> None:
        self.ready, self._closing = False, True
        if self._thread.is_alive():
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)
            await asyncio.sleep(0)  # lets the results of the thread arrive
        self._db.close()

    def _do(
        self, work: Callable[[], Any], after: Callable[[Any], Any] = lambda result: result, coming: int = 0
    ) -> asyncio.Future[Any]:
        """Queues work for the thread. The future raises Unavailable."""
        done: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put(_Job(work, done, after, coming))
        return done

    def _work(self) -> None:
        """Runs in the thread until it takes None from the queue."""
        going_on = True
        while going_on:
            taken = self._waiting()
            batch = [job for job in taken if job is not None]
            going_on = len(batch) == len(taken)
            results: list[Any] = []
            failed = None
            try:
                if batch:
                    results = self._commit(batch)
                elif not self.ready:
                    self._probe()
                if self._wall() - self._pruned > PRUNE_EVERY_S:
                    with transaction(self._db):
                        self._prune()
            except sqlite3.Error as error:
                failed = _why(error, self._path)
                _log.error("%s", failed)
            self._loop.call_soon_threadsafe(self._landed, batch, results, failed)

    def _waiting(self) -> list[_Job | None]:
        """Takes everything from the queue, up to a None; empty if nothing arrives within a second."""
        try:
            jobs = [self._jobs.get(timeout=RETRY_S)]
        except queue.Empty:
            return []
        while len(jobs) < MAX_JOBS and jobs[-1] is not None:
            try:
                jobs.append(self._jobs.get_nowait())
            except queue.Empty:
                break
        return jobs

    def _landed(self, batch: list[_Job], results: list[Any], failed: str | None) -> None:
        """Called on the loop's thread after a transaction: adds the written groups to the window and resolves
        the futures of those who wait. `results` is empty if the transaction failed."""
        if not self._closing:
            self.ready = failed is None
        self.stored = self._total
        for number, job in enumerate(batch):
            if number < len(results):
                outcome = job.after(results[number])
                if not job.done.done():
                    job.done.set_result(outcome)
            elif not job.done.done():
                job.done.set_exception(Unavailable("The relay cannot store groups at the moment."))

    def _commit(self, batch: list[_Job]) -> list[Any]:
        total = self._total
        with transaction(self._db):
            self._day.make_room(sum(job.coming for job in batch), int(self._wall() * 1000))
            results = [job.work() for job in batch]
            total += sum(result for job, result in zip(batch, results, strict=True) if job.coming)
            if total != self._total:
                self._db.execute("UPDATE facts SET is_ = ? WHERE what = 'stored'", (total,))
        self._total = total
        if self._overwrite:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # erased bytes are in no file any more
            self._overwrite = False
        return results

    def _store(self, record: CheckedGroup) -> int:
        """Writes a group. Returns 1, or 0 if an earlier attempt of unknown outcome had already written it."""
        stored = self._day.add(record)
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

    def _window_ms(self) -> int:
        """The arrival (Unix milliseconds) before which a group is too old for any window."""
        return int((self._wall() - max(self._limits.age_s, self._limits.remember_s)) * 1000)

    def _prune(self) -> None:
        """Deletes groups too old for the archive, or without one for any window, expired values, and the
        sequence numbers of the keys silent for longest."""
        self._pruned = self._wall()
        whole = self._limits.whole
        oldest_ms = int(self._wall() * 1000) - DAY_MS if self._archive else self._window_ms()
        self._db.execute("DELETE FROM groups WHERE arrived_ms < ?", (oldest_ms,))
        if not self._archive:
            self._db.execute(
                "DELETE FROM groups WHERE place <= (SELECT place FROM (SELECT place,"
                " row_number() OVER latest AS n, sum(length(raw)) OVER latest AS bytes"
                " FROM groups WINDOW latest AS (ORDER BY place DESC))"
                " WHERE n > ? OR bytes > ? ORDER BY place DESC LIMIT 1)",
                (whole.groups, whole.bytes),
            )
        self._db.execute("DELETE FROM held WHERE until < ?", (self._wall(),))
        for table, order, most in (("held", "until", MAX_VALUES), ("numbers", "at_ms", MAX_KEYS)):
            self._db.execute(
                f"DELETE FROM {table} WHERE key IN"
                f" (SELECT key FROM {table} ORDER BY {order} DESC LIMIT -1 OFFSET ?)",
                (most,),
            )

    def _prepare(self, swarm: str) -> None:
        self._db.execute("PRAGMA page_size=1024")  # of a new file; a long row fills whole pages
        sole_writer(self._db)
        self._db.execute("PRAGMA secure_delete=ON")
        with transaction(self._db):
            if not create_tables(self._db, _SCHEMA, FORMAT):
                raise StoreError(
                    f"{self._path} was written by another version of Shoal: update it, or move it away."
                )
            # older files have no archive
            columns = {row[1] for row in self._db.execute("PRAGMA table_info(groups)")}
            for column in ("who", "seed", "nth", "draw"):
                if column not in columns:
                    self._db.execute(f"ALTER TABLE groups ADD COLUMN {column} INTEGER")
            for statement in CREATE_INDICES.split(";"):
                self._db.execute(statement)
            self._db.execute(
                "INSERT OR IGNORE INTO facts VALUES ('swarm', ?), ('salt', ?)", (swarm, secrets.token_bytes(16))
            )
        if self._fact("swarm") != swarm:
            raise StoreError(
                f"{self._path} belongs to the swarm {self._fact('swarm')}: give another --state for {swarm}."
            )

    def _adopt(self, old: Path) -> None:
        """Takes over the archive that Shoal kept in a file of its own before, and deletes that file. Leaves one
        that cannot be read alone."""
        if not self._archive or not old.exists():
            return
        try:
            with closing(sqlite3.connect(old, timeout=1.0)) as db:
                for row in db.execute(f"SELECT {', '.join(_OLD)} FROM groups"):
                    self._day.add(CheckedGroup(**dict(zip(_OLD, row, strict=True)), key_seq=0))
        except sqlite3.Error as error:
            _log.warning("%s is not read: %s", old, error)
            return
        for part in old.parent.glob(f"{old.name}*"):
            part.unlink()

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
