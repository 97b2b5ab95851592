"""Standard output and error through which no character gets on which a terminal acts: what commands print may
come from a file, a peer or a library. Standard library only, because commands are listed before anything is
installed."""

from __future__ import annotations

import contextlib
import re
import sys
from typing import Any, TextIO, cast

_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, marks that change the writing direction, and lone surrogates, which
can't be encoded."""


def plain_text(text: str) -> str:
    """Returns the text with a dot for every character on which a terminal would act.

    >>> plain_text("a\\tb\\n\\x1b[2J\\r"), plain_text("\\u202ea")
    ('a\\tb\\n\u00b7[2J\u00b7', '\u00b7a')
    """
    return text if text.isascii() and text.isprintable() else _ACTING.sub("\u00b7", text)


def plain_json(text: str) -> str:
    """Returns the same JSON with these characters escaped.

    >>> plain_json('{"a":"\\x9b"}')
    '{"a":"\\\\u009b"}'
    """
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PlainStream:
    """`stream`, with all text that is written made plain."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(plain_text(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def bare(stream: TextIO) -> TextIO:
    """Returns the stream itself, for what moves the terminal on purpose and cleans foreign text itself."""
    return cast(TextIO, getattr(stream, "stream", stream))


def plain_streams() -> contextlib.ExitStack:
    """Returns a context in which this process prints plain text alone."""
    both = contextlib.ExitStack()
    for name, redirect in (("stdout", contextlib.redirect_stdout), ("stderr", contextlib.redirect_stderr)):
        if (stream := getattr(sys, name)) is not None:  # a window's program on Windows has none
            both.enter_context(redirect(cast(TextIO, PlainStream(stream))))
    return both
