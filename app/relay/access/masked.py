"""What comes from a websocket, before aiohttp reads it: whether a client masks its frames, as every client must
(RFC 6455, 5.1; aiohttp's reader takes both), and the shorter way for what comes whole.

Nearly every message is one frame that comes in one piece. Where all before it has been dealt with, it needs no
queue and no task that is woken for it, and it is answered where it came in.
"""

from __future__ import annotations

from asyncio import Transport
from collections.abc import Callable
from typing import Protocol

from aiohttp._websocket.helpers import websocket_mask

_TEXT, _CLOSE, _LAST = 0x81, 8, 0x80
"""Of a frame's first byte: a whole text, the least kind that is no data, a message's end (RFC 6455, 5.2)."""


class FrameReader(Protocol):
    """What is fed with the bytes of a connection."""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]: ...
    def feed_eof(self) -> None: ...


class Masked:
    """Stands before a reader and reads the heads of frames. The first one without a mask ends the connection,
    and nothing more is passed on. `take`, once set, is offered every text that comes whole while nothing is
    under way, and says whether it took it; `under_way` counts messages that were passed on to the reader, until
    `done` is called for each."""

    __slots__ = ("_head", "_left", "_over", "_part", "_reader", "_transport", "take", "under_way")

    def __init__(self, reader: FrameReader, transport: Transport) -> None:
        self._reader = reader
        self._transport = transport
        self._left = 0
        self._head = b""
        self._over = False
        self._part = False
        self.take: Callable[[bytes], bool] | None = None
        self.under_way = 0

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if not (self.under_way or self._left or self._head or self._part or self._over or self.take is None):
            text = whole(data)
            if text is not None and self.take(text):
                return False, b""
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

    def done(self) -> None:
        """A message that was passed on has been dealt with."""
        self.under_way -= 1

    def _fine(self, data: bytes) -> bool:
        """Goes from head to head; one that has not come whole waits for the rest."""
        place = self._left
        if self._head:
            data = self._head + data
        end = len(data)
        while end - place >= 2:
            first, second = data[place], data[place + 1]
            if second < 0x80:
                return False
            head, size = 6, second - 0x80
            if size > 125:
                head = 8 if size == 126 else 14
                if end - place < head - 4:
                    break
                size = int.from_bytes(data[place + 2 : place + head - 4], "big")
            self._count(first)
            place += head + size
        self._left, self._head = (place - end, b"") if place >= end else (0, data[place:])
        return True

    def _count(self, first: int) -> None:
        """Good-byes too: nothing comes after them."""
        kind = first & 15
        if kind < _CLOSE:
            self._part = first < _LAST
        self.under_way += kind == _CLOSE or (kind < _CLOSE and first >= _LAST)


def whole(data: bytes) -> bytes | None:
    """The text of a masked frame that has come whole and alone; None for anything else, and for 64 KB or more.

    >>> whole(b"\\x81\\x82abcd\\t\\x0b"), whole(b"\\x81\\x82abcd\\t"), whole(b"\\x81\\x02hi")
    (b'hi', None, None)
    """
    if len(data) < 6 or data[0] != _TEXT:
        return None
    head, size = 6, data[1] - 0x80
    if size == 126 and len(data) >= 8:
        head, size = 8, data[2] << 8 | data[3]
    elif not 0 <= size < 126:
        return None
    if len(data) != head + size:
        return None
    text = bytearray(data[head:])
    websocket_mask(data[head - 4 : head], text)
    return bytes(text)
