"""The limits of messages: the numbers of protocol v1, known without its codecs and its cryptography. A relay
may set lower ones and says so in `hello`."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import msgspec

from app.common.rate import Bucket

KB = 1024

FRAME_BYTES = 64 * KB
"""Bytes of one websocket message in either direction, except a batch."""
BATCH_BYTES = 512 * KB
"""Most bytes of envelopes that a client may ask for; the batch's own fields come on top of them."""
BATCH_FRAME = BATCH_BYTES + 4 * KB
LARGE_GROUP = 5_000
"""Bytes of a large group: a client asks for as many bytes as so many of these, or for a frame."""
HANDOUT_CHARS = 384 * KB
"""Characters of a question set that a class hands out; written as JSON it fits into a batch's frame."""
KIND = re.compile(rb'\{"t":"([a-z]{1,16})"')
"""Matches a frame whose type comes first, as in ours."""
BODY = 32 * KB
"""Bytes of a signed body, counted before compression."""
COMPLETION = 4096
"""Characters of one completion."""
MIN_GROUP, MAX_GROUP = 2, 16
"""Completions of a group."""
SAMPLE = 64
"""Maximum groups of one sample."""
OPEN_SAMPLES = 2
"""Maximum samples under way on a connection."""
OPEN_PUBLISHES = 16
"""Messages that a client leaves unacknowledged."""
REPORT_IDS = 64
RECALLS_PER_MIN = 4
"""How often per minute a key may ask the archive."""
ARCHIVED_S = 24 * 3600
"""Maximum age of groups in an archive, in seconds."""
SAFE_INTEGER = 2**53 - 1
"""Largest integer of the wire: larger ones are not exact in every language."""

OLDEST_S = 30 * 60
"""Older groups are acknowledged as `stale` and never sampled."""
AHEAD_S = 120
"""A group stamped further in the future than this is invalid."""

Count = Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER)]


class RelayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that a relay announces. Sizes in bytes, times in seconds."""

    frame: Count = FRAME_BYTES
    body: Count = BODY
    completion: Count = COMPLETION
    batch: Count = BATCH_BYTES
    sample: Count = SAMPLE
    open_samples: Count = OPEN_SAMPLES
    open_publishes: Count = OPEN_PUBLISHES
    oldest_s: Count = OLDEST_S
    ahead_s: Count = AHEAD_S


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """What one key may do at a relay, announced in `welcome`. Buckets refill evenly over a minute."""

    publish_per_min: Count = 30
    publish_burst: Count = 60
    sample_per_min: Count = 12
    sample_bytes_per_min: Count = 5_000_000


SHARE = 0.95
"""Share of the relay's rate that is used, because two clocks never run alike."""


def allowance(per_min: float, burst: float) -> Bucket:
    """What a relay lets this node do in a minute, counted here as well, so that it never has to refuse."""
    return Bucket(SHARE * per_min, burst)


# Why a message is not taken: one code for the wire, one flaw for the counters, one sentence for people.


class Code(StrEnum):
    """The answer to a message, as written on the wire."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    STALE = "stale"
    INVALID = "invalid"
    RATE_LIMITED = "rate-limited"
    BLOCKED = "blocked"
    POW = "pow"
    RESTRICTED = "restricted"
    UNSUPPORTED = "unsupported"
    ERROR = "error"

    @property
    def final(self) -> bool:
        """Whether the answer will stay the same, so that the message leaves the outbox. All others are tried
        again."""
        return self in _FINAL


_FINAL = frozenset({Code.ACCEPTED, Code.DUPLICATE, Code.STALE, Code.INVALID, Code.BLOCKED})


class Flaw(StrEnum):
    """What exactly is wrong. Every refusal has one; counters and logs are grouped by it."""

    TOO_LARGE = "too-large"
    NOT_JSON = "not-json"
    UNKNOWN_TYPE = "unknown-type"
    WRONG_SHAPE = "wrong-shape"
    OTHER_PROTOCOL = "other-protocol"
    BAD_ENCODING = "bad-encoding"
    BAD_ID = "bad-id"
    BAD_SIGNATURE = "bad-signature"
    OTHER_SWARM = "other-swarm"
    NO_WORK = "no-work"
    NOT_INVITED = "not-invited"
    STALE = "stale"
    AHEAD = "ahead"


_CODES = {
    Flaw.UNKNOWN_TYPE: Code.UNSUPPORTED,
    Flaw.OTHER_PROTOCOL: Code.UNSUPPORTED,
    Flaw.NO_WORK: Code.POW,
    Flaw.NOT_INVITED: Code.RESTRICTED,
    Flaw.STALE: Code.STALE,
}


class Refused(Exception):
    """A message that is not accepted. The sentence never quotes foreign text at length."""

    def __init__(self, flaw: Flaw, sentence: str) -> None:
        super().__init__(sentence[:200])
        self.flaw = flaw

    @property
    def code(self) -> Code:
        return _CODES.get(self.flaw, Code.INVALID)

    @property
    def sentence(self) -> str:
        return str(self)


class LineMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message as it was sent. `at` is in seconds since 1970, `size` the bytes of all of it; of a long one
    `text` has the beginning."""

    at: float
    outgoing: bool
    kind: str
    size: int
    text: str
