"""Checks the bytes of a websocket before aiohttp parses them: clients must mask their frames (RFC 6455, 5.1;
aiohttp accepts both), and must not send too many frames or too slowly. Whole messages take a short cut.

Nearly every message is one frame that arrives in one piece. If all earlier messages have been handled, it needs
no queue and no task to be woken, and is answered on arrival."""

from __future__ import annotations

import asyncio
import time
from asyncio import Transport
from collections.abc import Callable
from typing import Protocol

from aiohttp._websocket.helpers import websocket_mask

from app.common.rate import Bucket, Rate

_TEXT, _CLOSE, _LAST = 0x81, 8, 0x80
"""In a frame's first byte: a final text frame, the lowest control opcode, the FIN bit (RFC 6455, 5.2)."""
MAX_FRAME_RATE = Rate(60 * 20, 1000)
"""Maximum frames per connection, control frames included: a busy client sends some twenty a minute."""
MAX_MESSAGE_S = 30.0
"""Maximum seconds from a message's first byte to its last: 64 KB at 2 KB/s."""
_CUT_OFF = {"unmasked": b"\x88\x02\x03\xea"}
_AGAINST_RULES = b"\x88\x02\x03\xf0"
"""Close frames: 1002 (protocol error) and 1008 (policy violation)."""


class FrameReader(Protocol):
    """Receives the bytes of a connection, such as aiohttp's websocket reader."""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]: ...
    def feed_eof(self) -> None: ...


class FrameGuard:
    """Reads the frame headers before they reach the reader behind it.

    An unmasked frame, a frame beyond the rate MAX_FRAME_RATE, or a message that takes longer than
    MAX_MESSAGE_S ends the connection; `over` is set to the reason, and nothing more is passed on. `take`,
    once set, is called with every whole text that arrives while no message is pending, and returns whether it
    handled it. `under_way` counts messages passed on to the reader until `done` is called for each."""

    __slots__ = (
        *("_clock", "_frames", "_head", "_left", "_part", "_reader", "_transport"),
        *("_timer", "over", "take", "under_way"),
    )

    def __init__(
        self, reader: FrameReader, transport: Transport, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._frames = Bucket(MAX_FRAME_RATE.per_min, MAX_FRAME_RATE.burst)
        self._reader = reader
        self._transport = transport
        self._left = 0
        self._head = b""
        self._timer: asyncio.TimerHandle | None = None
        self.over = ""
        self._part = False
        self.take: Callable[[bytes], bool] | None = None
        self.under_way = 0

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self.over:
            return False, b""
        now = self._clock()
        left = self._frames.left(now)
        if left >= 1 and not (self.under_way or self._left or self._head or self._part or self.take is None):
            text = unmask(data)
            if text is not None and self.take(text):
                self._frames.take(1, now)
                return False, b""
        count = self._fine(data, int(left))
        if self.over:
            self._cut_off(self.over)
            return False, b""
        self._frames.take(count, now)
        self._watch(count > 0 and not self._part)
        return self._reader.feed_data(data)

    def feed_eof(self) -> None:
        self._watch(True, False)
        self._reader.feed_eof()

    def _watch(self, fresh: bool, more: bool = True) -> None:
        """Starts or stops the timer for slow messages. `fresh`: the previous message is complete; `more`: False
        at the end."""
        begun = more and bool(self._left or self._head or self._part)
        if self._timer is not None and (fresh or not begun):
            self._timer.cancel()
            self._timer = None
        if begun and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MAX_MESSAGE_S, self._cut_off, "dripping")

    def _cut_off(self, why: str) -> None:
        self.over = why
        self._watch(True, False)
        self._transport.write(_CUT_OFF.get(why, _AGAINST_RULES))
        self._transport.close()

    def done(self) -> None:
        """Records that a message which was passed on has been handled."""
        self.under_way -= 1

    def _fine(self, data: bytes, most: int) -> int:
        """Checks and counts all frame headers in `data`, at most `most`; keeps an incomplete one for the next
        call. Returns their number and sets `over` at a violation."""
        place, count = self._left, 0
        if self._head:
            data = self._head + data
        end = len(data)
        while end - place >= 2:
            first, second = data[place], data[place + 1]
            if second < 0x80:
                self.over = "unmasked"
                return count
            head, size = 6, second - 0x80
            if size > 125:
                head = 8 if size == 126 else 14
                if end - place < head - 4:
                    break
                size = int.from_bytes(data[place + 2 : place + head - 4], "big")
            if count == most:
                self.over = "frames"
                return count
            self._count(first)
            count += 1
            place += head + size
        self._left, self._head = (place - end, b"") if place >= end else (0, data[place:])
        return count

    def _count(self, first: int) -> None:
        """Tracks messages by a frame's first byte. Close frames count too: nothing follows them."""
        kind = first & 15
        if kind < _CLOSE:
            self._part = first < _LAST
        self.under_way += kind == _CLOSE or (kind < _CLOSE and first >= _LAST)


def unmask(data: bytes) -> bytes | None:
    """The unmasked text of a frame that arrived whole and alone; None for anything else, and for 64 KB or more.

    >>> unmask(b"\\x81\\x82abcd\\t\\x0b"), unmask(b"\\x81\\x82abcd\\t"), unmask(b"\\x81\\x02hi")
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
