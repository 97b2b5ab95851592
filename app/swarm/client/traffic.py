"""The bytes that went to relays and came from them: those of the last hour and all, kept in the data folder.

One file, written by the node that is connected and read by everything that shows these figures. It counts what
sockets carry: the request that opens a connection, every frame with its header, and of what is sent also pings
and goodbyes; under TLS the records, and the handshake by its usual length. A node that is killed loses the last
SAVE_EVERY_S at most, and a damaged file counts as an empty one."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from app.common import files

FILE = "traffic.json"
HOUR_S = 3600
SLOT_S = 20
"""Seconds that are counted together: the hour is at most this much too short."""
SAVE_EVERY_S = 3.0
MAX_FILE_BYTES = 64 * 1024
_TLS_RECORD_BYTES, _TLS_RECORD_TEXT, _TLS_HANDSHAKE_BYTES = 22, 16_384, 620
Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Traffic(msgspec.Struct):
    """`sent` and `received`: bytes since the file was made, at Unix time `since`. `slots`: (number, sent,
    received) of the last hour, oldest first, where a slot's number is its Unix time divided by SLOT_S."""

    since: float = 0.0
    sent: Number = 0
    received: Number = 0
    slots: Annotated[list[tuple[Number, Number, Number]], msgspec.Meta(max_length=HOUR_S // SLOT_S)] = []

    def hour(self, now: float) -> tuple[int, int]:
        """Returns the bytes sent and received in the hour before Unix time `now`. A clock that was set back
        makes none of them disappear."""
        oldest = int(now) // SLOT_S - HOUR_S // SLOT_S
        young = [slot for slot in self.slots if slot[0] > oldest]
        return sum(slot[1] for slot in young), sum(slot[2] for slot in young)


def read_traffic(folder: Path) -> Traffic:
    """Reads a data folder's figures. A missing or damaged file gives zeros."""
    return files.read_json(folder / FILE, Traffic, MAX_FILE_BYTES) or Traffic()


class TrafficCounter:
    """Counts, and writes the file in `folder` (None: only counts). `clock` returns Unix seconds."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = folder, clock
        self._all = Traffic() if folder is None else read_traffic(folder)
        self._all.since = self._all.since or clock()
        self._saved_at, self._changed = -math.inf, False

    @property
    def hour(self) -> tuple[int, int]:
        """Bytes sent and received in the last hour."""
        return self._all.hour(self._clock())

    def count(self, sent: int = 0, received: int = 0) -> None:
        slots, now = self._all.slots, int(self._clock()) // SLOT_S
        slots.append((now, sent, received))
        while len(slots) > 1 and slots[-2][0] >= now:  # the same slot, or the clock was set back
            (_, out, came), (_, before, earlier) = slots.pop(), slots.pop()
            slots.append((now, before + out, earlier + came))
        del slots[: -HOUR_S // SLOT_S]
        self._all.sent += sent
        self._all.received += received
        self._changed = True

    def save(self, at_once: bool = False) -> None:
        """Writes what has changed, at most every SAVE_EVERY_S. A disk that refuses is asked again later."""
        now = time.monotonic()
        if self._folder is None or not self._changed or not (at_once or now - self._saved_at >= SAVE_EVERY_S):
            return
        self._saved_at = now
        with contextlib.suppress(OSError):
            files.write(self._folder / FILE, msgspec.json.encode(self._all))
            self._changed = False


def frame_bytes(length: int, masked: bool, tls: bool) -> int:
    """Returns the bytes of a websocket frame (RFC 6455, 5.2) with `length` bytes in it.

    >>> frame_bytes(100, False, False), frame_bytes(100, True, False), frame_bytes(700, True, True)
    (102, 106, 730)
    """
    whole = length + (2 if length < 126 else 4 if length < 65_536 else 10) + 4 * masked
    return whole + tls * record_bytes(whole)


def record_bytes(length: int) -> int:
    """Returns how many bytes TLS 1.3 adds to `length` bytes of text: its record headers and tags (RFC 8446,
    section 5.2)."""
    return _TLS_RECORD_BYTES * max(1, math.ceil(length / _TLS_RECORD_TEXT))


def head_bytes(line: str, headers: Mapping[str, str], tls: bool) -> int:
    """Returns the bytes of the head of an HTTP request or response that opens a connection, with its half of
    the TLS handshake if there is one."""
    whole = len(line) + 2 + sum(len(name) + len(value) + 4 for name, value in headers.items()) + 2
    return whole + tls * (record_bytes(whole) + _TLS_HANDSHAKE_BYTES)
