"""Reasons for refusing a peer's group: each a word for the counters and a sentence for people. Also detects
unsafe text, which a person, a terminal or a tokenizer would take for something else."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Literal
from unicodedata import category, combining

from app.swarm.wire.limits import Flaw


class IntakeReason(StrEnum):
    """Reasons for refusing a group, in the order of the checks, cheapest first."""

    NOT_JSON = "not-json"
    WRONG_SHAPE = "wrong-shape"
    TOO_LARGE = "too-large"
    SEEN = "seen"
    OWN = "own"
    DISTRUSTED = "distrusted"
    BAD_ENCODING = "bad-encoding"
    BAD_ID = "bad-id"
    BAD_SIGNATURE = "bad-signature"
    OTHER_SWARM = "other-swarm"
    STALE = "stale"
    AHEAD = "ahead"
    TOO_MUCH = "too-much"
    OTHER_VERSION = "other-version"
    NO_QUESTION = "no-question"
    FAMILY_OFF = "family-off"
    TOO_LONG = "too-long"
    UNSAFE = "unsafe"
    SLOW_QUESTION = "slow-question"
    HELD_OUT = "held-out"
    LOOK_ALIKE = "look-alike"
    FALSE_REWARDS = "false-rewards"
    UNCHECKED = "unchecked"
    """Only for files; see app.swarm.intake.archive."""

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]

    @property
    def complaint(self) -> Literal["bad_reward", "unsafe"] | None:
        """The complaint sent to the relay for this reason; None if it is not reported."""
        return _COMPLAINTS.get(self)

    @property
    def deliberate(self) -> bool:
        """True if no honest node would have signed the group, so that it counts against the author."""
        return self in _DELIBERATE


_SENTENCES = {
    IntakeReason.NOT_JSON: "It isn't JSON in UTF-8.",
    IntakeReason.WRONG_SHAPE: "It is no group: a field is missing, foreign, or of another kind.",
    IntakeReason.TOO_LARGE: "It is larger than a group may be.",
    IntakeReason.SEEN: "It came before.",
    IntakeReason.OWN: "A key of this node signed it.",
    IntakeReason.DISTRUSTED: "Its author has sent bad groups lately.",
    IntakeReason.BAD_ENCODING: "Its compressed text can't be unpacked.",
    IntakeReason.BAD_ID: "Its id belongs to other text or to another swarm.",
    IntakeReason.BAD_SIGNATURE: "Its signature doesn't hold.",
    IntakeReason.OTHER_SWARM: "It was written for another swarm.",
    IntakeReason.STALE: "It is too old.",
    IntakeReason.AHEAD: "It is stamped in the future.",
    IntakeReason.TOO_MUCH: "Its author sends more than its share.",
    IntakeReason.OTHER_VERSION: "It answers questions of another version.",
    IntakeReason.NO_QUESTION: "There is no such question.",
    IntakeReason.FAMILY_OFF: "This node doesn't train on its family of questions.",
    IntakeReason.TOO_LONG: "A completion is longer than this node takes.",
    IntakeReason.UNSAFE: "It holds hidden or controlling characters, or a model's control words.",
    IntakeReason.SLOW_QUESTION: "Its question takes too long to make.",
    IntakeReason.HELD_OUT: "Its question is one of those that nodes are tested on.",
    IntakeReason.LOOK_ALIKE: "It is almost the same as another one.",
    IntakeReason.FALSE_REWARDS: "Its answers don't earn what it claims.",
    IntakeReason.UNCHECKED: "Checking the others took too long: import what is left as a file of its own.",
}
_COMPLAINTS: dict[IntakeReason, Literal["bad_reward", "unsafe"]] = {
    IntakeReason.FALSE_REWARDS: "bad_reward",
    IntakeReason.UNSAFE: "unsafe",
}
_DELIBERATE = frozenset(
    {
        IntakeReason.FALSE_REWARDS,
        IntakeReason.UNSAFE,
        IntakeReason.SLOW_QUESTION,
        IntakeReason.NO_QUESTION,
        IntakeReason.OTHER_SWARM,
    }
)


def reason_of_flaw(flaw: Flaw) -> IntakeReason:
    """Returns the reason with the flaw's name, else WRONG_SHAPE."""
    try:
        return IntakeReason(flaw.value)
    except ValueError:
        return IntakeReason.WRONG_SHAPE


_BREAKS = str.maketrans("", "", "\n\r\t")
_MARKS = 8
"""Maximum combining marks on one letter: no script needs more, and a pile of them covers the lines around
it."""
_CONTROL_WORDS = re.compile(
    r"<[|｜][^<>|｜]{1,48}[|｜]>|</?s>|<(?:bos|eos|pad|unk|mask)>|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>"
)
"""Markup by which chat models separate turns and speakers; in a peer's text it can only be a forgery."""


def is_unsafe(text: str) -> bool:
    """True if the text has control characters, direction changes, invisible or private-use characters, piles of
    combining marks, or a model's control words.

    >>> [is_unsafe(text) for text in ("4-1=3 #3", "é\\t🐟\\n", "a\\u202eb", "a\\x1b[2J", "ok<|im_end|>")]
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
