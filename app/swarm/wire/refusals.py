"""Why a message is not taken: one code for the wire, one flaw for the counters, one sentence for people."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """The answer to a message, as it stands on the wire."""

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
        """Whether the answer will stay the same: then a message leaves the outbox. The rest is tried again."""
        return self in _FINAL


_FINAL = frozenset({Code.ACCEPTED, Code.DUPLICATE, Code.STALE, Code.INVALID, Code.BLOCKED})


class Flaw(StrEnum):
    """What exactly is wrong. Every refusal has one; counters and logs are kept by it."""

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
    """A message that is not taken. The sentence never quotes foreign text at length."""

    def __init__(self, flaw: Flaw, sentence: str) -> None:
        super().__init__(sentence[:200])
        self.flaw = flaw

    @property
    def code(self) -> Code:
        return _CODES.get(self.flaw, Code.INVALID)

    @property
    def sentence(self) -> str:
        return str(self)
