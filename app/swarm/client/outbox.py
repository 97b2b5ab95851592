"""Groups waiting to be published, in SQLite: a group is removed only after a relay's final answer.

A message gets its sequence number, its signature and its row on disk in one transaction, and is sent only after
that. So no number is used twice, and kill -9 at any moment loses nothing: a message whose answer was not
recorded is sent again, and its id makes that harmless."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.common.files import create_tables, sole_writer, transaction
from app.swarm.wire.body import Envelope
from app.swarm.wire.frames import to_frame
from app.swarm.wire.limits import FRAME_BYTES, OPEN_PUBLISHES, SAFE_INTEGER, Code
from app.swarm.wire.protocol import Pub

FORMAT = 1
MAX_MESSAGES = 10_000
MAX_BYTES = 50_000_000
MIN_MESSAGES = OPEN_PUBLISHES + 1
MIN_BYTES = MIN_MESSAGES * FRAME_BYTES
"""Minimum size: all messages in flight and the next one, so that there is always an unsent message to drop."""

_SCHEMA = """
CREATE TABLE messages (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, key_seq INTEGER NOT NULL, size INTEGER NOT NULL,
    frame BLOB NOT NULL);
CREATE TABLE sequences (pk TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE counts (what TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
"""


class OutboxError(Exception):
    """The outbox cannot be opened; the message says why and what to do."""


class OutboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A `pub` frame as it is sent, byte-identical at every try."""

    id: str
    key_seq: int
    frame: bytes


class OutboxCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of all messages ever created, by their fate: `created` is the sum of the other counts."""

    created: int = 0
    waiting: int = 0
    accepted: int = 0
    duplicate: int = 0
    stale: int = 0
    invalid: int = 0
    blocked: int = 0
    dropped: int = 0


class Outbox:
    """An open outbox, used by one process. Methods block for a few milliseconds; they raise sqlite3.Error, with
    nothing changed, if the disk fails."""

    def __init__(
        self,
        path: Path,
        *,
        max_messages: int = MAX_MESSAGES,
        max_bytes: int = MAX_BYTES,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """Opens or creates the file. `clock_ms` provides a new key's first sequence number. Raises OutboxError
        if the file is damaged, of another version, in use or not writable, and ValueError for limits below
        MIN_MESSAGES or MIN_BYTES."""
        if max_messages < MIN_MESSAGES or max_bytes < MIN_BYTES:
            raise ValueError(f"An outbox needs room for {MIN_MESSAGES} messages and {MIN_BYTES} bytes.")
        self._max_messages, self._max_bytes, self._clock_ms = max_messages, max_bytes, clock_ms
        self._under_way: set[str] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        except OSError as error:
            raise OutboxError(f"{path.parent} can't be used ({error.strerror or error}).") from error
        except sqlite3.Error as error:
            raise OutboxError(f"{path} can't be opened ({error}).") from error
        try:
            self._prepare(path)
            self._waiting, self._bytes = self._measure()
        except sqlite3.DatabaseError as error:
            self._db.close()
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise OutboxError(f"{path} is in use by another node: end that one first.") from error
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise OutboxError(
                    f"{path} is damaged: move it away. Groups that were not sent yet stay behind in it."
                ) from error
            raise OutboxError(f"{path} can't be used ({error}).") from error
        except OutboxError:
            self._db.close()
            raise

    def add(self, key: bytes, make: Callable[[int], Envelope]) -> OutboxMessage:
        """Numbers, signs and stores one message of a public key: `make` creates the envelope for a sequence
        number. If there is no room, the oldest messages not in flight are dropped and counted. If `make` raises
        (for example Refused), nothing is stored and no number is used."""
        with transaction(self._db):
            key_seq = self._next_number(key.hex())
            envelope = make(key_seq)
            frame = to_frame(Pub.of(envelope))
            self._db.execute(
                "INSERT INTO messages (id, key_seq, size, frame) VALUES (?, ?, ?, ?)",
                (envelope.id, key_seq, len(frame), frame),
            )
            self._count("created")
            waiting, size = self._make_room(self._waiting + 1, self._bytes + len(frame))
        self._waiting, self._bytes = waiting, size
        return OutboxMessage(id=envelope.id, key_seq=key_seq, frame=frame)

    def take(self, most: int = OPEN_PUBLISHES) -> list[OutboxMessage]:
        """Returns the oldest messages that are not in flight and marks them as in flight; at most `most`, and
        never more in all than relays allow."""
        most = min(most, OPEN_PUBLISHES - len(self._under_way))
        if most <= 0:
            return []
        rows = self._db.execute(
            "SELECT id, key_seq, frame FROM messages ORDER BY place LIMIT ?", (most + len(self._under_way),)
        )
        messages = [
            OutboxMessage(id=id_, key_seq=key_seq, frame=frame)
            for id_, key_seq, frame in rows
            if id_ not in self._under_way
        ][:most]
        self._under_way.update(one.id for one in messages)
        return messages

    def settle(self, id: str, code: Code) -> bool:
        """Records a relay's answer: a final one removes the message, any other returns it to the queue. Ignores
        messages not in flight. Returns whether the message was removed."""
        if id not in self._under_way:
            return False
        if code.final:
            with transaction(self._db):
                (size,) = self._db.execute("DELETE FROM messages WHERE id = ? RETURNING size", (id,)).fetchone()
                self._count(code.value)
            self._waiting, self._bytes = self._waiting - 1, self._bytes - size
        self._under_way.discard(id)
        return code.final

    def on_disconnect(self) -> None:
        """Returns all messages in flight to the queue, to be sent again, oldest first."""
        self._under_way.clear()

    def counts(self) -> OutboxCounts:
        kept: dict[str, int] = dict(self._db.execute("SELECT what, n FROM counts").fetchall())
        return msgspec.convert({**kept, "waiting": self._waiting}, OutboxCounts)

    def keys(self) -> frozenset[bytes]:
        """Every public key that this data folder ever published with: groups signed by them are the node's
        own."""
        return frozenset(bytes.fromhex(pk) for (pk,) in self._db.execute("SELECT pk FROM sequences"))

    def close(self) -> None:
        self._db.close()

    def _prepare(self, path: Path) -> None:
        # What is under way is known to one process alone.
        sole_writer(self._db)
        with transaction(self._db):
            if not create_tables(self._db, _SCHEMA, FORMAT):
                raise OutboxError(
                    f"{path} was written by another version of Shoal: update it, or move it away."
                )

    def _measure(self) -> tuple[int, int]:
        waiting, size = self._db.execute("SELECT count(*), total(size) FROM messages").fetchone()
        return waiting, int(size)

    def _next_number(self, pk: str) -> int:
        """Returns and stores a key's next sequence number. A key without a history here (new, or restored after
        its disk was lost) starts at the time in milliseconds, which exceeds every earlier number, since no node
        publishes a thousand groups a second."""
        row = self._db.execute("SELECT last FROM sequences WHERE pk = ?", (pk,)).fetchone()
        number: int = row[0] + 1 if row else max(1, min(self._clock_ms(), SAFE_INTEGER // 2))
        self._db.execute("INSERT OR REPLACE INTO sequences VALUES (?, ?)", (pk, number))
        return number

    def _make_room(self, waiting: int, size: int) -> tuple[int, int]:
        while waiting > self._max_messages or size > self._max_bytes:
            marks = ", ".join("?" * len(self._under_way))
            (freed,) = self._db.execute(
                "DELETE FROM messages WHERE place ="
                f" (SELECT min(place) FROM messages WHERE id NOT IN ({marks})) RETURNING size",
                tuple(self._under_way),
            ).fetchone()
            self._count("dropped")
            waiting, size = waiting - 1, size - freed
        return waiting, size

    def _count(self, what: str) -> None:
        self._db.execute("INSERT INTO counts VALUES (?, 1) ON CONFLICT (what) DO UPDATE SET n = n + 1", (what,))
