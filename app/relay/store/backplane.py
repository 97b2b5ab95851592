"""The backplane that carries groups between a relay's clients, and past its process: memory, a journal on
disk, or NATS.

A backplane makes a group durable, each in its own way, and hands it back to be taken into the window; only then
is it acknowledged. Sampling never asks it. Besides groups it carries small values (bans, standings and the
like), which every relay on it sees, and each relay's summary of who is there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from app.relay.store.window import Added


class CheckedGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A group that has been checked: its content id, its author's public key, where it came from (a blinded
    address), what it answers, the envelope's bytes as they are handed out, and its arrival in Unix
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
"""Takes a group into the window; may be called again for the same group."""
OnValue = Callable[[str, bytes | None], None]
"""A value by its key, None when it is gone."""
OnPresence = Callable[[str, bytes], None]
"""Another relay's summary of who is there, by that relay's epoch."""


class Unavailable(Exception):
    """The backplane could not take something just now; whether it is stored is not known. The sentence is for
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
        """Whether it holds all that it held before, and takes what is new."""

    @property
    def shared(self) -> bool:
        """Whether other relays may be on it."""

    @property
    def stored(self) -> int:
        """Groups ever stored; it does not go back when they leave."""

    @property
    def salt(self) -> bytes:
        """A secret for blinding addresses: the same for all relays on this backplane. Known once started."""

    async def start(self, on_group: OnGroup, on_value: OnValue, on_presence: OnPresence) -> None:
        """Brings values and then groups back through the callbacks, in the order they came; from then on what
        is new. Raises BackplaneError."""

    def publish(self, record: CheckedGroup) -> Added | Awaitable[Added]:
        """Stores a group and gives it to `on_group`. Where that needs no waiting the answer is there at once.
        The awaitable raises Unavailable; to give it up does not undo the publishing."""

    def presence(self, summary: bytes) -> None:
        """Tells the other relays who is here, if there are any. Never waits, and may get lost."""

    async def kv_put(self, key: str, value: bytes | None, until: float) -> None:
        """Stores a value, or takes it away; `on_value` hears of it here and on every other relay. Keys are made
        of `A-Za-z0-9._-`. It is let go of after `until` (Unix seconds). Raises Unavailable."""

    async def erase(self, key: bytes) -> None:
        """Lets go of every group of this key that is stored. Raises Unavailable."""

    async def close(self) -> None:
        """Finishes what is under way. Nothing may be called afterwards."""
