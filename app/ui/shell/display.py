"""Finds out without Qt whether a window can be shown here: Qt ends the whole process if it cannot reach its
display. So the display is asked first, in its own protocol, without drawing anything."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping

from app.install.launcher import system

PATIENCE_S = 20.0
"""Seconds after which a display that does not answer counts as missing."""
BESIDE_S = 5.0
"""Seconds after which a Wayland display that does not answer counts as missing, if there is also an X
display."""
SOON_S = 2.0
"""Seconds after which the person is told which display does not answer."""
HIDDEN = ("offscreen", "minimal", "minimalegl")
"""Qt platforms that show nothing on a screen."""
_OF_DISPLAYS = ("", "xcb", "wayland", "wayland-egl")


def obstacle(environment: MutableMapping[str, str], platform: str, unseen: bool = False) -> str:
    """Returns why no window can be shown, as the first half of a sentence; empty if one can. `unseen` also
    allows platforms that draw nothing on a screen, for tests and pictures. Installs Qt's system libraries if
    that needs no password, and makes Qt use the X display if the Wayland one doesn't answer."""
    if platform in ("win32", "darwin"):
        return ""
    named = environment.get("QT_QPA_PLATFORM", "").partition(":")[0].partition(";")[0]
    if named in HIDDEN and not unseen:
        return f"QT_QPA_PLATFORM={named} draws where nobody can look"
    if named in _OF_DISPLAYS and not has_display(environment):
        return "there is no display here"
    if lacking := system.provide_window(environment, platform=platform):
        return f"the window needs {system.installing(lacking)}"
    if named in _OF_DISPLAYS and not choose_display(environment):
        where = " or ".join(filter(None, map(environment.get, ("WAYLAND_DISPLAY", "DISPLAY"))))
        return f"the display {where} does not answer"
    return ""


def has_display(environment: Mapping[str, str]) -> bool:
    """Whether this session names a display.

    >>> has_display({"DISPLAY": ":0"}), has_display({})
    (True, False)
    """
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def choose_display(environment: MutableMapping[str, str]) -> bool:
    """Whether a display that Qt would try answers and accepts us. If Wayland does not but X does, makes Qt use
    X (QT_QPA_PLATFORM)."""
    named = environment.get("QT_QPA_PLATFORM", "")
    wayland = "" if named.startswith("xcb") else environment.get("WAYLAND_DISPLAY", "")
    x11 = "" if named.startswith("wayland") else environment.get("DISPLAY", "")
    if wayland:
        place = os.path.join(environment.get("XDG_RUNTIME_DIR", ""), wayland)
        if _within(BESIDE_S if x11 else PATIENCE_S, lambda: _listens(place), wayland):
            return True
    if not x11 or not _within(PATIENCE_S, lambda: _takes_us(x11), x11):
        return False
    if wayland:
        _say(f"The display {wayland} doesn't answer, so the window opens on {x11}.")
        environment["QT_QPA_PLATFORM"] = "xcb"
    return True


SYNC = struct.pack("=IHHI", 1, 0, 12, 2)
"""Wayland's request wl_display.sync: object 1, opcode 0, 12 bytes, and object 2 as the callback. A compositor
answers it at once (wayland.xml, wl_display)."""


def _listens(path: str) -> bool:
    """Whether a Wayland compositor answers at this socket; one that accepts the connection may not."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(path)
        connection.sendall(SYNC)
        return bool(connection.recv(1))
    return False


def _takes_us(name: str) -> bool:
    """Connects to an X server as Qt does, with the same library and so the same permission, and disconnects."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return False
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(name.encode(), None)
    taken = xcb.xcb_connection_has_error(connection) == 0
    xcb.xcb_disconnect(connection)
    return taken


def _within(seconds: float, ask: Callable[[], bool], display: str) -> bool:
    """Returns the result of `ask`, or False if it takes longer than `seconds`; it is then abandoned. Says which
    display it waits for."""
    said: list[bool] = []
    asking = threading.Thread(target=lambda: said.append(ask()), daemon=True)
    asking.start()
    asking.join(min(SOON_S, seconds))
    if asking.is_alive() and seconds > SOON_S:
        _say(f"Waiting up to {seconds:.0f} s for the display {display}, which doesn't answer yet.")
        asking.join(seconds - SOON_S)
    return bool(said) and said[0]


def _say(sentence: str) -> None:
    print(f"shoal: {sentence}", file=sys.stderr, flush=True)
