"""Desktop facts on X11, through the system's libX11: input idle time (the screen saver extension), and whether
a program fills the screen (the active window's state, EWMH).

Xlib ends the whole process when the server goes away and prints at every error. Neither may happen to a node,
so both handlers are replaced; nothing else in the node's process talks to an X server."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

from app.desktop.facts import SourceError, load_library

_ERROR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_IO_ERROR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_IO_ERROR_EXIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


def _on_error(_display: int, _event: int) -> int:
    return 0  # the call itself tells that it failed


def _on_io_error(_display: int) -> int:
    return 0


def _wait_for_ever(_display: int) -> int:
    """I/O error handler for libX11 before 1.7, which ends the process when this handler returns: blocks the
    thread instead."""
    while True:
        time.sleep(3600)


def _on_io_error_exit(_display: int, lost: int) -> None:
    ctypes.c_int.from_address(lost).value = 1


# Xlib keeps only the addresses, so these must live as long as the process.
_HANDLERS = (
    _ERROR(_on_error),
    _IO_ERROR(_on_io_error),
    _IO_ERROR(_wait_for_ever),
    _IO_ERROR_EXIT(_on_io_error_exit),
)
_lock = threading.Lock()
_library: ctypes.CDLL | None = None


def libx11() -> ctypes.CDLL:
    """Loads Xlib and declares the types of the functions used. Raises SourceError if the system has none."""
    global _library
    with _lock:
        if _library is None:
            _library = _load()
        return _library


def _load() -> ctypes.CDLL:
    x = load_library("libX11.so.6")
    pointer, long, unsigned = ctypes.c_void_p, ctypes.c_long, ctypes.c_ulong
    x.XOpenDisplay.argtypes, x.XOpenDisplay.restype = [ctypes.c_char_p], pointer
    x.XCloseDisplay.argtypes = [pointer]
    x.XDefaultRootWindow.argtypes, x.XDefaultRootWindow.restype = [pointer], unsigned
    x.XInternAtom.argtypes, x.XInternAtom.restype = [pointer, ctypes.c_char_p, ctypes.c_int], unsigned
    x.XGetWindowProperty.argtypes = [
        *(pointer, unsigned, unsigned, long, long, ctypes.c_int, unsigned),
        *(ctypes.POINTER(unsigned), ctypes.POINTER(ctypes.c_int)),
        *(ctypes.POINTER(unsigned), ctypes.POINTER(unsigned), ctypes.POINTER(pointer)),
    ]
    x.XFree.argtypes = [pointer]
    x.XInitThreads()
    on_error, on_io_error, wait_for_ever, _ = _HANDLERS
    x.XSetErrorHandler(on_error)
    if hasattr(x, "XSetIOErrorExitHandler"):
        x.XSetIOErrorExitHandler.argtypes = [pointer, _IO_ERROR_EXIT, pointer]
        x.XSetIOErrorHandler(on_io_error)
    else:
        x.XSetIOErrorHandler(wait_for_ever)
    return x


class Display:
    """A connection to an X server, used by one thread. Raises SourceError if no server answers."""

    def __init__(self, name: str) -> None:
        self.x = libx11()
        self._lost = ctypes.c_int(0)
        self.pointer: int | None = self.x.XOpenDisplay(name.encode())
        if not self.pointer:
            raise SourceError(f"The X server {name} doesn't let us in.")
        if hasattr(self.x, "XSetIOErrorExitHandler"):
            self.x.XSetIOErrorExitHandler(self.pointer, _HANDLERS[3], ctypes.addressof(self._lost))
        self.root: int = self.x.XDefaultRootWindow(self.pointer)

    @property
    def lost(self) -> bool:
        """Whether the server has gone. Only a new connection helps then; this one is not closed."""
        return bool(self._lost.value)

    def numbers(self, window: int, name: bytes) -> list[int]:
        """Returns a window property of 32-bit items; empty if the window does not have it."""
        kind, form = ctypes.c_ulong(), ctypes.c_int()
        count, left, data = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_void_p()
        out: list[Any] = [ctypes.byref(place) for place in (kind, form, count, left, data)]
        failed = self.x.XGetWindowProperty(self.pointer, window, self.atom(name), 0, 64, 0, 0, *out)
        if failed or not data:
            return []
        try:
            # Xlib keeps 32-bit items in longs, also where a long has 64 bits.
            items = ctypes.cast(data, ctypes.POINTER(ctypes.c_ulong))
            return [items[place] for place in range(count.value)] if form.value == 32 else []
        finally:
            self.x.XFree(data)

    def atom(self, name: bytes) -> int:
        atom: int = self.x.XInternAtom(self.pointer, name, 0)
        return atom

    def close(self) -> None:
        if self.pointer and not self.lost:
            self.x.XCloseDisplay(self.pointer)
        self.pointer = None


class DisplayConnection:
    """Opens a display when first used, and again after its server has gone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._display: Display | None = None

    def display(self) -> Display:
        """Returns the open display. Raises SourceError if no server answers."""
        if self._display is None:
            self._display = Display(self.name)
        return self._display

    def check(self) -> None:
        """Raises SourceError if the server has gone. Call it after every request: what a lost server "answered"
        is invalid."""
        if self._display is not None and self._display.lost:
            self._display = None
            raise SourceError(f"The X server {self.name} has gone away.")


class _Info(ctypes.Structure):
    """XScreenSaverInfo (X11/extensions/scrnsaver.h)."""

    _fields_ = [
        ("window", ctypes.c_ulong),
        ("state", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("til_or_since", ctypes.c_ulong),
        ("idle", ctypes.c_ulong),
        ("eventMask", ctypes.c_ulong),
    ]


class X11Idle:
    """Not for Wayland, where the extension lies and may block."""

    name = "input idle time (X11)"

    def __init__(self, display: str) -> None:
        self._connected = DisplayConnection(display)
        self._library: Any = None
        self._info: Any = None

    def read(self) -> float:
        """Returns the seconds without input. Raises SourceError."""
        display = self._connected.display()
        saver = self._saver()
        found = saver.XScreenSaverQueryInfo(display.pointer, display.root, self._info)
        self._connected.check()
        if not found:
            raise SourceError(f"The X server {self._connected.name} has no screen saver extension.")
        return int(self._info.contents.idle) / 1000

    def _saver(self) -> Any:
        if self._library is None:
            library = load_library("libXss.so.1")
            library.XScreenSaverAllocInfo.restype = ctypes.POINTER(_Info)
            library.XScreenSaverQueryInfo.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.POINTER(_Info)]
            self._info = library.XScreenSaverAllocInfo()
            self._library = library
        return self._library


class X11Screen:
    name = "full-screen program (X11)"

    def __init__(self, display: str) -> None:
        self._connected = DisplayConnection(display)

    def read(self) -> bool:
        """Returns whether the active window is full-screen; False without a window manager. Raises
        SourceError."""
        display = self._connected.display()
        active = display.numbers(display.root, b"_NET_ACTIVE_WINDOW")
        states = display.numbers(active[0], b"_NET_WM_STATE") if active and active[0] else []
        full = display.atom(b"_NET_WM_STATE_FULLSCREEN")
        self._connected.check()
        return full in states
