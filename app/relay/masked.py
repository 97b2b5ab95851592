"""Whether a client masks its frames, as every client must (RFC 6455, 5.1); aiohttp's reader takes both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Reader(Protocol):
    """What is fed with the bytes of a connection."""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]: ...
    def feed_eof(self) -> None: ...


class Masked:
    """Stands before a reader and reads the heads of frames. At the first one without a mask `refuse` is called,
    and nothing more is passed on."""

    __slots__ = ("_head", "_left", "_over", "_reader", "_refuse")

    def __init__(self, reader: Reader, refuse: Callable[[], None]) -> None:
        self._reader = reader
        self._refuse = refuse
        self._left = 0
        self._head = b""
        self._over = False

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._over:
            return False, b""
        if not self._fine(data):
            self._over = True
            self._refuse()
            return False, b""
        return self._reader.feed_data(data)

    def feed_eof(self) -> None:
        self._reader.feed_eof()

    def _fine(self, data: bytes) -> bool:
        """Goes from head to head; one that has not come whole waits for the rest."""
        place, data = self._left, self._head + data
        while len(data) - place >= 2:
            second = data[place + 1]
            if not second & 0x80:
                return False
            size, length = second & 0x7F, {126: 2, 127: 8}.get(second & 0x7F, 0)
            if len(data) - place < 2 + length:
                break
            if length:
                size = int.from_bytes(data[place + 2 : place + 2 + length], "big")
            place += 2 + length + 4 + size
        self._left = max(0, place - len(data))
        self._head = data[place:]
        return True
