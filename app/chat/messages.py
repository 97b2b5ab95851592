"""The messages between a chat process and the one who asks: typed JSON lines of limited size; and what a race
comes to, which its messages tell puzzle by puzzle.

Every request has a number, and its replies carry the same one; ChatDone or ChatFailed is the last of them.
ModelOpened comes first of all and answers nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

import msgspec

from app.common import remedy
from app.sapo.questions import Coordinates
from engines.contract import EngineInfo

# The race: the same new puzzles to the model as it came and as it is now, one answer each.
#
# The puzzles are held out, so neither side ever trained on them, and both sides draw with the same seed: what
# differs is what was learned, and chance, as far as the error says.

DEFAULT_PUZZLES = 20
MAX_PUZZLES = 100
AT_ONCE = 5
"""Puzzles answered together: more are faster, fewer are seen sooner."""
_CHANCE = 0.05


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The score of a race. `won` puzzles were solved only by the trained model, `lost` only by the base
    model."""

    puzzles: int = 0
    before: int = 0
    after: int = 0
    won: int = 0
    lost: int = 0

    def plus(self, before: bool, after: bool) -> Result:
        """The score with one more puzzle.

        >>> Result().plus(False, True).plus(True, True)
        Result(puzzles=2, before=1, after=2, won=1, lost=0)
        """
        return Result(
            puzzles=self.puzzles + 1,
            before=self.before + before,
            after=self.after + after,
            won=self.won + (after and not before),
            lost=self.lost + (before and not after),
        )

    @property
    def lead(self) -> int:
        """Number of puzzles that it solves more than before."""
        return self.after - self.before

    @property
    def error(self) -> float:
        """Standard error of the lead, in puzzles: that of a sum of paired differences.

        >>> round(Result(puzzles=20, before=4, after=10, won=7, lost=1).error, 2)
        2.49
        """
        return math.sqrt(max(0.0, self.won + self.lost - self.lead**2 / max(1, self.puzzles)))

    @property
    def chance(self) -> float:
        """How often two equal models would be at least so far apart: the exact sign test, two-sided.

        >>> Result(won=6, lost=0).chance, Result(won=3, lost=3).chance
        (0.03125, 1.0)
        """
        apart, least = self.won + self.lost, min(self.won, self.lost)
        tail = sum(math.comb(apart, k) for k in range(least + 1)) / 2**apart
        return min(1.0, 2 * tail)

    @property
    def sure(self) -> bool:
        """Whether chance alone hardly explains the lead."""
        return self.chance <= _CHANCE


MAX_LINE = 2**18
"""Bytes of one message."""
MAX_TEXT = 8000
"""Characters of a question."""

Side = Literal["before", "after"]
"""The base model as it came, and with what it has learned here."""
SIDES: tuple[Side, Side] = ("before", "after")
Sides = Literal["both", "before", "after"]
Sort = Literal["test", "practice"]
Kind = TypeVar("Kind")
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]


class ChatMessageError(Exception):
    """A line that is not a message; the sentence says why."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower):
    number: int


class Ask(_Message, frozen=True):
    """A question in the owner's words, in the present conversation. Said comes from each side that was
    asked."""

    text: Text
    sides: Sides = "both"


class Draw(_Message, frozen=True):
    """A fresh puzzle; family and level are chosen if not named. PuzzleDrawn comes. `sort`: a held-out one,
    which nobody trains on, or one for practice, whose answer may teach."""

    sort: Sort = "test"
    family: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    level: Annotated[int, msgspec.Meta(ge=0, le=64)] | None = None


class Solve(_Message, frozen=True):
    """Asks the model a puzzle as in practice. Said comes from each side that was asked, with the verdict."""

    puzzle: int
    sides: Sides = "both"


class JudgeAnswer(_Message, frozen=True, tag="judge"):
    """A person's answer, and the work that led there. AnswerJudged and Solution come."""

    puzzle: int
    answer: Text
    work: Text = ""


class Give(_Message, frozen=True):
    """Confirms the text that AnswerJudged offered. ExampleGiven comes."""

    puzzle: int
    teach: bool
    share: bool


