"""Handing memory back to the system: what the garbage collector and the allocator still hold."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back() -> None:
    """Frees what only a circle of references holds, and hands it back to the system."""
    gc.collect()
    trim()


def trim() -> None:
    """Hands back what was freed and is still held by the allocator, where the system's library can be asked for
    that. Steps leave holes between what lasts: 135 M parameters grew by 400 MB in twenty rounds without it."""
    if sys.platform == "linux":
        ask = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if ask is not None:
            ask(0)
