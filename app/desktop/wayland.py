"""Input idle time from a Wayland compositor: ext-idle-notify, which KDE, wlroots, COSMIC and niri speak.

A desktop tells its login manager little or nothing (KDE's never says idle), and Wayland shows no program
another's keys. The compositor tells when nobody has touched anything for a while, and when somebody does again;
the seconds since are counted here. Five requests are needed, so they are packed by hand. A film keeps the
session from counting as idle, as the desktop itself sees it."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator, Mapping

from app.desktop.facts import SourceError, steady_s

QUIET_S = 5.0
"""Seconds without input after which the compositor is asked to say so; until then the idle time is 0."""
ANSWER_S = 1.0
_LONGEST = 1 << 20  # bytes; a message has at most 4,096
_DISPLAY, _REGISTRY, _LISTED, _SEAT, _NOTIFIER, _NOTIFICATION = range(1, 7)
"""Numbers of the objects: the first is fixed, the others are given here, in this order."""


class WaylandIdle:
    """A connection, opened when first read and again after it was lost. Not thread-safe."""

    name = "input idle time (Wayland)"

    def __init__(self, environment: Mapping[str, str], clock: Callable[[], float] = steady_s) -> None:
        display = environment.get("WAYLAND_DISPLAY") or "wayland-0"
        self._path = os.path.join(environment.get("XDG_RUNTIME_DIR", ""), display)
        self._clock = clock
        self._socket: socket.socket | None = None
        self._kept = b""
        self._quiet_at: float | None = None

    def read(self) -> float:
        """Returns the seconds without input. Raises SourceError."""
        try:
            if self._socket is None:
                self._open()
            for number, event, _ in self._events():
                if number == _NOTIFICATION:
                    self._quiet_at = self._clock() - QUIET_S if event == 0 else None
        except (OSError, struct.error, SourceError) as error:
            self.close()
            if isinstance(error, SourceError):
                raise
            raise SourceError(f"The Wayland compositor doesn't answer ({error}).") from error
        return 0.0 if self._quiet_at is None else self._clock() - self._quiet_at

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._kept, self._quiet_at = None, b"", None

    def _open(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(ANSWER_S)
        self._socket.connect(self._path)
        self._send(_DISPLAY, 1, struct.pack("=I", _REGISTRY))
        self._send(_DISPLAY, 0, struct.pack("=I", _LISTED))
        names: dict[bytes, int] = {}
        for number, _, body in self._events():
            if number == _LISTED:
                break
            if number == _REGISTRY:
                name, length = struct.unpack_from("=II", body)
                names.setdefault(body[8 : 7 + length], name)
        for interface, number in ((b"wl_seat", _SEAT), (b"ext_idle_notifier_v1", _NOTIFIER)):
            if interface not in names:
                raise SourceError("This Wayland compositor doesn't tell when you're away.")
            text = struct.pack(f"=I{-(-(len(interface) + 1) // 4) * 4}s", len(interface) + 1, interface)
            self._send(_REGISTRY, 0, struct.pack("=I", names[interface]) + text + struct.pack("=II", 1, number))
        self._send(_NOTIFIER, 1, struct.pack("=III", _NOTIFICATION, int(1000 * QUIET_S), _SEAT))
        self._socket.settimeout(0)

    def _send(self, number: int, request: int, body: bytes) -> None:
        assert self._socket is not None
        self._socket.sendall(struct.pack("=II", number, (8 + len(body)) << 16 | request) + body)

    def _events(self) -> Iterator[tuple[int, int, bytes]]:
        """Yields (object, event, body) of every message that has come; while connecting, also of those to come.
        Raises SourceError if the compositor refuses a request or ends."""
        assert self._socket is not None
        while True:
            while len(self._kept) >= 8:
                number, head = struct.unpack_from("=II", self._kept)
                size = max(8, head >> 16)
                if len(self._kept) < size:
                    break
                message, self._kept = self._kept[8:size], self._kept[size:]
                if (number, head & 0xFFFF) == (_DISPLAY, 0):
                    raise SourceError("The Wayland compositor refuses to tell the idle time.")
                yield number, head & 0xFFFF, message
            try:
                come = self._socket.recv(65536)
            except BlockingIOError:
                return
            self._kept += come
            if not come or len(self._kept) > _LONGEST:
                raise SourceError("The Wayland compositor has closed the connection.")
