"""The messages between the server and the process with the model: typed JSON lines of limited size.

A request has a number, and each of its answers an index. Refused, or one Ended for every index, is the last
that is said about a request; after Drop nothing is."""

from __future__ import annotations

import msgspec

MAX_LINE = 2**22
"""Bytes of one message: a request's body is smaller, and an answer with its log-probabilities too."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower, omit_defaults=True):
    number: int


Prompt = str | list[dict[str, str] | int]
"""A text, chat messages, or token ids."""


class Start(_Message, frozen=True):
    """`n` answers to each of `prompts`. `stream`: pieces are wanted as they come. `logprobs`: None for no
    log-probabilities, else how many alternatives are wanted with each token's own. `plain`: by the base
    model. `grammar`: GBNF that answers have to follow, empty for no grammar."""

    prompts: list[Prompt]
    n: int = 1
    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0
    stop: list[str] = []
    logprobs: int | None = None
    stream: bool = False
    plain: bool = False
    grammar: str = ""


class Drop(_Message, frozen=True):
    """The answers are no longer wanted."""


Token = tuple[str, float]
"""A token's text and its log-probability in nats at temperature 1."""


class TokenChoice(msgspec.Struct, frozen=True, array_like=True):
    """A drawn token, and the likeliest ones in its place."""

    token: Token
    top: list[Token] = []


class ModelReady(_Message, frozen=True, tag="ready"):
    """The model is loaded; `learned` is the round of its newest checkpoint. Answers no request: number 0."""

    context: int
    engine: str
    learned: int | None


class Began(_Message, frozen=True):
    """The request was accepted: token counts of all its prompts."""

    tokens: int


class Piece(_Message, frozen=True):
    """New text of an answer: where pieces are wanted, and where one message would hold too many
    log-probabilities."""

    index: int
    text: str
    logprobs: list[TokenChoice] = []


class Ended(_Message, frozen=True):
    """An answer's end and the rest of its text. `reason`: "stop" or "length"."""

    index: int
    text: str
    reason: str
    tokens: int
    logprobs: list[TokenChoice] = []


class Refused(_Message, frozen=True):
    """The request failed, with one sentence; `code` is OpenAI's if it has one. `fault`: the error is ours, not
    the request's. `final`: there is no model, and the process ends."""

    sentence: str
    code: str | None = None
    fault: bool = False
    final: bool = False


Request = Start | Drop
Reply = ModelReady | Began | Piece | Ended | Refused


def to_line(message: Request | Reply) -> bytes:
    """One message as one line."""
    return msgspec.json.encode(message) + b"\n"


read_request = msgspec.json.Decoder(Request).decode
read_reply = msgspec.json.Decoder(Reply).decode
