"""The messages between the scoring sandbox and its child: typed messages in frames of limited size.

A frame is four bytes of length, big-endian, and that many bytes of msgpack. Every request has a number, which
its reply repeats.
"""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from app.sapo.questions import Coordinates

MAX_FRAME = 8192
"""Maximum bytes of a frame. An answer has at most MAX_ANSWER characters of at most four bytes, the longest
question about 1,300 bytes, and coordinates about a hundred."""

MAX_REASON = 400  # characters of a sentence


class PipeError(Exception):
    """A frame is too large, cut off or contains no valid message."""


class LoadQuestion(msgspec.Struct, frozen=True, tag="Load"):
    """Regenerates this question; later answers are scored against it."""

    number: int
    coordinates: Coordinates


class Judge(msgspec.Struct, frozen=True, tag=True):
    """Scores this answer, encoded as UTF-8 with lone surrogates allowed."""

    number: int
    answer: bytes


class Make(msgspec.Struct, frozen=True, tag=True):
    """Generates these questions; `onward`: the first sound ones of their seeds; `worked`: with a worked answer
    and the solution too. Each gets a separate reply, QuestionMade or NoQuestion, in this order; the loaded
    question stays loaded."""

    number: int
    places: tuple[Coordinates, ...]
    onward: bool
    worked: bool = False


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The child has imported the library and limited its privileges. Sent first, without a request."""


class ScorerFailed(msgspec.Struct, frozen=True, tag="Failed"):
    """Sent instead of Ready: the child cannot work, and exits."""

    reason: str


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The question is loaded."""

    number: int


class NoQuestion(msgspec.Struct, frozen=True, tag="Refused"):
    """There is no question at these coordinates."""

    number: int
    reason: str
    unsound: bool


class QuestionMade(msgspec.Struct, frozen=True, tag="Made"):
    """A question's text, the index at which it was found, whether it is held out, and its content number. Its
    worked answer and its solution are set if the request asked for them; `worked` is empty if the family has
    none."""

    number: int
    index: int
    text: str
    held_out: bool
    content: int
    worked: str = ""
    solution: str = ""


class Judged(msgspec.Struct, frozen=True, tag=True):
    """The raw score of an answer."""

    number: int
    score: float


Request = LoadQuestion | Judge | Make
Reply = Ready | ScorerFailed | Loaded | NoQuestion | QuestionMade | Judged

_encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode


def frame(message: Request | Reply) -> bytes:
    """Encodes a message. Raises PipeError if it is too large, has an integer beyond 64 bits, or a string that
    is not Unicode."""
    try:
        body = _encode(message)
    except (OverflowError, ValueError) as error:
        raise PipeError(f"A message cannot be encoded: {error}.") from error
    if len(body) > MAX_FRAME:
        raise PipeError(f"A message of {len(body)} bytes is too large.")
    return len(body).to_bytes(4, "big") + body


def read_frame(stream: BinaryIO) -> bytes | None:
    """Returns the next frame's content, None if the other side has closed the pipe. Raises PipeError."""
    head = stream.read(4)
    if not head:
        return None
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > MAX_FRAME:
        raise PipeError("A frame is cut off or too large.")
    body = stream.read(size)
    if len(body) < size:
        raise PipeError("A frame is cut off.")
    return body
