"""A relay's store: a window of the last hour's groups, which nodes sample, and an archive of a day, which nodes
that join late recall. Behind both is one backing: memory, SQLite or JetStream.

A group is stored once: no id and no author's sequence number counts twice, neither in the window nor among the
publishes that the backing has not confirmed yet. What is dropped, or erased by its author, stays away when the
relay or its backing comes back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Container, Coroutine, Sequence
from typing import Any

from app.relay.store.backing import (
    ArchivedGroup,
    Backing,
    CheckedGroup,
    GroupsToDelete,
    Memory,
    OnPresence,
    Unavailable,
    Weight,
)
from app.relay.store.sequences import Sequences
from app.relay.store.window import Added, Clock, Window, WindowLimits
from app.swarm.wire.limits import ARCHIVE_MAX_AGE_S
from app.swarm.wire.protocol import WantedQuestions

_DROPPED = 50_000  # ids that must not come back from another relay
_ERASED = 10_000
"""Maximum dropped ids and erased keys that are remembered."""

_log = logging.getLogger(__name__)


class Store:
    """The groups of one relay. `waited` and `waited_s`: groups that had to wait for the backing, and their
    total wait in seconds. Call `open` first, except with memory."""

    def __init__(
        self,
        backing: Backing | None = None,
        known: Container[bytes] = frozenset(),
        *,
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
        on_stored: Callable[[float], None] = lambda age_s: None,
        on_value: Callable[[str, str, bytes | None], None] = lambda kind, name, value: None,
    ) -> None:
        """`known`: keys with standing. `on_stored` is called with the age in seconds of each group that
        enters the window, `on_value` with the two parts of the key of each value that is not the
        store's own, and the value."""
        self.window = Window(WindowLimits(), clock, known)
        self.sequences = Sequences()
        self.backing: Backing = backing or Memory()
        self.waited = 0
        self.waited_s = 0.0
        self._clock, self._wall = clock, wall
        self._on_stored, self._on_value = on_stored, on_value
        self._flights: dict[bytes | tuple[bytes, int], asyncio.Future[Added]] = {}
        """The unconfirmed publishes, by id and by (key, sequence number)."""
        self._dropped: OrderedDict[bytes, None] = OrderedDict()
        self._erased: OrderedDict[bytes, int] = OrderedDict()
        """Erased keys, and the time (Unix milliseconds) before which their groups were erased."""
        self._forgetting: set[asyncio.Task[None]] = set()
        self.opened = isinstance(self.backing, Memory)
        if isinstance(self.backing, Memory):
            self.backing.open(self._take, self._value)

    async def open(self, on_presence: OnPresence = lambda relay, summary: None) -> None:
        """Starts the backing, which fills the window. Raises StoreError."""
        await self.backing.start(self._take, self._value, on_presence)
        self.opened = True

    async def close(self) -> None:
        """Closes the backing, which finishes publishes in flight."""
        await asyncio.gather(*self._forgetting)
        await self.backing.close()

    def publish(self, record: CheckedGroup) -> Added | Coroutine[Any, Any, Added]:
        """Sends a new group to the backing, which passes it to the window. The group counts as stored, and its
        sequence number as used, only once the backing has it. The coroutine raises Unavailable; cancelling it
        does not undo the publish."""
        if len(record.raw) > self.window.largest:
            return "too-large"
        if self.window.knows(record.id):
            return "duplicate"
        names = (record.id, (record.key, record.key_seq))
        for name in names if self._flights else ():
            if (flight := self._flights.get(name)) is not None:
                return _as_duplicate(flight)
        added = self.backing.publish(record)
        return added if isinstance(added, str) else self._begin(names, added)

    def _begin(
        self, names: tuple[bytes | tuple[bytes, int], ...], added: Awaitable[Added]
    ) -> Coroutine[Any, Any, Added]:
        began = time.perf_counter()
        flight = asyncio.ensure_future(added)
        for name in names:
            self._flights[name] = flight

        def landed(flight: asyncio.Future[Added]) -> None:
            for name in names:
                self._flights.pop(name, None)
            # The exception has been seen then, also when no one waits any more.
            if not flight.cancelled() and flight.exception() is None:
                self.waited += 1
                self.waited_s += time.perf_counter() - began

        flight.add_done_callback(landed)
        return _outcome(flight)

    async def recall(
        self, wanted: Sequence[WantedQuestions], k: int, exclude_author: bytes, weight: Weight
    ) -> list[ArchivedGroup]:
        """Draws from the archive as `Backing.recall` says. Raises Unavailable."""
        return await self.backing.recall(wanted, k, exclude_author, weight)

    async def drop(self, id: bytes) -> None:
        """Removes a group from all relays of the backing. Raises Unavailable; it is then gone here only."""
        self.window.drop(id)
        await self.backing.kv_put(f"drop.{id.hex()}", b"", self._wall() + self.window.limits.age_s)

    async def erase(self, key: bytes) -> int:
        """Deletes all groups that a key has signed until now, from window and archive, on every relay of the
        backing. Returns how many this relay had. Its sequence numbers are kept. Raises Unavailable."""
        author, until_ms = self.window.authors.get(key), int(self._wall() * 1000) + 1
        there = author.queue.groups if author is not None else 0
        self._erase(key, until_ms)
        gone = await self.backing.delete_everywhere(GroupsToDelete(key=key, until_ms=until_ms))
        await self.backing.kv_put(
            f"erase.{key.hex()}", until_ms.to_bytes(8, "big"), self._wall() + ARCHIVE_MAX_AGE_S
        )
        await asyncio.sleep(0.002)  # groups that arrive after the answer are newer than `until_ms`
        return max(there, gone)

    def drop_source(self, *, key: bytes | None = None, address: str | None = None) -> None:
        """Removes all groups of a key or a blinded address from this relay."""
        if key is not None:
            self.window.drop_key(key)
        if address is not None:
            self.window.drop_address(address)
        self._forget(GroupsToDelete(key=key, address=address))

    def _take(self, record: CheckedGroup) -> Added:
        """Adds a group from the backing to the window: of a client of this relay or of another, or stored
        earlier."""
        if self.sequences.check(record.key, record.key_seq) == "used" and not self.window.knows(record.id):
            return "duplicate"  # another group has the number
        if self._erased and record.arrived_ms < self._erased.get(record.key, 0):
            return "duplicate"
        age_s = max(0.0, self._wall() - record.arrived_ms / 1000)
        added = self.window.add(
            id=record.id,
            key=record.key,
            address=record.address,
            family=record.family,
            level=record.level,
            raw=record.raw,
            arrived=self._clock() - age_s,
        )
        if added == "accepted":
            self.sequences.use(record.key, record.key_seq)
            self._on_stored(age_s)
            if record.id in self._dropped:
                self.window.drop(record.id)
                return "duplicate"
        return added

    def _value(self, key: str, value: bytes | None) -> None:
        """Applies a value that has changed, here or at another relay."""
        kind, _, name = key.partition(".")
        if kind not in ("numbers", "erase", "drop"):
            self._on_value(kind, name, value)
        elif value is not None:
            this = bytes.fromhex(name)
            if kind == "numbers":
                self.sequences.put(this, int.from_bytes(value[:8], "big"), int.from_bytes(value[8:], "big"))
            elif kind == "erase":
                until_ms = int.from_bytes(value, "big")
                self._erase(this, until_ms)
                self._forget(GroupsToDelete(key=this, until_ms=until_ms))
            else:
                self._dropped[this] = None
                if len(self._dropped) > _DROPPED:
                    self._dropped.popitem(last=False)
                self.window.drop(this)
                self._forget(GroupsToDelete(id=this))

    def _erase(self, key: bytes, until_ms: int) -> None:
        self._erased[key] = until_ms
        if len(self._erased) > _ERASED:
            self._erased.popitem(last=False)
        self.window.drop_key(key, self._clock() - self._wall() + (until_ms - 0.5) / 1000)

    def _forget(self, doomed: GroupsToDelete) -> None:
        """Deletes groups from this relay's disk in a background task."""
        if isinstance(self.backing, Memory):
            return  # it has none, and perhaps no event loop

        async def forget() -> None:
            try:
                await self.backing.delete(doomed)
            except Unavailable as error:
                _log.warning("Not deleted from the disk: %s", error)

        task = asyncio.get_running_loop().create_task(forget())
        self._forgetting.add(task)
        task.add_done_callback(self._forgetting.discard)


async def _outcome(flight: asyncio.Future[Added]) -> Added:
    return await asyncio.shield(flight)


async def _as_duplicate(flight: asyncio.Future[Added]) -> Added:
    """`duplicate` once the publish with the same id or number is accepted, else that one's result."""
    added = await asyncio.shield(flight)
    return "duplicate" if added == "accepted" else added
