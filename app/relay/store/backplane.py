"""The interface of backplanes, which store a relay's groups and carry them to other relays: memory, a journal
on disk, or NATS.

A backplane stores a group, with its own kind of durability, and passes it back for the window; only then is the
group acknowledged. Sampling reads the window only. Besides groups, a backplane carries small values (bans,
standings and the like), which all its relays see, and each relay's presence summary."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

import msgspec

from app.relay.store.window import Added


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


OnGroup = Callable[[CheckedGroup], Added]
"""Adds a group to the window; may be called twice for one group."""
OnValue = Callable[[str, bytes | None], None]
"""Called with a value's key and the value, None if it was deleted."""
OnPresence = Callable[[str, bytes], None]
"""Called with another relay's name on the backplane and its presence summary."""


class Unavailable(Exception):
    """The backplane failed to confirm a write; whether it was stored is unknown. The message is a sentence for
    the client, `retry_after_s` the seconds until the next try."""

    def __init__(self, sentence: str, retry_after_s: float = 2.0) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class BackplaneError(Exception):
    """The backplane cannot be used at all; the message says why and what to do."""


class Backplane(Protocol):
    """The interface of a backplane. All methods and the three callbacks are called on the event loop's
    thread."""

    @property
    def ready(self) -> bool:
        """True if everything stored has been loaded and new groups are accepted."""

    @property
    def shared(self) -> bool:
        """True if other relays may use this backplane."""

    @property
    def stored(self) -> int:
        """Number of groups ever stored; it never decreases."""

    @property
    def salt(self) -> bytes:
        """A secret for blinding addresses, equal for all relays on this backplane. Set by `start`."""

    async def start(self, on_group: OnGroup, on_value: OnValue, on_presence: OnPresence) -> None:
        """Passes the stored values and then the stored groups to the callbacks, in order of arrival, and new
        ones as they come. Raises BackplaneError."""

    def publish(self, record: CheckedGroup) -> Added | Awaitable[Added]:
        """Stores a group and passes it to `on_group`. Returns the result, or an awaitable of it that raises
        Unavailable; cancelling that does not undo the publish."""

    def presence(self, summary: bytes) -> None:
        """Sends this relay's presence summary to the other relays, if there are any. Never waits; may get
        lost."""

    async def kv_put(self, key: str, value: bytes | None, until: float) -> None:
        """Stores a value, or deletes it if None; `on_value` is called here and on every other relay. Keys
        consist of `A-Za-z0-9._-`. The value expires at `until` (Unix seconds). Raises Unavailable."""

    async def erase(self, key: bytes) -> None:
        """Deletes every stored group of this key. Raises Unavailable."""

    async def close(self) -> None:
        """Finishes pending writes. Nothing may be called afterwards."""


# The backplane of a relay that is alone and forgets: everything is in the window already.


class MemoryBroker:
    """Keeps everything in memory: nothing waits or fails, and all is lost when the process ends."""

    shared = False

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

    def publish(self, record: CheckedGroup) -> Added:
        added = self._on_group(record)
        self.stored += added == "accepted"
        return added

    def presence(self, summary: bytes) -> None:
        pass

    async def kv_put(self, key: str, value: bytes | None, until: float) -> None:
        self._on_value(key, value)

    async def erase(self, key: bytes) -> None:
        pass

    async def close(self) -> None:
        self.ready = False


# Numbers used once: for each key its highest `key_seq` and which of the 1,024 below it have come, as IPsec does
# against replay (RFC 4303, 3.4.3). A key costs one integer of 1,024 bits however long it publishes.

BEHIND = 1024
_MASK = (1 << (BEHIND + 1)) - 1

Seen = Literal["new", "used", "behind"]


def mark_used(highest: int, came: int, number: int) -> tuple[int, int]:
    """Adds a number to a key's used numbers: returns the new highest number and the bit set of those below it
    (bit n: highest - n is used).

    >>> mark_used(0, 0, 7), mark_used(7, 0b1, 9), mark_used(9, 0b101, 8), mark_used(9, 0b111, 9 - BEHIND - 1)
    ((7, 1), (9, 5), (9, 7), (9, 7))
    """
    if number > highest:
        ahead = number - highest
        came = (came << ahead if ahead <= BEHIND else 0) & _MASK
        highest = number
    if highest - number <= BEHIND:
        came |= 1 << (highest - number)
    return highest, came


class Sequences:
    """The used sequence numbers of the `keys` most recently active keys. A forgotten key starts from zero."""

    __slots__ = ("_keys", "_known")

    def __init__(self, keys: int = 50_000) -> None:
        self._keys = keys
        self._known: OrderedDict[bytes, tuple[int, int]] = OrderedDict()

    def look(self, key: bytes, number: int) -> Seen:
        """Tests whether a number may still be used (`new`), without recording it. `behind`: too far below the
        highest to be known.

        >>> sequences = Sequences()
        >>> sequences.use(b"ann", 5000)
        >>> [sequences.look(b"ann", number) for number in (5001, 5000, 4999, 3976, 3975)]
        ['new', 'used', 'new', 'new', 'behind']
        """
        highest, came = self._known.get(key, (0, 0))
        if number > highest:
            return "new"
        if highest - number > BEHIND:
            return "behind"
        return "used" if came >> (highest - number) & 1 else "new"

    def use(self, key: bytes, number: int) -> None:
        """Records a number as used. Does nothing for one too far below the highest."""
        self.put(key, *mark_used(*self._known.get(key, (0, 0)), number))

    def put(self, key: bytes, highest: int, came: int) -> None:
        """Sets all of a key's used numbers, in the form that `mark_used` returns."""
        self._known[key] = highest, came
        self._known.move_to_end(key)
        if len(self._known) > self._keys:
            self._known.popitem(last=False)

    def __contains__(self, key: bytes) -> bool:
        return key in self._known
