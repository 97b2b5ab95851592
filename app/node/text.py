"""One line of a terminal."""

from __future__ import annotations

from rich.text import Text


def cut(line: Text, width: int) -> Text:
    """The same text on exactly one line, with an ellipsis where it is longer."""
    line.no_wrap, line.overflow, line.end = True, "ellipsis", "\n"
    line.truncate(width, overflow="ellipsis")
    return line
