"""Whether a client masks its frames, as every client must (RFC 6455, 5.1); aiohttp's reader takes both."""

from __future__ import annotations

from asyncio import Transport
from typing import Protocol


class FrameReader(Protocol):
    """What is fed with the bytes of a connection."""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]: ...
    def feed_eof(self) -> None: ...


class Masked:
    """Stands before a reader and reads the heads of frames. The first one without a mask ends the connection,
    and nothing more is passed on."""

    __slots__ = ("_head", "_left", "_over", "_reader", "_transport")

    def __init__(self, reader: FrameReader, transport: Transport) -> None:
        self._reader = reader
        self._transport = transport
        self._left = 0
        self._head = b""
        self._over = False

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._over:
            return False, b""
        if not self._fine(data):
            self._over = True
            self._transport.write(b"\x88\x02\x03\xea")  # close, 1002: a protocol error
            self._transport.close()
            return False, b""
        return self._reader.feed_data(data)

    def feed_eof(self) -> None:
        self._reader.feed_eof()

    def _fine(self, data: bytes) -> bool:
        """Goes from head to head; one that has not come whole waits for the rest."""
        place = self._left
        if self._head:
            data = self._head + data
        end = len(data)
        while end - place >= 2:
            second = data[place + 1]
            if second < 0x80:
                return False
            head, size = 6, second - 0x80
            if size > 125:
                head = 8 if size == 126 else 14
                if end - place < head - 4:
                    break
                size = int.from_bytes(data[place + 2 : place + head - 4], "big")
            place += head + size
        self._left, self._head = (place - end, b"") if place >= end else (0, data[place:])
        return True
