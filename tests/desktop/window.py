"""A window of its own process on an X server: full screen from the start, until its standard input ends."""

from __future__ import annotations

import ctypes
import sys

x = ctypes.CDLL("libX11.so.6")
x.XOpenDisplay.restype = ctypes.c_void_p
x.XDefaultRootWindow.argtypes, x.XDefaultRootWindow.restype = [ctypes.c_void_p], ctypes.c_ulong
x.XCreateSimpleWindow.argtypes = [ctypes.c_void_p, ctypes.c_ulong, *[ctypes.c_int] * 2, *[ctypes.c_uint] * 3]
x.XCreateSimpleWindow.argtypes += [ctypes.c_ulong] * 2
x.XCreateSimpleWindow.restype = ctypes.c_ulong
x.XInternAtom.argtypes, x.XInternAtom.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int], ctypes.c_ulong
x.XChangeProperty.argtypes = [ctypes.c_void_p, *[ctypes.c_ulong] * 3, *[ctypes.c_int] * 2]
x.XChangeProperty.argtypes += [ctypes.POINTER(ctypes.c_ulong), ctypes.c_int]
x.XMapWindow.argtypes = [ctypes.c_void_p, ctypes.c_ulong]
x.XSync.argtypes = [ctypes.c_void_p, ctypes.c_int]

display = x.XOpenDisplay(None)
window = x.XCreateSimpleWindow(display, x.XDefaultRootWindow(display), 0, 0, 200, 100, 0, 0, 0)
if sys.argv[1:] == ["full"]:
    state = ctypes.c_ulong(x.XInternAtom(display, b"_NET_WM_STATE_FULLSCREEN", 0))
    name = x.XInternAtom(display, b"_NET_WM_STATE", 0)
    x.XChangeProperty(display, window, name, 4, 32, 0, ctypes.byref(state), 1)  # 4 is ATOM
x.XMapWindow(display, window)
x.XSync(display, 0)
sys.stdin.read()
