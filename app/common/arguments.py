"""Numbers on a command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def whole(least: int, most: int | None = None, wanted: str = "") -> Callable[[str], int]:
    """Reads a whole number for argparse; `wanted` says what it must be, where that needs other words.

    >>> whole(0)("12"), whole(1, 9)("9")
    (12, 9)
    """

    def read(text: str) -> int:
        if (
            text.isascii()
            and text.isdecimal()
            and len(text) <= 18
            and least <= int(text) <= (most or int(text))
        ):
            return int(text)
        upto = f"from {least} to {most}" if most is not None else f"from {least} up"
        raise argparse.ArgumentTypeError(wanted or f"{text!r} is not a whole number {upto}")

    return read
