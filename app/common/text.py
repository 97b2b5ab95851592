"""Text for users: untrusted text made safe to show, durations and byte counts (the latter from engines.files),
and an argparse type for integers.

The window has its own, translated versions (app.ui.language.texts)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from unicodedata import normalize

from engines.files import in_bytes as in_bytes
from engines.files import scaled as scaled

MAX_SHOWN = 20_000
"""Maximum characters shown of one untrusted text."""
MAX_QUOTED = 200
"""Maximum characters quoted from a relay or another program."""
_JOINERS = "\u200c\u200d"
"""Zero-width joiners, needed by many scripts and emoji; they do not change the writing direction."""


def safe_text(text: str, most: int = MAX_SHOWN, strip: bool = True) -> str:
    """Returns the text with its line breaks, and with a dot for every control character and every mark that
    changes the writing direction, so that no terminal or display acts on it. Cut to `most` characters.

    >>> safe_text("4-1=3\\u202e #3\\x1b[2J\\r\\n\\tyes\\n")
    '4-1=3· #3·[2J\\n    yes'
    """
    lines = text[:most].replace("\r\n", "\n").replace("\t", "    ")
    lines = lines.strip("\n ") if strip else lines
    kept = (char if char.isprintable() or char in _JOINERS or char == "\n" else "·" for char in lines)
    return "".join(kept) + ("…" if len(text) > most else "")


def safe_line(text: str, most: int = MAX_SHOWN) -> str:
    """Like `safe_text`, on one line with single blanks.

    >>> safe_line("4-1=3\\n #3\\x1b[2J"), safe_line("far too long", 3)
    ('4-1=3 #3·[2J', 'far…')
    """
    return safe_text(" ".join(normalize("NFC", text).split()), most)


def number_and_unit(seconds: float) -> tuple[str, str]:
    """Returns a duration as a rounded number and its unit: s, min, h or days.

    >>> number_and_unit(40.2), number_and_unit(95), number_and_unit(7300), number_and_unit(200_000)
    (('40', 's'), ('2', 'min'), ('2', 'h'), ('2', 'days'))
    """
    for unit, length, most in (("s", 1, 90), ("min", 60, 5400), ("h", 3600, 48 * 3600)):
        if seconds < most:
            return f"{seconds / length:.0f}", unit
    return f"{seconds / 86_400:.0f}", "days"


def rounded_duration(seconds: float) -> str:
    """Formats a duration as a rounded number and its unit.

    >>> rounded_duration(40.2), rounded_duration(95)
    ('40 s', '2 min')
    """
    return " ".join(number_and_unit(seconds))


def exact_duration(seconds: float) -> str:
    """Returns a duration in one or two units, rounded down.

    >>> [exact_duration(s) for s in (4, 95, 3600, 4000, 100_000, 900_000)]
    ['4 s', '1 min', '1 h', '1 h 6 min', '1 d 3 h', '10 d']
    """
    minutes, rest = divmod(max(0, int(seconds)), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h" if hours and days < 10 else f"{days} d"
    return " ".join(f"{n} {unit}" for n, unit in ((hours, "h"), (minutes, "min")) if n)


def format_elapsed(seconds: float) -> str:
    """Formats a duration as minutes and seconds, with hours if there are any.

    >>> format_elapsed(133.9), format_elapsed(180), format_elapsed(3723)
    ('2:13', '3:00', '1:02:03')
    """
    minutes, rest_s = divmod(max(0, int(seconds)), 60)
    hours, rest_min = divmod(minutes, 60)
    return f"{hours}:{rest_min:02}:{rest_s:02}" if hours else f"{minutes}:{rest_s:02}"


def bounded_integer(least: int, most: int | None = None, wanted: str = "") -> Callable[[str], int]:
    """Returns an argparse type that reads an integer from `least` to `most`; `wanted` replaces the error
    message.

    >>> bounded_integer(0)("12"), bounded_integer(1, 9)("9")
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
