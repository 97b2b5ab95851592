"""A day of groups by question, in a table of SQLite within a given size, for nodes that join late.

When there is too much, groups older than an hour are thinned out at random, so that what stays still spans a
day of a swarm that is larger than the file. Authors are drawn before their groups: one after the other from a
random position on a circle whose order is secret. Neither many groups nor specially chosen keys are drawn more
often."""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import Any

import msgspec

from app.relay.store.backing import ArchivedGroup, CheckedGroup, GroupsToDelete, Weight
from app.relay.store.queues import site
from app.swarm.wire.body import Envelope, task_of
from app.swarm.wire.limits import ARCHIVE_MAX_AGE_S, Refused
from app.swarm.wire.protocol import WantedQuestions

DAY_MS, HOUR_MS = 1000 * ARCHIVE_MAX_AGE_S, 3600 * 1000
EVICT_FRACTION = 0.05
"""Fraction of the groups deleted at once when there are too many."""
DISK_FACTOR = 1.3
"""Estimated bytes on disk per byte of an envelope."""
_SAME = 64
"""Maximum groups of one question that are examined."""
_TRIES = 12
"""Maximum groups examined per group requested, so that requests for missing ones cost no more."""

COLUMNS = "id, key, key_seq, address, family, level, arrived_ms, raw"
"""The columns of a CheckedGroup, in its order."""
PLACED = "who, seed, nth, draw"
"""The columns that place a group in the archive: its author's place on the circle, its question's seed and
index, and a random position among the author's. NULL for a group that is not archived."""
CREATE_INDICES = """
CREATE INDEX IF NOT EXISTS by_key ON groups (key);
CREATE INDEX IF NOT EXISTS by_time ON groups (arrived_ms);
CREATE INDEX IF NOT EXISTS by_question ON groups (family, level, seed, nth) WHERE who IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_author ON groups (family, level, who, draw) WHERE who IS NOT NULL
"""
_BITS = 62  # SQLite's integers have 63 bits and a sign

_envelopes = msgspec.json.Decoder(Envelope)

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


class Day:
    """The groups of a database of at most `most` bytes, or of those of the window alone if `most` is 0. Its
    methods run inside the caller's transaction and raise sqlite3.Error. `salt` orders the circle of authors."""

    def __init__(self, db: sqlite3.Connection, most: int, salt: bytes, rng: Random) -> None:
        self._db = db
        self._most = most
        self._salt = salt
        self._rng = rng

    def add(self, record: CheckedGroup) -> int:
        """Stores a group. Returns 1, or 0 if it is there already."""
        return self._db.execute(
            f"INSERT OR IGNORE INTO groups ({COLUMNS}, {PLACED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*msgspec.structs.astuple(record), *self._place(record)),
        ).rowcount

    def _place(self, record: CheckedGroup) -> tuple[int | None, ...]:
        if not self._most:
            return (None,) * 4
        try:
            task = task_of(_envelopes.decode(record.raw))
        except (Refused, msgspec.MsgspecError):
            return (None,) * 4
        who = int.from_bytes(blake2b(record.key, digest_size=8, key=self._salt).digest(), "big")
        return who >> 64 - _BITS, task.seed, task.index, self._rng.getrandbits(_BITS)

    def make_room(self, coming: int, now_ms: int) -> None:
        """Thins out the groups older than an hour until envelopes of `coming` bytes fit."""
        while self._most and self._used() + DISK_FACTOR * coming > self._most and self._thin(now_ms):
            pass

    def _used(self) -> int:
        """Bytes of the file that are in use."""
        (pages,), (free,), (size,) = (
            self._db.execute(f"PRAGMA {what}").fetchone()
            for what in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _thin(self, now_ms: int) -> bool:
        """Deletes a random part of the groups older than an hour. Returns False if there are none."""
        going = max(1, int(EVICT_FRACTION * self.count()))
        which = "SELECT place FROM groups WHERE arrived_ms < ? ORDER BY random() LIMIT ?"
        gone = self._db.execute(f"DELETE FROM groups WHERE place IN ({which})", (now_ms - HOUR_MS, going))
        return gone.rowcount > 0

    def count(self) -> int:
        (groups,) = self._db.execute("SELECT count(*) FROM groups").fetchone()
        return int(groups)

    def delete(self, doomed: GroupsToDelete) -> int:
        """Deletes groups and returns how many."""
        gone = 0
        for column in ("id", "key", "address"):
            if (value := getattr(doomed, column)) is not None:
                gone += self._db.execute(
                    f"DELETE FROM groups WHERE {column} = ? AND arrived_ms < ?", (value, doomed.until_ms)
                ).rowcount
        return gone

    def sample(
        self, wanted: Sequence[WantedQuestions], k: int, exclude_author: bytes, weight: Weight
    ) -> list[ArchivedGroup]:
        """Draws as `Backing.recall` says. Takes a group for each task in turn; with every pass a key may give
        twice as many. A task's turns in a pass end when its authors have no more to give; the total number of
        groups examined is limited."""
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
        row = "SELECT id, key, address, arrived_ms, raw FROM groups WHERE place = ?"
        return [ArchivedGroup(*self._db.execute(row, (place,)).fetchone()) for place in found.values()]

    def _any(self, way: _TaskCursor) -> _Seen | None:
        """The next group of this question, or of the next author in this family and level. None at the end."""
        wanted = way.wanted
        shelf = wanted.family, wanted.level
        if wanted.seed is not None:
            if way.same is None:
                way.same = self._db.execute(
                    "SELECT place FROM groups WHERE who IS NOT NULL AND family = ? AND level = ? AND seed = ?"
                    " AND nth = ? ORDER BY random() LIMIT ?",
                    (*shelf, wanted.seed, wanted.index or 0, _SAME),
                ).fetchall()
            return self._look("place = ?", way.same.pop()) if way.same else None
        who = self._next("who", "who IS NOT NULL AND family = ? AND level = ?", shelf, way.at + 1)
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
