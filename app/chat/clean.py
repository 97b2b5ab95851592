"""Text of models as people may look at it: nothing in it that a terminal or a display would obey."""

from __future__ import annotations

MOST = 20_000
"""Characters that are shown of one text."""
_JOINERS = "\u200c\u200d"
"""Between letters and pictures of many scripts; they turn nothing round."""


def clean(text: str) -> str:
    """The text with its lines, and with a dot for every control character and every mark that turns the
    direction of writing.

    >>> clean("4-1=3\\u202e #3\\x1b[2J\\r\\n\\tyes\\n")
    '4-1=3· #3·[2J\\n    yes'
    """
    lines = text[:MOST].replace("\r\n", "\n").replace("\t", "    ").strip("\n ")
    return "".join(
        char if char.isprintable() or char in _JOINERS or char == "\n" else "·" for char in lines
    ) + ("…" if len(text) > MOST else "")
