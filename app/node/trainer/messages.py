"""The messages between node and trainer: typed, numbered, size-limited JSON lines.

The node sends one request at a time, and the trainer replies with its number; `SampleProgress`, `TokensDone`
and `TrainerNote` lines may come before the reply. Shape suffixes as in engines.contract.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO, Literal

import msgspec

from app.skills.answering import SkillAnswer
from engines.contract import Batch, Completion, EngineInfo, StepStats, TokenSequence

MAX_LINE = 64 * 2**20
"""Maximum bytes of one message. A probe of 256 long completions takes about 2 MB, so a longer one is an
error.
"""


class MessageError(Exception):
    """A line is not a valid message: too long, not JSON, or of the wrong shape."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower):
    number: int


class OpenModel(_Message, frozen=True, tag="open"):
    """Loads the model; always the first request. `rank` None: the engine chooses."""

    model: str
    rank: int | None
    seed: int


class LoadAdapter(_Message, frozen=True, tag="load"):
    """Loads adapter and optimiser from a checkpoint folder."""

    folder: str


class Save(_Message, frozen=True):
    """Saves adapter and optimiser to a folder, flushed to disk."""

    folder: str


class SamplePrompts(_Message, frozen=True, tag="sample"):
    """Samples `n` completions of every prompt, `prompts_at_once` prompts per call of the engine.

    The slices, and so the tokens, depend on the message alone. `texts_only` omits token ids and log-probs from
    the reply (a probe needs none).
    """

    prompts_P: list[list[dict[str, str]]]
    n: int
    max_tokens: int
    seed: int
    prompts_at_once: int
    texts_only: bool = False


class Learn(_Message, frozen=True):
    """Takes one optimiser step."""

    batch: Batch


class PeerTexts(msgspec.Struct, frozen=True, kw_only=True):
    """One group as text: a peer's completions of one prompt."""

    prompt: list[dict[str, str]]
    completions_G: tuple[str, ...]
    finished_G: tuple[bool, ...]


class ReadGroups(_Message, frozen=True, tag="read"):
    """Returns the token ids of peers' groups and, with `logprobs`, their log-probabilities under the learner.

    A group with a finished completion of more than `max_tokens` tokens does not fit and is left out entirely.
    """

    groups_P: list[PeerTexts]
    max_tokens: int
    logprobs: bool


class AnswerQuestions(_Message, frozen=True, tag="answer"):
    """Answers each prompt as a skill does (app.skills.answering): with the likeliest of `labels`, or, without
    any, greedily."""

    prompts_P: list[list[dict[str, str]]]
    labels: tuple[str, ...]
    max_tokens: int


class CountLetters(_Message, frozen=True, tag="count"):
    """Labels texts by what letters alone tell (app.skills.baseline), here because the node has no numpy."""

    taught: list[tuple[str, str]]
    asked: list[str]


class TrainerOpened(_Message, frozen=True, tag="opened"):
    info: EngineInfo


class SampleProgress(_Message, frozen=True, tag="progress"):
    """`done` of `total` completions are sampled."""

    done: int
    total: int


class TokensDone(_Message, frozen=True, tag="tokens"):
    """A heartbeat: number of tokens read, sampled and trained on since the trainer started."""

    tokens: int


class TrainerNote(_Message, frozen=True, tag="noted"):
    """A sentence for the owner, for example that smaller steps are taken because memory is short."""

    sentence: str


class Sampled(_Message, frozen=True):
    """The sampled groups. `prompts_PT`: the prompts' token ids as used by the engine. `tokens`: number of
    sampled tokens."""

    groups_PG: list[list[Completion]]
    prompts_PT: list[list[int]]
    tokens: int
    seconds: float


class StepDone(_Message, frozen=True):
    stats: StepStats


class GroupTokens(msgspec.Struct, frozen=True, kw_only=True):
    """One group as tokens. `logprobs_GT` (nats) are zeros for unfinished completions, which are not
    measured.
    """

    sequences_G: list[TokenSequence]
    logprobs_GT: list[list[float]] | None


class ReadAll(_Message, frozen=True):
    """The groups in the order of the request; None for a group that does not fit."""

    readings_P: list[GroupTokens | None]


class Answered(_Message, frozen=True):
    """One answer for each prompt, None for one that is too long."""

    answers_P: list[SkillAnswer | None]


class LettersCounted(_Message, frozen=True, tag="counted"):
    labels: list[str]


class TrainerDone(_Message, frozen=True, tag="done"):
    pass


class TrainerFailed(_Message, frozen=True, tag="failed"):
    """The engine failed; the message is for the owner. `adapter`: a saved adapter is invalid. `disk`: the
    disk is full."""

    sentence: str
    reason: Literal["engine", "adapter", "disk"]


Request = OpenModel | LoadAdapter | Save | SamplePrompts | Learn | ReadGroups | AnswerQuestions | CountLetters
Reply = (
    TrainerOpened
    | SampleProgress
    | TokensDone
    | TrainerNote
    | Sampled
    | StepDone
    | ReadAll
    | Answered
    | LettersCounted
    | TrainerDone
    | TrainerFailed
)

_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def to_line(message: Request | Reply) -> bytes:
    """Encodes a message as one line. Raises MessageError if it is too long."""
    line = msgspec.json.encode(message) + b"\n"
    if len(line) > MAX_LINE:
        raise MessageError(f"A message of {len(line)} bytes is longer than the limit of {MAX_LINE}.")
    return line


def decode_request(line: bytes) -> Request:
    """Parses a request. Raises MessageError."""
    _check(line)
    try:
        return _requests.decode(line)
    except msgspec.MsgspecError as error:
        raise MessageError(f"A request could not be read: {error}.") from error


def decode_reply(line: bytes) -> Reply:
    """Parses a reply. Raises MessageError."""
    _check(line)
    try:
        return _replies.decode(line)
    except msgspec.MsgspecError as error:
        raise MessageError(f"A reply could not be read: {error}.") from error


def _check(line: bytes) -> None:
    if len(line) > MAX_LINE or not line.endswith(b"\n"):
        raise MessageError("A message was cut off or is too long.")


def own_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Reserves standard input and output for messages and returns both. File descriptor 0 is empty from then
    on; file descriptor 1, and everything that libraries print, is redirected to standard error.

    Descriptor 0 is emptied because on Windows a query of its state, as by loading numpy, would block while a
    thread waits on the same input, until the other side writes (numpy issue 24290)."""
    source = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    channel = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return source, channel


def send(channel: BinaryIO, line: bytes) -> None:
    """Writes all of `line`, even if the channel accepts it in parts."""
    left = memoryview(line)
    while left:
        left = left[channel.write(left) :]
