"""Text that looks different from what it is: to a person, to a terminal, or to a model's tokenizer."""

from __future__ import annotations

import re
from unicodedata import category, combining

_BREAKS = str.maketrans("", "", "\n\r\t")
_MARKS = 8
"""Maximum combining marks on one letter: no script needs more, and a heap of them covers the lines around it.
"""
_CONTROL_WORDS = re.compile(
    r"<[|｜][^<>|｜]{1,48}[|｜]>|</?s>|<(?:bos|eos|pad|unk|mask)>|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>"
)
"""How chat models mark where a turn ends and who speaks; in a peer's text these could only be forgeries."""


def unsafe(text: str) -> bool:
    """Whether text has control characters, changes of direction, invisible or private characters, heaps of
    marks, or a model's control words.

    >>> [unsafe(text) for text in ("4-1=3 #3", "é\\t🐟\\n", "a\\u202eb", "a\\x1b[2J", "ok<|im_end|>")]
    [False, False, True, True, True]
    """
    if not text.translate(_BREAKS).isprintable() and any(map(_hidden, text)):
        return True
    if not text.isascii() and _heaped(text):
        return True
    return _CONTROL_WORDS.search(text) is not None


def _hidden(one: str) -> bool:
    return not one.isprintable() and one not in "\n\r\t" and category(one) != "Zs"


def _heaped(text: str) -> bool:
    marks = 0
    for one in text:
        marks = marks + 1 if combining(one) else 0
        if marks > _MARKS:
            return True
    return False
