"""The limits of messages: the numbers of protocol v1, without its codecs and cryptography. A relay may set
lower limits and announces them in `hello`."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import msgspec

from app.common.rate import Bucket

KB = 1024

FRAME_BYTES = 64 * KB
"""Maximum bytes of a websocket message in either direction, except a batch."""
BATCH_BYTES = 512 * KB
"""Maximum bytes of envelopes that a client may request; the batch's other fields are added to that."""
BATCH_FRAME = BATCH_BYTES + 4 * KB
LARGE_GROUP_BYTES = 5_000
"""Bytes of a large group: a client that wants k groups requests k times this, at least a frame and at most
BATCH_BYTES."""
HANDOUT_CHARS = 384 * KB
"""Maximum characters of a question set that a class hands out; as JSON it fits into a batch's frame."""
FRAME_TYPE = re.compile(rb'\{"t":"([a-z]{1,16})"')
"""Matches a frame whose first field is the type, as in our encoding."""
MAX_BODY_BYTES = 32 * KB
"""Maximum bytes of a signed body, before compression."""
MAX_COMPLETION_CHARS = 4096
"""Maximum characters of one completion."""
MAX_COMPLETIONS = 16
"""Maximum completions of a group."""
MAX_SAMPLE_GROUPS = 64
"""Maximum groups of one sample."""
OPEN_SAMPLES = 2
"""Maximum samples in flight per connection."""
OPEN_PUBLISHES = 16
"""Maximum unacknowledged publishes per connection."""
MAX_REPORT_IDS = 64
RECALLS_PER_MIN = 4
"""Maximum archive requests per key and minute."""
ARCHIVE_MAX_AGE_S = 24 * 3600
"""Maximum age of groups in an archive, in seconds."""
RELAY_FILE = "journal.sqlite3"
"""Name of the file in which a relay keeps its groups, in the folder of `--state`."""
SAFE_INTEGER = 2**53 - 1
"""Largest integer on the wire: larger ones are not exact in every language."""

STALE_AFTER_S = 30 * 60
"""Age in seconds from which a group is acknowledged as `stale` and never sampled."""
MAX_AHEAD_S = 120
"""A group stamped more than this many seconds in the future is invalid."""

Count = Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER)]


class RelayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that a relay announces. Sizes in bytes, times in seconds."""

    frame: Count = FRAME_BYTES
    body: Count = MAX_BODY_BYTES
    completion: Count = MAX_COMPLETION_CHARS
    batch: Count = BATCH_BYTES
    sample: Count = MAX_SAMPLE_GROUPS
    open_samples: Count = OPEN_SAMPLES
    open_publishes: Count = OPEN_PUBLISHES
    oldest_s: Count = STALE_AFTER_S
    ahead_s: Count = MAX_AHEAD_S


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """A key's rates at a relay, announced in `welcome`. Token buckets refill evenly over a minute."""

    publish_per_min: Count = 30
    publish_burst: Count = 60
    sample_per_min: Count = 12
    sample_bytes_per_min: Count = 5_000_000


RATE_SHARE = 0.95
"""Fraction of the relay's rate that a node uses, because two clocks never run at exactly equal speed."""


def allowance(per_min: float, burst: float) -> Bucket:
    """A token bucket slightly below a relay's rate, by which the node limits itself so that the relay never has
    to refuse."""
    return Bucket(RATE_SHARE * per_min, burst)


class Code(StrEnum):
    """The answer code of a message on the wire."""

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
        """True if the answer will not change, so that the message leaves the outbox. With other codes it is
        sent again."""
        return self in _FINAL


_FINAL = frozenset({Code.ACCEPTED, Code.DUPLICATE, Code.STALE, Code.INVALID, Code.BLOCKED})


class Flaw(StrEnum):
    """The exact fault of a message. Every refusal has one; counters and logs are grouped by it."""

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


class LoggedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message that was sent or received. `at`: Unix seconds; `size`: bytes of the whole message; `text`:
    its text, truncated if it is long."""

    at: float
    outgoing: bool
    kind: str
    size: int
    text: str
