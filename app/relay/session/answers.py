"""Answers as frames: a refusal, and a batch of groups, which joins their bytes as they are kept."""

from __future__ import annotations

from math import ceil

import msgspec

from app.swarm.wire.frames import to_frame
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import Err

_LONGEST_WAIT_S = 24 * 3600.0


class Figures(msgspec.Struct, tag_field="t", tag="batch", gc=False):
    """A batch without its groups: the fields in front of them."""

    rid: int
    window: int
    eligible: int
    sources: int
    age_p50_s: float | None


_encoded = msgspec.json.Encoder().encode


def batch(figures: Figures, raws: list[bytes]) -> bytes:
    """`raws` are the groups' exact bytes; the list is emptied."""
    head = _encoded(figures)[:-1] + b',"items":['
    if not raws:
        return head + b"]}"
    raws[0] = head + raws[0]
    raws[-1] += b"]}"
    return b",".join(raws)


def refusal(code: Code, sentence: str, *, rid: int | None = None, wait_s: float | None = None) -> bytes:
    """`rid` is of the refused request, `wait_s` the seconds until it may be repeated."""
    return to_frame(Err(code=code, msg=sentence, rid=rid, retry_after_ms=waiting_ms(wait_s)))


def waiting_ms(wait_s: float | None) -> int | None:
    """Seconds to wait in the protocol's form: whole milliseconds, at most a day.

    >>> waiting_ms(0.0123), waiting_ms(None)
    (13, None)
    """
    return None if wait_s is None else ceil(min(wait_s, _LONGEST_WAIT_S) * 1000)
