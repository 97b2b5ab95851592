"""The archive: a day of groups by question, in SQLite within a given size, for nodes that join late.

Every group that enters the window is queued for it without waiting: one thread writes once a second and answers
requests. A kill loses that second, which a journal or NATS restores. When the file is full, groups older than
an hour are thinned out at random, so that it still spans a day of a swarm that is larger than the file.

Authors are drawn before their groups: one after the other from a random position on a circle whose order is
secret. Neither many groups nor specially chosen keys are drawn more often."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from app.common.files import create_tables, sole_writer, transaction
from app.relay.store.backplane import BackplaneError, CheckedGroup
from app.relay.store.queues import site
from app.relay.store.turns import Weight
from app.swarm.wire.body import Envelope, task_of
from app.swarm.wire.limits import ARCHIVED_S, Refused
from app.swarm.wire.protocol import WantedQuestions

FORMAT = 1
DAY_MS, HOUR_MS = 1000 * ARCHIVED_S, 3600 * 1000
EVERY_S = 1.0
EVICT_FRACTION = 0.05
"""Fraction of the groups deleted at once when the file is full."""
DISK_FACTOR = 1.3
"""Estimated bytes on disk per byte of an envelope."""
MAX_QUEUE = 20_000
"""Maximum groups waiting to be written; if the disk is too slow, the oldest of them are dropped."""
_SAME = 64
"""Maximum groups of one question that are examined."""
_TRIES = 12
"""Maximum groups examined per group requested, so that requests for missing ones cost no more."""

_SCHEMA = """
CREATE TABLE facts (what TEXT PRIMARY KEY, is_ ANY) WITHOUT ROWID;
CREATE TABLE groups (
    place INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, key BLOB NOT NULL, who INTEGER NOT NULL,
    address TEXT NOT NULL, family TEXT NOT NULL, level INTEGER NOT NULL, seed INTEGER NOT NULL,
    nth INTEGER NOT NULL, draw INTEGER NOT NULL, arrived_ms INTEGER NOT NULL, raw BLOB NOT NULL);
CREATE INDEX by_question ON groups (family, level, seed, nth);
CREATE INDEX by_author ON groups (family, level, who, draw);
CREATE INDEX by_key ON groups (key);
CREATE INDEX by_time ON groups (arrived_ms);
"""
_COLUMNS = "id, key, address, arrived_ms, raw"
_BITS = 62

_envelopes = msgspec.json.Decoder(Envelope)
_log = logging.getLogger(__name__)


class ArchiveRow(msgspec.Struct, frozen=True, gc=False):
    """A group of the archive: its id, author's key, blinded address, arrival (Unix milliseconds) and
    envelope."""

    id: bytes
    key: bytes
    address: str
    arrived_ms: int
    raw: bytes


_Seen = tuple[int, bytes, bytes, str, int]
"""A group's position, id, author's key, blinded address, and its author's position in the circle."""


class _TaskCursor:
    """The search state of one requested task. `same`: groups of its question not examined yet. If only family
    and level are given: `at`, the author after whom the search continues; `draws`, the position at which each
    author's groups are searched; `barren`, the first author since the last useful group, where the search has
    gone round the circle."""

    __slots__ = ("at", "barren", "draws", "same", "wanted")

    def __init__(self, wanted: WantedQuestions, at: int) -> None:
        self.wanted, self.at = wanted, at
        self.draws: dict[int, int] = {}
        self.same: list[tuple[int]] | None = None
        self.barren: int | None = None


