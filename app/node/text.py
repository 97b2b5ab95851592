"""Text for one line of a terminal."""

from __future__ import annotations

from rich.text import Text


def plain(text: str) -> str:
    """Text of models and questions on one line, without anything a terminal would obey.

    >>> plain("4-1=3\\n #3\\x1b[2J")
    '4-1=3 #3·[2J'
    """
    return "".join(char if char.isprintable() else "·" for char in " ".join(text.split()))


def cut(line: Text, width: int) -> Text:
    """The same text on exactly one line, with an ellipsis where it is longer."""
    line.no_wrap, line.overflow, line.end = True, "ellipsis", "\n"
    line.truncate(width, overflow="ellipsis")
    return line