class Race(_Message, frozen=True):
    """The same new puzzles to both sides, one answer each. A Lap comes for every puzzle; with a `seed` they and
    their answers are the same again."""

    puzzles: Annotated[int, msgspec.Meta(ge=1, le=MAX_PUZZLES)] = DEFAULT_PUZZLES
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**48)] | None = None


class Forget(_Message, frozen=True):
    """The conversation begins again."""


class StopRequest(_Message, frozen=True, tag="stop"):
    """Ends the request of this number with what there is so far. It has no reply of its own."""


class ModelOpened(_Message, frozen=True, tag="opened"):
    """The model is loaded. `learned` is the round of the newest checkpoint, None before the first; `levels` are
    the families that the model practises and its level in each."""

    model: str
    engine: EngineInfo
    learned: int | None
    levels: dict[str, int]


class PuzzleDrawn(_Message, frozen=True, tag="drawn"):
    """A puzzle; `puzzle` is its id. `unseen`: it is held out, so never trained on."""

    puzzle: int
    family: str
    title: str
    level: int
    levels: int
    text: str
    unseen: bool


class Growing(_Message, frozen=True):
    """One side's answer so far, from its beginning."""

    side: Side
    text: str


class Said(_Message, frozen=True):
    """One side's answer, without anything that a display would obey. `solved` is the verdict on a puzzle, and
    `learned` the round of the checkpoint that answered."""

    side: Side
    text: str
    finished: bool
    tokens: int
    seconds: float
    stopped: bool = False
    """Whether somebody stopped it."""
    solved: bool | None = None
    learned: int | None = None


class AnswerJudged(_Message, frozen=True, tag="judged"):
    """`offer` is the very text that could teach, empty if there is none: the answer is wrong or came without
    work, or the puzzle is held out."""

    solved: bool
    offer: str = ""


class ExampleGiven(_Message, frozen=True, tag="given"):
    """The confirmed text waits for the node."""


class Solution(_Message, frozen=True):
    """A right answer to the puzzle, after the verdicts on it."""

    text: str


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One side's answer to a puzzle of a race, with its verdict."""

    text: str
    solved: bool


class Lap(_Message, frozen=True):
    """A puzzle of a race, by its coordinates, and what both sides made of it; `place` counts from 0, `puzzles`
    is how many there are, and `learned` the round whose safe point answered."""

    place: int
    puzzles: int
    coordinates: Coordinates
    title: str
    text: str
    before: Try
    after: Try
    learned: int


class OnlyPuzzles(_Message, frozen=True):
    """The question was not a puzzle, and this model can answer nothing else."""


class ChatNote(_Message, frozen=True, tag="noted"):
    """A sentence for the other side to show."""

    sentence: str


class ChatDone(_Message, frozen=True, tag="done"):
    pass


class ChatFailed(_Message, frozen=True, tag="failed"):
    """The request failed, with a sentence; `final`: this process has no model and ends."""

    sentence: str
    final: bool = False


Request = Ask | Draw | Solve | JudgeAnswer | Give | Race | Forget | StopRequest
Reply = (
    ModelOpened
    | PuzzleDrawn
    | Growing
    | Said
    | AnswerJudged
    | ExampleGiven
    | Solution
    | Lap
    | OnlyPuzzles
    | ChatNote
    | ChatDone
    | ChatFailed
)


def chosen(sides: Sides) -> Sequence[Side]:
    """
    >>> chosen("both"), chosen("after")
    (('before', 'after'), ('after',))
    """
    return SIDES if sides == "both" else (sides,)


_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def to_line(message: Request | Reply) -> bytes:
    """One message as one line."""
    return msgspec.json.encode(message) + b"\n"


def request(line: bytes) -> Request:
    """Raises ChatMessageError."""
    return _read(_requests, line)


def reply(line: bytes) -> Reply:
    """Raises ChatMessageError."""
    return _read(_replies, line)


def _read(decoder: msgspec.json.Decoder[Kind], line: bytes) -> Kind:
    if len(line) > MAX_LINE:
        raise ChatMessageError(f"A message of more than {MAX_LINE} bytes is too long; ask something shorter.")
    try:
        return decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise ChatMessageError(
            f"This is no message of a chat ({error}); see {remedy.command('chat --help')}."
        ) from error
