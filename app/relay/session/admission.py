"""Who may do what at a relay: one table of rules for each kind of frame.

`decide` looks at a frame and at the facts about who sent it, both plain values, and changes nothing. The first
rule that applies refuses the frame; where none does it is admitted, and only then its bucket is charged and its
handler called. What needs the frame's content, as a group's signature, is checked by the handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import msgspec

from app.relay.standing import Treatment
from app.swarm.wire import limits
from app.swarm.wire.limits import Code, Flaw, Refused
from app.swarm.wire.protocol import (
    ARCHIVE,
    CLASS,
    QUESTIONS,
    RECEIPTS,
    RESTING,
    STATS_SUB,
    ZLIB,
    AskQuestions,
    AskStats,
    Auth,
    ClassProgress,
    Erase,
    FromClient,
    Pub,
    Recall,
    Receipts,
    Report,
    Rest,
    Sample,
)

CONNECTIONS_PER_KEY = 2  # an old connection may still be closing when its node reconnects
RETRY_NOT_INVITED_S = 60.0
"""Seconds after which a node that may not sign in may ask again: the operator may have allowed it meanwhile."""
RETRY_WHEN_FULL_S, RETRY_BYTES_S = 30.0, 5.0
"""Seconds after which a node may try again where there is no room for it, or its bytes are used up."""

BUCKETS: Mapping[type[FromClient], str] = {
    Pub: "publish",
    Sample: "sample",
    Recall: "recall",
    Erase: "erase",
    Report: "report",
    Receipts: "receipts",
    AskStats: "stats",
    ClassProgress: "progress",
    Rest: "progress",
    AskQuestions: "questions",
}
"""The token bucket that each kind of frame is charged to. `Auth` is charged to "new-key", if its key is new."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known about the sender of a frame. `agreed`: capabilities agreed on at sign-in; `treatment`: of
    its key and address, and of the key that signed a group; `wait_s`: seconds until the frame's bucket has
    room; `bytes_left`: that it may be given now. The rest is for `Auth`: `flaw`, why its proof or its
    invitation does not hold; `connections` of its key; `known`, whether the key has standing; `crowded`,
    whether only places for such keys are left."""

    signed_in: bool = True
    agreed: frozenset[str] = frozenset()
    treatment: Treatment = "welcome"
    wait_s: float = 0.0
    bytes_left: float = inf
    flaw: Refused | None = None
    connections: int = 0
    known: bool = False
    crowded: bool = False


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Why a frame is refused: the error's code, a sentence for the client, and the seconds until it may try
    again. `fault`: it counts as a frame that no correct client sends. `code` None: it is dropped in silence."""

    code: Code | None
    sentence: str = ""
    wait_s: float | None = None
    fault: bool = False


_Rule = Callable[[Any, Facts], Verdict | None]
"""Refuses the frame, or returns None if it does not apply."""


def _stranger(doing: str) -> _Rule:
    verdict = Verdict(Code.RESTRICTED, f"Sign in before {doing}.")
    return lambda frame, facts: None if facts.signed_in else verdict


def _without(capability: str, sentence: str, *, fault: bool = False) -> _Rule:
    verdict = Verdict(Code.UNSUPPORTED, sentence, None, fault)
    return lambda frame, facts: None if capability in facts.agreed else verdict


def _often(doing: str) -> _Rule:
    sentence = f"This key or address {doing}."
    return lambda frame, facts: Verdict(Code.RATE_LIMITED, sentence, facts.wait_s) if facts.wait_s > 0 else None


_BLOCKED = Verdict(Code.BLOCKED, "This key or address is banned here.")
_NO_CLASS = "This was not agreed on: join with an invite to a class."
_NO_BYTES = Verdict(Code.RATE_LIMITED, "The bytes of this minute are used up.", RETRY_BYTES_S)
_SILENT = Verdict(None)
_TWICE = Verdict(Code.INVALID, "This connection has signed in already.", None, True)
_TOO_MANY = Verdict(Code.RATE_LIMITED, "This key is connected twice already.", RETRY_WHEN_FULL_S)
_FULL = Verdict(
    Code.RATE_LIMITED, "This relay is nearly full, and has room for keys it knows only.", RETRY_WHEN_FULL_S
)


_UNZIPPED: _Rule = _without(ZLIB, "Compressed bodies were not agreed on.")
_UNSUBSCRIBED: _Rule = _without(STATS_SUB, "A subscription was not agreed on.")


def _blocked(frame: Any, facts: Facts) -> Verdict | None:
    return _BLOCKED if facts.treatment == "blocked" else None


def _no_bytes(ask: Sample | Recall, facts: Facts) -> Verdict | None:
    return _NO_BYTES if facts.bytes_left < min(ask.max_bytes, limits.FRAME_BYTES) else None


def _flawed(auth: Auth, facts: Facts) -> Verdict | None:
    if facts.flaw is None:
        return None
    later = RETRY_NOT_INVITED_S if facts.flaw.flaw is Flaw.NOT_INVITED else None
    return Verdict(facts.flaw.code, facts.flaw.sentence, later)


RULES: Mapping[type[FromClient], tuple[_Rule, ...]] = {
    Auth: (
        lambda auth, facts: _TWICE if facts.signed_in else None,
        _flawed,
        _blocked,
        lambda auth, facts: _TOO_MANY if facts.connections >= CONNECTIONS_PER_KEY else None,
        lambda auth, facts: _FULL if facts.crowded and not facts.known else None,
        lambda auth, facts: too_many_new_keys(facts.wait_s) if facts.wait_s > 0 else None,
    ),
    Pub: (
        _stranger("publishing"),
        _blocked,
        _often("publishes too much"),
        lambda pub, facts: _UNZIPPED(pub, facts) if pub.enc == "zlib" else None,
    ),
    Sample: (_stranger("sampling"), _blocked, _no_bytes, _often("samples too often")),
    Recall: (
        _stranger("sampling"),
        _without(ARCHIVE, "An archive was not agreed on."),
        _blocked,
        _no_bytes,
        _often("samples too often"),
    ),
    Erase: (_stranger("erasing"), _often("erases too often")),
    Report: (_stranger("reporting"), _often("reports too often")),
    Receipts: (
        _stranger("sending receipts"),
        _without(RECEIPTS, "Receipts were not agreed on."),
        _often("sends receipts too often"),
        lambda receipts, facts: None if facts.treatment == "welcome" else _SILENT,
    ),
    AskStats: (
        _often("asks too often"),
        lambda ask, facts: _UNSUBSCRIBED(ask, facts) if ask.subscribe else None,
    ),
    ClassProgress: (
        _without(CLASS, _NO_CLASS, fault=True),
        lambda progress, facts: _SILENT if facts.wait_s > 0 else None,
    ),
    Rest: (
        _without(RESTING, _NO_CLASS, fault=True),
        lambda rest, facts: _SILENT if facts.wait_s > 0 else None,
    ),
    AskQuestions: (_without(QUESTIONS, _NO_CLASS, fault=True), _often("asks too often")),
}


def too_many_new_keys(wait_s: float) -> Verdict:
    return Verdict(Code.RATE_LIMITED, "Too many new keys come from this address.", wait_s)


def decide(frame: FromClient, facts: Facts) -> Verdict | None:
    """Returns why a frame is refused, None if it is admitted.

    >>> decide(Erase(), Facts()), decide(Erase(), Facts(signed_in=False)).sentence
    (None, 'Sign in before erasing.')
    """
    for rule in RULES[type(frame)]:
        verdict = rule(frame, facts)
        if verdict is not None:
            return verdict
    return None
