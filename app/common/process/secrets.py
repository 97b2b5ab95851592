"""Secrets that one process hands to another: never as an argument, which everybody on the computer reads. Other
programs of the owner can read the environment of every process, so our own processes get them by a pipe, and a
process that needs none has none."""

from __future__ import annotations

import os
from collections.abc import Mapping

PRIVATE = "SHOAL_PRIVATE"
"""The six words of a private swarm."""
PIPED = "-"
"""In place of a secret on a command line: it is the next line of standard input."""
_LONGEST = 4096


def piped(descriptor: int = 0) -> str:
    """The next line of standard input without its end, and not a byte of what follows; "" where there is none.
    One of more than 4,096 bytes is cut."""
    line = bytearray()
    while len(line) < _LONGEST and (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode("utf-8", "replace").strip()


def without(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """For a process that works for this one and needs no secret.

    >>> without({"HOME": "/home/a", "SHOAL_PRIVATE": "six words"})
    {'HOME': '/home/a'}
    """
    return {name: value for name, value in environment.items() if name != PRIVATE}
