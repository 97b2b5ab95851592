"""Messages between a chat process and its client, as typed JSON lines of limited size.

Every request has a number, and its replies repeat it; the last of them is ChatDone or ChatFailed. ModelOpened
comes before all replies and answers no request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

import msgspec

from app.skills.answering import AskedAnswer
from engines import remedy
from engines.contract import EngineInfo

MAX_TOKENS = 1024
"""Maximum tokens of one answer."""
MAX_LINE = 2**18
"""Maximum bytes of one message."""
MAX_TEXT = 8000
"""Maximum characters of a question."""

Side = Literal["before", "after"]
""""before" is the base model, "after" the model trained here."""
SIDES: tuple[Side, Side] = ("before", "after")
Sides = Literal["both", "before", "after"]
Sort = Literal["test", "practice"]
Kind = TypeVar("Kind")
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]


class ChatMessageError(Exception):
    """A line that is not a valid message; the error says why."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower):
    number: int


class Ask(_Message, frozen=True):
    """Asks a question in the current conversation. The reply is one Said per side asked."""

    text: Text
    sides: Sides = "both"


class AskSkill(_Message, frozen=True, tag="skill"):
    """Asks a skill, named by its question set's mark. The reply is SkillSaid."""

    skill: Annotated[str, msgspec.Meta(max_length=64)]
    text: Text


class Draw(_Message, frozen=True):
    """Asks for a new puzzle; family and level are chosen if not given. The reply is PuzzleDrawn. `sort`: "test"
    for a held-out puzzle, never trained on, or "practice" for one whose answer may be trained on."""

    sort: Sort = "test"
    family: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    level: Annotated[int, msgspec.Meta(ge=0, le=64)] | None = None


class Solve(_Message, frozen=True):
    """Asks the model to solve a puzzle, prompted as in training. The reply is one Said with a verdict per side
    asked, then Solution."""

    puzzle: int
    sides: Sides = "both"


class SubmitAnswer(_Message, frozen=True, tag="judge"):
    """Submits a person's answer and their working. The replies are AnswerJudged and Solution."""

    puzzle: int
    answer: Text
    work: Text = ""


class Give(_Message, frozen=True):
    """Accepts the offer in AnswerJudged: the text may be trained on (`teach`) and sent to peers (`share`). The
    reply is ExampleGiven."""

    puzzle: int
    teach: bool
    share: bool


class Forget(_Message, frozen=True):
    """Starts a new conversation."""


class StopRequest(_Message, frozen=True, tag="stop"):
    """Ends the request of this number with the answer so far. Has no reply of its own."""


class ModelOpened(_Message, frozen=True, tag="opened"):
    """The model is loaded. `learned` is the round of the newest checkpoint, None before the first; `levels`
    maps the families that the model practises to its level in each."""

    model: str
    engine: EngineInfo
    learned: int | None
    levels: dict[str, int]


class PuzzleDrawn(_Message, frozen=True, tag="drawn"):
    """A new puzzle; `puzzle` is its id. `unseen`: it is held out, so never trained on."""

    puzzle: int
    family: str
    title: str
    level: int
    levels: int
    text: str
    unseen: bool


class Growing(_Message, frozen=True):
    """The unfinished answer of one side, from its beginning."""

    side: Side
    text: str


class Said(_Message, frozen=True):
    """The finished answer of one side, safe to display. `solved` is the verdict on a puzzle, `learned` the
    round of the checkpoint that answered."""

    side: Side
    text: str
    finished: bool
    tokens: int
    seconds: float
    stopped: bool = False
    """Whether a StopRequest ended it."""
    solved: bool | None = None
    learned: int | None = None


class SkillSaid(_Message, frozen=True, tag="answered"):
    """The answer of a skill."""

    said: AskedAnswer


class AnswerJudged(_Message, frozen=True, tag="judged"):
    """The verdict on a person's answer. `offer` is the exact text that could be trained on; empty if the answer
    is wrong or came without working, or if the puzzle is held out."""

    solved: bool
    offer: str = ""


class ExampleGiven(_Message, frozen=True, tag="given"):
    """The accepted text is stored and will be read by the node."""


class Solution(_Message, frozen=True):
    """A correct answer to the puzzle, sent after the verdicts."""

    text: str


class OnlyPuzzles(_Message, frozen=True):
    """The question was not a puzzle, and this model can answer nothing else."""


class ChatNote(_Message, frozen=True, tag="noted"):
    """A sentence for the client to show."""

    sentence: str


class ChatDone(_Message, frozen=True, tag="done"):
    pass


class ChatFailed(_Message, frozen=True, tag="failed"):
    """The request failed; `sentence` says why. `final`: no model could be opened, and the process ends."""

    sentence: str
    final: bool = False


Request = Ask | AskSkill | Draw | Solve | SubmitAnswer | Give | Forget | StopRequest
Reply = (
    ModelOpened
    | PuzzleDrawn
    | Growing
    | Said
    | SkillSaid
    | AnswerJudged
    | ExampleGiven
    | Solution
    | OnlyPuzzles
    | ChatNote
    | ChatDone
    | ChatFailed
)


def expand_sides(sides: Sides) -> Sequence[Side]:
    """Returns the sides that `sides` stands for.
    >>> expand_sides("both"), expand_sides("after")
    (('before', 'after'), ('after',))
    """
    return SIDES if sides == "both" else (sides,)


_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def to_line(message: Request | Reply) -> bytes:
    """Encodes a message as one JSON line."""
    return msgspec.json.encode(message) + b"\n"


def read_request(line: bytes) -> Request:
    """Decodes a request. Raises ChatMessageError."""
    return _read(_requests, line)


def read_reply(line: bytes) -> Reply:
    """Decodes a reply. Raises ChatMessageError."""
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
