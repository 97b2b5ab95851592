"""JSON where every key stands once in its object. Readers differ in which of two they take, so a text with two
would be one thing to a relay and another to a node."""

from __future__ import annotations

import json
from typing import Any

import msgspec

encoded = msgspec.json.Encoder().encode


def once(raw: bytes, read: Any) -> bool:
    r"""Whether no key stands twice in a text that was read as `read`, and so is not deep. Only what is written
    in another way than ours is read a second time.

    >>> texts = b'{"a":1,"b":{"a":1}}', b'{"a":1,"\\u0061":2}', b'[{"a":1, "a" :1}]'
    >>> [once(raw, msgspec.json.decode(raw)) for raw in texts]
    [True, False, False]
    """
    return encoded(read) == raw or not twice(raw)


def twice(raw: bytes) -> bool:
    """Whether a key stands twice in an object of this JSON."""
    try:
        json.loads(raw, object_pairs_hook=_different)
    except _TwiceError:
        return True
    return False


class _TwiceError(Exception):
    pass


def _different(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _TwiceError
