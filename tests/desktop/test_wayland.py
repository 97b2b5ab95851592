"""The idle time of a Wayland session, from a compositor in miniature that speaks on a real socket."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("Wayland is asked on Linux only", allow_module_level=True)

from app.desktop.choose import sources
from app.desktop.facts import SourceError
from app.desktop.wayland import QUIET_S, WaylandIdle


class Compositor:
    def __init__(self, folder: Path) -> None:
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(folder / "wayland-7"))
        self.listening.listen()
        self.variables = {"WAYLAND_DISPLAY": "wayland-7", "XDG_RUNTIME_DIR": str(folder)}
        self.interfaces = ["wl_compositor", "wl_seat", "ext_idle_notifier_v1"]
        self.client: socket.socket

    def list_globals(self) -> None:
        self.client, _ = self.listening.accept()
        for name, interface in enumerate(self.interfaces, 40):
            text = interface.encode() + b"\0"
            text += b"\0" * (-len(text) % 4)
            self.tell(2, 0, struct.pack("=II", name, len(interface) + 1) + text + struct.pack("=I", 9))
        self.tell(3, 0, b"\0\0\0\0")

    def tell(self, number: int, event: int, body: bytes = b"") -> None:
        self.client.sendall(struct.pack("=II", number, (8 + len(body)) << 16 | event) + body)

    def requests(self) -> list[tuple[int, int, bytes]]:
        self.client.settimeout(5)
        come, found = self.client.recv(65536), []
        while come:
            number, head = struct.unpack_from("=II", come)
            found.append((number, head & 0xFFFF, come[8 : head >> 16]))
            come = come[head >> 16 :]
        return found


@pytest.fixture
def compositor(tmp_path: Path) -> Iterator[Compositor]:
    made = Compositor(tmp_path)
    yield made
    made.listening.close()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def opened(compositor: Compositor, clock: Clock) -> WaylandIdle:
    """A source that has been read once."""
    answering = threading.Thread(target=compositor.list_globals)
    answering.start()
    idle = WaylandIdle(compositor.variables, clock)
    try:
        assert idle.read() == 0.0
    finally:
        answering.join()
    return idle


def test_it_counts_from_the_compositors_word_and_stops_at_the_next_key(compositor: Compositor) -> None:
    clock = Clock()
    idle = opened(compositor, clock)
    asked = compositor.requests()
    assert [(number, request) for number, request, _ in asked] == [(1, 1), (1, 0), (2, 0), (2, 0), (5, 1)]
    assert asked[2][2] == struct.pack("=II8sII", 41, 8, b"wl_seat", 1, 4)
    assert asked[4][2] == struct.pack("=III", 6, 5000, 4)  # the notification, after five seconds, of the seat
    clock.now += 60
    assert idle.read() == 0.0  # somebody types
    compositor.tell(6, 0)
    assert idle.read() == QUIET_S
    clock.now += 175
    assert idle.read() == 180.0
    compositor.tell(6, 1)
    compositor.tell(4, 0, b"\1\0\0\0")  # the seat's news is nothing to us
    assert idle.read() == 0.0


def test_a_compositor_that_ends_is_asked_again(compositor: Compositor) -> None:
    clock = Clock()
    idle = opened(compositor, clock)
    compositor.tell(6, 0)
    assert idle.read() == QUIET_S
    compositor.client.close()
    with pytest.raises(SourceError, match=r"closed the connection|doesn't answer"):
        idle.read()
    compositor.listening.close()
    with pytest.raises(SourceError, match="doesn't answer"):
        idle.read()


def test_one_without_the_protocol_and_one_that_refuses_are_unknown(compositor: Compositor) -> None:
    compositor.interfaces.pop()
    with pytest.raises(SourceError, match="doesn't tell"):
        opened(compositor, Clock())
    compositor.interfaces.append("ext_idle_notifier_v1")
    idle = opened(compositor, Clock())
    compositor.tell(1, 0, struct.pack("=III4s", 5, 0, 3, b"no"))
    with pytest.raises(SourceError, match="refuses"):
        idle.read()


def test_a_wayland_session_asks_it_before_the_login_manager() -> None:
    chosen = sources("linux", {"WAYLAND_DISPLAY": "wayland-7"})["idle_s"]
    assert chosen.name.index("GNOME") < chosen.name.index("Wayland") < chosen.name.index("login manager")
