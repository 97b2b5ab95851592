"""The backplane of a relay that is alone and forgets: everything is in the window already."""

from __future__ import annotations

import secrets

from app.relay.store.backplane import CheckedGroup, OnGroup, OnPresence, OnValue
from app.relay.store.window import Added


class MemoryBroker:
    """Nothing waits, nothing fails, nothing is left when the process ends."""

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