class Archive:
    """One relay's archive file of at most `most` bytes, plus 4 MB of SQLite's write-ahead log. Call it from the
    event loop's thread; nothing blocks there."""

    def __init__(self, folder: Path, swarm: str, most: int, wall: Callable[[], float], rng: Random) -> None:
        """Opens or creates the file. Raises BackplaneError."""
        self._path = folder / f"archive-{swarm}.sqlite3"
        self._most, self._wall, self._rng = most, wall, rng
        self._fresh: deque[CheckedGroup] = deque(maxlen=MAX_QUEUE)
        self._thread = ThreadPoolExecutor(1, "archive")
        self._told = False
        self.groups = 0
        """Number of groups at the latest write."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self._path, isolation_level=None, timeout=1.0, check_same_thread=False)
            self._db.execute("PRAGMA page_size=1024")  # a long row fills whole pages
            sole_writer(self._db)
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA secure_delete=ON")
            with transaction(self._db):
                fits = create_tables(self._db, _SCHEMA, FORMAT)
                self._db.execute("INSERT OR IGNORE INTO facts VALUES ('salt', ?)", (secrets.token_bytes(16),))
            self._salt: bytes = self._db.execute("SELECT is_ FROM facts WHERE what = 'salt'").fetchone()[0]
        except (sqlite3.Error, OSError) as error:
            raise BackplaneError(f"{self._path} cannot be used ({error}): move it away.") from error
        if not fits:
            raise BackplaneError(f"{self._path} was written by another version of Shoal: move it away.")

    def note(self, record: CheckedGroup) -> None:
        """Queues a group for the archive."""
        self._fresh.append(record)

    async def run(self) -> None:
        """Writes queued groups until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self._do(self._write)

    async def sample(
        self, wanted: Sequence[WantedQuestions], k: int, exclude_author: bytes, weight: Weight
    ) -> list[ArchiveRow]:
        """Draws at most `k` groups of these questions, or of their families and levels if no seed is given,
        without those of `exclude_author`. A group of a key with weight w is skipped with probability 1 - w. A
        key gives its second group, and a network its third, only after a pass over all authors."""
        return await self._do(self._sample, wanted, k, exclude_author, weight) or []

    async def forget(self, *, key: bytes | None = None, until_ms: int | None = None, id: bytes | None = None,
                     address: str | None = None) -> int:  # fmt: skip
        """Deletes the group `id`, or all groups of a key or address. Returns how many; on return their bytes
        are overwritten on disk."""
        for column, value in (("key", key), ("id", id), ("address", address)):
            if value is not None:
                return await self._do(self._forget, column, value, until_ms) or 0
        return 0

    async def close(self) -> None:
        await self._do(self._write)
        await asyncio.to_thread(self._thread.shutdown)
        self._db.close()

    async def _do(self, work: Callable[..., Any], *args: Any) -> Any:
        """Runs `work` in the thread, after everything queued is written. Returns None if the disk fails."""

        def story() -> Any:
            try:
                if work != self._write:
                    self._write()
                return work(*args)
            except sqlite3.Error as error:
                if not self._told:
                    _log.error("The archive %s takes or gives nothing: %s", self._path, error)
                self._told = True
                return None

        return await asyncio.get_running_loop().run_in_executor(self._thread, story)

    def _write(self) -> None:
        now_ms = int(self._wall() * 1000)
        rows = []
        while self._fresh:
            record = self._fresh.popleft()
            if record.arrived_ms < now_ms - DAY_MS:
                continue
            try:
                task = task_of(_envelopes.decode(record.raw))
            except (Refused, msgspec.MsgspecError):
                continue
            who = int.from_bytes(blake2b(record.key, digest_size=8, key=self._salt).digest(), "big")
            rows.append(
                (
                    record.id,
                    record.key,
                    who >> 64 - _BITS,
                    record.address,
                    record.family,
                    record.level,
                    task.seed,
                    task.index,
                    self._rng.getrandbits(_BITS),
                    record.arrived_ms,
                    record.raw,
                )
            )
        coming = int(DISK_FACTOR * sum(len(row[-1]) for row in rows))
        while self._used() + coming > self._most and self._thin(now_ms):
            pass
        with transaction(self._db):
            self._db.executemany(
                "INSERT OR IGNORE INTO groups (id, key, who, address, family, level, seed, nth, draw,"
                " arrived_ms, raw) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            self._db.execute("DELETE FROM groups WHERE arrived_ms < ?", (now_ms - DAY_MS,))
        (self.groups,) = self._db.execute("SELECT count(*) FROM groups").fetchone()
        self._told = False

    def _used(self) -> int:
        """Bytes of the file that are in use."""
        (pages,), (free,), (size,) = (
            self._db.execute(f"PRAGMA {what}").fetchone()
            for what in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _thin(self, now_ms: int) -> bool:
        """Deletes a random part of the groups older than an hour and, if there are too few, the oldest. Returns
        False if there are no groups."""
        (all_,) = self._db.execute("SELECT count(*) FROM groups").fetchone()
        going = max(1, int(EVICT_FRACTION * all_))
        which = "SELECT place FROM groups WHERE arrived_ms < ? ORDER BY random() LIMIT ?"
        with transaction(self._db):
            gone = self._db.execute(
                f"DELETE FROM groups WHERE place IN ({which})", (now_ms - HOUR_MS, going)
            ).rowcount
            if gone < going:
                self._db.execute(
                    "DELETE FROM groups WHERE place IN (SELECT place FROM groups ORDER BY arrived_ms LIMIT ?)",
                    (going - gone,),
                )
        return bool(all_)

    def _sample(
        self, wanted: Sequence[WantedQuestions], k: int, exclude_author: bytes, weight: Weight
    ) -> list[ArchiveRow]:
        """Takes a group for each task in turn; with every pass a key may give twice as many. A task's turns in
        a pass end when its authors have no more to give; the total number of groups examined is limited."""
        found: dict[bytes, int] = {}
        keys, sites = Counter[bytes](), Counter[str]()
        order = [_TaskCursor(one, self._rng.getrandbits(_BITS)) for one in dict.fromkeys(wanted)]
        self._rng.shuffle(order)
        cap, looks = 1, _TRIES * k
        while len(found) < k and cap <= k and looks:
            for way in order:
                way.same = way.barren = None
            turns = deque(order)
            while turns and looks and len(found) < k:
                looks -= 1
                way = turns.popleft()
                seen = self._any(way)
                if seen is None:
                    continue
                turns.append(way)
                place, id, key, address, who = seen
                where = site(address)
                if key == exclude_author or id in found or keys[key] >= cap or sites[where] >= 2 * cap:
                    way.barren = who if way.barren is None else way.barren
                    continue
                way.barren = None
                if self._rng.random() < weight(key):
                    found[id] = place
                    keys[key] += 1
                    sites[where] += 1
            cap *= 2
        row = f"SELECT {_COLUMNS} FROM groups WHERE place = ?"
        return [ArchiveRow(*self._db.execute(row, (place,)).fetchone()) for place in found.values()]

    def _any(self, way: _TaskCursor) -> _Seen | None:
        """The next group of this question, or of the next author in this family and level. None at the end."""
        wanted = way.wanted
        shelf = wanted.family, wanted.level
        if wanted.seed is not None:
            if way.same is None:
                way.same = self._db.execute(
                    "SELECT place FROM groups WHERE family = ? AND level = ? AND seed = ? AND nth = ?"
                    " ORDER BY random() LIMIT ?",
                    (*shelf, wanted.seed, wanted.index or 0, _SAME),
                ).fetchall()
            return self._look("place = ?", way.same.pop()) if way.same else None
        who = self._next("who", "family = ? AND level = ?", shelf, way.at + 1)
        if who is None or who == way.barren:
            return None
        way.at = who
        where, of = "family = ? AND level = ? AND who = ?", (*shelf, who)
        start = way.draws[who] if who in way.draws else self._rng.getrandbits(_BITS)
        draw = self._next("draw", where, of, start)
        assert draw is not None
        way.draws[who] = draw + 1
        return self._look(f"{where} AND draw = ?", (*of, draw))

    def _look(self, where: str, of: tuple[Any, ...]) -> _Seen:
        """Reads everything but the envelope, which is read only for groups that are given out."""
        seen: _Seen = self._db.execute(
            f"SELECT place, id, key, address, who FROM groups WHERE {where}", of
        ).fetchone()
        return seen

    def _next(self, column: str, where: str, of: tuple[Any, ...], start: int) -> int | None:
        """The first value of `column` at or after `start`, wrapping around; None if there are no rows."""
        for least in (start, 0):
            row = self._db.execute(
                f"SELECT {column} FROM groups WHERE {where} AND {column} >= ? ORDER BY {column} LIMIT 1",
                (*of, least),
            ).fetchone()
            if row is not None:
                value: int = row[0]
                return value
        return None

    def _forget(self, column: str, value: bytes | str, until_ms: int | None) -> int:
        latest = 2**62 if until_ms is None else until_ms
        gone: int = self._db.execute(
            f"DELETE FROM groups WHERE {column} = ? AND arrived_ms < ?", (value, latest)
        ).rowcount
        if gone:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return gone
