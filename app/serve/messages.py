"""Messages between the server and the process with the model, as typed JSON lines of limited size.

A request has a number, and each of its answers an index. A request ends with Refused, or with one Ended for
every index; after Drop no message about it is sent."""

from __future__ import annotations

import msgspec

MAX_LINE = 2**22
"""Maximum bytes of one message: more than a request's body or an answer with its log-probabilities takes."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower, omit_defaults=True):
    number: int


Prompt = str | list[dict[str, str] | int]
"""A text, chat messages, or token ids."""


BASE_SIDE = ""
"""The side of the model as it came."""


class Start(_Message, frozen=True):
    """Requests `n` answers to each of `prompts`. `stream`: send pieces as they are generated. `logprobs`: None
    for no log-probabilities, else the number of alternatives per token. `side`: BASE_SIDE, or what
    was learned (a name of app.node.models.skills). `grammar`: GBNF that answers must follow, "" for none."""

    prompts: list[Prompt]
    n: int = 1
    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0
    stop: list[str] = []
    logprobs: int | None = None
    stream: bool = False
    side: str = BASE_SIDE
    grammar: str = ""
    echo: bool = False
    """Whether the prompt is told too, as the beginning of the answer."""


class Drop(_Message, frozen=True):
    """Cancels a request."""


Token = tuple[str, float | None]
"""A token's text and its log-probability in nats at temperature 1; None for the first of a prompt."""


class TokenChoice(msgspec.Struct, frozen=True, array_like=True):
    """A sampled token, and the most likely tokens at its position."""

    token: Token
    top: list[Token] = []


class ModelReady(_Message, frozen=True, tag="ready"):
    """The model is loaded; `learned` is the round of its newest checkpoint. Answers no request, so its number
    is 0."""

    context: int
    engine: str
    learned: int | None


class Began(_Message, frozen=True):
    """The request was accepted; `tokens` is the length of all its prompts together."""

    tokens: int


class Piece(_Message, frozen=True):
    """New text of an answer, sent when streaming, and when one message would hold too many
    log-probabilities."""

    index: int
    text: str
    logprobs: list[TokenChoice] = []


class Ended(_Message, frozen=True):
    """The end of an answer, with the rest of its text. `reason`: "stop" or "length". `work`: what came before
    an answer that stands behind a mark."""

    index: int
    text: str
    reason: str
    tokens: int
    logprobs: list[TokenChoice] = []
    work: str = ""


class Refused(_Message, frozen=True):
    """The request failed; `sentence` says why, `code` is OpenAI's error code if there is one. `fault`: the
    error is the server's, not the request's. `final`: no model could be opened, and the process ends."""

    sentence: str
    code: str | None = None
    fault: bool = False
    final: bool = False


Request = Start | Drop
Reply = ModelReady | Began | Piece | Ended | Refused


def to_line(message: Request | Reply) -> bytes:
    """Encodes a message as one JSON line."""
    return msgspec.json.encode(message) + b"\n"


read_request = msgspec.json.Decoder(Request).decode
read_reply = msgspec.json.Decoder(Reply).decode
