"""What a store keeps its groups in: nothing but memory, a file of SQLite, or NATS JetStream.

A backing stores a group, with its own kind of durability, and passes it back for the window; only then is the
group acknowledged. Besides groups, it carries small values (bans, standings and the like), which all its relays
see, and each relay's presence summary. One that has a disk also keeps a day of groups, for nodes that join
late."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from app.relay.store.window import Added
from app.swarm.wire.protocol import WantedQuestions


class CheckedGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A group that has passed the checks: its content id, author's public key and sequence number, blinded
    address, family and level, arrival (Unix milliseconds), and the envelope's bytes as they are given out."""

    id: bytes
    key: bytes
    key_seq: int
    address: str
    family: str
    level: int
    arrived_ms: int
    raw: bytes


class ArchivedGroup(msgspec.Struct, frozen=True, gc=False):
    """A group of the archive: its id, author's key, blinded address, arrival (Unix milliseconds) and
    envelope."""

    id: bytes
    key: bytes
    address: str
    arrived_ms: int
    raw: bytes


Weight = Callable[[bytes], float]
"""Returns a key's sampling weight, 0 (never drawn) to 1; see `standing`."""
OnGroup = Callable[[CheckedGroup], Added]
"""Adds a group to the window; may be called twice for one group."""
OnValue = Callable[[str, bytes | None], None]
"""Called with a value's key and the value, None if it was deleted."""
OnPresence = Callable[[str, bytes], None]
"""Called with another relay's name on the backing and its presence summary."""


class Unavailable(Exception):
    """The backing failed to confirm a write; whether it was stored is unknown. The message is a sentence for
    the client, `retry_after_s` the seconds until the next try."""

    def __init__(self, sentence: str, retry_after_s: float = 2.0) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class StoreError(Exception):
    """The backing cannot be used at all; the message says why and what to do."""


class GroupsToDelete(msgspec.Struct, frozen=True, kw_only=True):
    """Names the groups to delete: the one with this `id`, or all of a `key` or an `address` (as it is stored)
    that arrived before `until_ms` (Unix milliseconds)."""

    id: bytes | None = None
    key: bytes | None = None
    address: str | None = None
    until_ms: int = 2**62


class Backing(Protocol):
    """The interface of backings. All methods and the three callbacks are called on the event loop's thread."""

    @property
    def ready(self) -> bool:
        """True if everything stored has been loaded and new groups are accepted."""

    @property
    def shared(self) -> bool:
        """True if other relays may use this backing."""

    @property
    def stored(self) -> int:
        """Number of groups ever stored; it never decreases."""

    @property
    def archived(self) -> int | None:
        """Number of groups in the archive of a day; None without an archive."""

    @property
    def salt(self) -> bytes:
        """A secret for blinding addresses, equal for all relays on this backing. Set by `start`."""

    async def start(self, on_group: OnGroup, on_value: OnValue, on_presence: OnPresence) -> None:
        """Passes the stored values and then the stored groups of the window to the callbacks, in order of
        arrival, and new ones as they come. Raises StoreError."""

    def publish(self, record: CheckedGroup) -> Added | Awaitable[Added]:
        """Stores a group and passes it to `on_group`. Returns the result, or an awaitable of it that raises
        Unavailable; cancelling that does not undo the publish."""

    async def recall(
        self, wanted: Sequence[WantedQuestions], k: int, exclude_author: bytes, weight: Weight
    ) -> list[ArchivedGroup]:
        """Draws at most `k` archived groups of these questions, or of their families and levels if no seed is
        given, without those of `exclude_author`. A group of a key with weight w is skipped with probability
        1 - w. A key gives its second group, and a network its third, only after a pass over all authors. Raises
        Unavailable."""

    async def delete(self, doomed: GroupsToDelete) -> int:
        """Deletes groups from this relay's own disk, the archive included, and returns how many. On return
        their bytes are overwritten. Raises Unavailable."""

    async def delete_everywhere(self, doomed: GroupsToDelete) -> int:
        """`delete`, and the same in what is shared with other relays, for all groups of a key."""

    def presence(self, summary: bytes) -> None:
        """Sends this relay's presence summary to the other relays, if there are any. Never waits; may get
        lost."""

    async def kv_put(self, key: str, value: bytes | None, until: float) -> None:
        """Stores a value, or deletes it if None; `on_value` is called here and on every other relay. Keys
        consist of `A-Za-z0-9._-`. The value expires at `until` (Unix seconds). Raises Unavailable."""

    async def close(self) -> None:
        """Finishes pending writes. Nothing may be called afterwards."""


class Memory:
    """The backing of a relay that is alone and forgets: everything is in the window already, nothing waits or
    fails, and all is lost when the process ends."""

    shared = False
    archived = None

    def __init__(self) -> None:
        self.ready = False
        self.stored = 0
        self.salt = secrets.token_bytes(16)
        self._on_group: OnGroup
        self._on_value: OnValue

    async def start(self, on_group: OnGroup, on_value: OnValue, on_presence: OnPresence) -> None:
        self.open(on_group, on_value)

    def open(self, on_group: OnGroup, on_value: OnValue) -> None:
        """Like `start`, without an event loop."""
        self._on_group, self._on_value = on_group, on_value
        self.ready = True

    def publish(self, record: CheckedGroup) -> Added | Awaitable[Added]:
        added = self._on_group(record)
        self.stored += added == "accepted"
        return added

    async def recall(
        self, wanted: Sequence[WantedQuestions], k: int, exclude_author: bytes, weight: Weight
    ) -> list[ArchivedGroup]:
        return []

    async def delete(self, doomed: GroupsToDelete) -> int:
        return 0

    delete_everywhere = delete

    def presence(self, summary: bytes) -> None:
        pass

    async def kv_put(self, key: str, value: bytes | None, until: float) -> None:
        self._on_value(key, value)

    async def close(self) -> None:
        self.ready = False
