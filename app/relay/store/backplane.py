"""The backplane that carries groups between a relay's clients, and past its process: memory, a journal on
disk, or NATS.

A backplane makes a group durable, each in its own way, and hands it back to be taken into the window; only then
is it acknowledged. Sampling never asks it. Besides groups it carries small values (bans, standings and the
like), which every relay on it sees, and each relay's summary of who is there."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

import msgspec

from app.relay.store.window import Added


class CheckedGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A group that has passed the checks: its content id, its author's public key, where it came from (a
    blinded address), its task, the envelope's bytes as they are handed out, and its arrival in Unix
    milliseconds."""

    id: bytes
    key: bytes
    key_seq: int
    address: str
    family: str
    level: int
    arrived_ms: int
    raw: bytes


OnGroup = Callable[[CheckedGroup], Added]
"""Adds a group to the window; may be called twice for the same group."""
OnValue = Callable[[str, bytes | None], None]
"""Gets a value by its key, None when it is deleted."""
OnPresence = Callable[[str, bytes], None]
"""Gets another relay's summary of who is there, by that relay's epoch."""


class Unavailable(Exception):
    """The backplane could not store something just now; whether it is stored is unknown. The sentence is for
    the client, and `retry_after_s` says when to try again."""

    def __init__(self, sentence: str, retry_after_s: float = 2.0) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class BackplaneError(Exception):
    """The backplane cannot be used at all; the message says why and what to do."""


class Backplane(Protocol):
    """All methods are called on the loop's thread; so are the three callbacks."""

    @property
    def ready(self) -> bool:
        """Whether everything stored before has been loaded, and new groups are accepted."""

    @property
    def shared(self) -> bool:
        """Whether other relays may be on it."""

    @property
    def stored(self) -> int:
        """Number of groups ever stored; it never decreases."""

    @property
    def salt(self) -> bytes:
        """A secret for blinding addresses, the same for all relays on this backplane. Known after `start`."""

    async def start(self, on_group: OnGroup, on_value: OnValue, on_presence: OnPresence) -> None:
        """Passes stored values and then groups to the callbacks, in the order they arrived, and after that new
        ones. Raises BackplaneError."""

    def publish(self, record: CheckedGroup) -> Added | Awaitable[Added]:
        """Stores a group and passes it to `on_group`. Returns the answer itself if nothing has to wait, else an
        awaitable, which raises Unavailable; cancelling it does not undo the publishing."""

    def presence(self, summary: bytes) -> None:
        """Tells other relays who is here, if there are any. Never waits, and may get lost."""

    async def kv_put(self, key: str, value: bytes | None, until: float) -> None:
        """Stores or deletes a value; `on_value` is called here and on every other relay. Keys are made of
        `A-Za-z0-9._-`. The value expires at `until` (Unix seconds). Raises Unavailable."""

    async def erase(self, key: bytes) -> None:
        """Deletes every stored group of this key. Raises Unavailable."""

    async def close(self) -> None:
        """Finishes what is under way. Nothing may be called afterwards."""


# The backplane of a relay that is alone and forgets: everything is in the window already.


class MemoryBroker:
    """Keeps everything in memory: nothing waits, nothing fails, and all is gone when the process ends."""

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
        """`start` without a loop."""
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


def used(highest: int, came: int, number: int) -> tuple[int, int]:
    """The highest number and the bits of those below it (bit n: highest - n is used), with one number added.

    >>> used(0, 0, 7), used(7, 0b1, 9), used(9, 0b101, 8), used(9, 0b111, 9 - BEHIND - 1)
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
    """The used numbers of the last `keys` keys heard of. A forgotten key starts again."""

    __slots__ = ("_keys", "_known")

    def __init__(self, keys: int = 50_000) -> None:
        self._keys = keys
        self._known: OrderedDict[bytes, tuple[int, int]] = OrderedDict()

    def look(self, key: bytes, number: int) -> Seen:
        """Whether a number may still be used; records nothing.

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
        """Records a number as used, once that is certain. Has no effect on one too far below the highest."""
        self.put(key, *used(*self._known.get(key, (0, 0)), number))

    def put(self, key: bytes, highest: int, came: int) -> None:
        """Sets all of a key's numbers, in the form that `used` returns."""
        self._known[key] = highest, came
        self._known.move_to_end(key)
        if len(self._known) > self._keys:
            self._known.popitem(last=False)

    def __contains__(self, key: bytes) -> bool:
        return key in self._known
