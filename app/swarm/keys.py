"""JSON where every key stands once in its object. Readers differ in which of two they take, so a text with two
would be one thing to a relay and another to a node."""

from __future__ import annotations

import json
from typing import Any


def once(raw: bytes) -> bool:
    r"""Whether no key stands twice, in a text that has been read already and so is not deep.

    >>> [once(raw) for raw in (b'{"a":1,"b":{"a":1}}', b'{"a":1,"\\u0061":2}', b'[{"a":1, "a" :1}]')]
    [True, False, False]
    """
    try:
        json.loads(raw, object_pairs_hook=_different)
    except _TwiceError:
        return False
    return True


class _TwiceError(Exception):
    pass


def _different(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _TwiceError
