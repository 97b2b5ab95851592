"""OpenAI's requests and responses, as far as a small local model can serve them: /v1/chat/completions and
/v1/completions (https://platform.openai.com/docs/api-reference), parsed strictly, with errors in OpenAI's
format.

A request that offers tools is answered in text, and one that insists on a call is refused, as are images; mere
hints (`user`, `metadata`, `store`,
`service_tier` and the like) are ignored."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from app.common import files
from app.node.models.skills import PUZZLES as PUZZLES
from app.serve import schema
from app.serve.messages import BASE_SIDE, Began, Ended, Piece, Start, TokenChoice

MAX_ANSWERS = 64
"""Maximum answers to one request, over all its prompts."""
MAX_TOP_LOGPROBS = 20  # OpenAI's own limit


class UsualSampling(NamedTuple):
    """How plain talk is sampled for a program that sets nothing."""

    temperature: float = 0.7
    top_p: float = 1.0


USUAL = UsualSampling()


def usual_sampling(model: Path) -> UsualSampling:
    """Returns what the generation_config.json of the model in this folder says, if it says that it samples."""
    found = files.read_json(model / "generation_config.json", _GenerationConfig)
    if found is None or not found.do_sample:
        return USUAL
    return UsualSampling(min(found.temperature, 2.0), found.top_p)


class _GenerationConfig(msgspec.Struct, frozen=True):
    do_sample: bool = False
    temperature: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0


MAX_STOPS = 16
"""Maximum stop texts of a request. OpenAI's own limit is 4, which some programs exceed."""
_LEAST_TOP_P = 1e-6
"""What a top_p of 0 becomes: the most likely token alone."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
_Limits = msgspec.Meta(ge=-1, le=2**31)
TokenLimit = Annotated[int, _Limits] | Annotated[float, _Limits]
"""Maximum tokens of an answer, also as 4096.0; -1 is the model's own limit, as llama.cpp's clients write it."""
TokenId = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class RequestError(Exception):
    """A refused request; answered with HTTP `status` and OpenAI's error object."""

    def __init__(
        self, status: int, sentence: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.status, self.param, self.code = status, param, code

    def body(self) -> bytes:
        kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        kind = kinds.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        error = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return msgspec.json.encode({"error": error})


class TextPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message; text is the only kind this model reads."""

    type: Literal["text"]
    text: str


class ChatTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[TextPart] | None = None
    tool_calls: list[dict[str, Any]] | None = None

    def plain(self) -> dict[str, str]:
        """Returns the message as a role and a plain text. A call of a tool is its JSON, and the user says what
        the tool returned: templates of small models know no tools."""
        content = self.content or ""
        if not isinstance(content, str):
            content = "".join(part.text for part in content)
        if self.tool_calls and not content:
            content = msgspec.json.encode([call.get("function") for call in self.tool_calls]).decode()
        role = {"developer": "system", "tool": "user", "function": "user"}.get(self.role, self.role)
        return {"role": role, "content": content}


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    include_usage: bool | None = None


class JsonSchema(msgspec.Struct, frozen=True, kw_only=True):
    schema: dict[str, Any] | None = None


class ResponseFormat(msgspec.Struct, frozen=True, kw_only=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StructuredOutputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """vLLM's extension: the answer must be one of these texts. OpenAI's own API has no such option."""

    choice: list[str]


class _Common(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    max_tokens: TokenLimit | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=MAX_ANSWERS)] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None

    @property
    def usage_wanted(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    def _start(self, learned: bool, usual: UsualSampling, **more: Any) -> Start:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if len(stops) > MAX_STOPS or not all(0 < len(stop) <= 256 for stop in stops):
            sentence = f"stop is up to {MAX_STOPS} texts of 1 to 256 characters."
            raise RequestError(400, sentence, param="stop")
        if learned:
            usual = UsualSampling(0.0)
        return Start(
            number=0,
            n=self.n or 1,
            temperature=usual.temperature if self.temperature is None else self.temperature,
            top_p=max(usual.top_p if self.top_p is None else self.top_p, _LEAST_TOP_P),
            seed=secrets.randbits(48) if self.seed is None else self.seed % 2**63,
            stop=stops,
            stream=bool(self.stream),
            side=self.model if learned else BASE_SIDE,
            grammar=self._grammar(),
            **more,
        )

    def _grammar(self) -> str:
        """Returns the GBNF grammar the answers must follow, "" if any text will do."""
        form, param = self.response_format, "response_format"
        try:
            if self.structured_outputs is not None:
                param = "structured_outputs"
                return schema.one_of_texts(self.structured_outputs.choice)
            if form is None or form.type == "text":
                return ""
            if form.type == "json_object":
                return schema.any_object()
            if form.json_schema is None or form.json_schema.schema is None:
                raise schema.SchemaError("The type json_schema needs json_schema.schema.")
            return schema.grammar(form.json_schema.schema)
        except schema.SchemaError as error:
            raise RequestError(400, str(error), param=param) from error


class ChatRequest(_Common, frozen=True, kw_only=True):
    """Body of POST /v1/chat/completions."""

    messages: Annotated[list[ChatTurn], msgspec.Meta(min_length=1, max_length=512)]
    max_completion_tokens: TokenLimit | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    tool_choice: Any = None
    function_call: Any = None

    def start(self, learned: bool = False, usual: UsualSampling = USUAL) -> Start:
        """Converts the request to a message for the model process. `learned`: to what was learned under the
        name `model`, not to the base, which samples as `usual`. Raises RequestError."""
        for param, choice in (("tool_choice", self.tool_choice), ("function_call", self.function_call)):
            if choice not in (None, "none", "auto"):
                raise RequestError(400, "This model calls no tools: let it answer in text.", param=param)
        if self.top_logprobs and not self.logprobs:
            raise RequestError(400, "top_logprobs needs logprobs to be true.", param="top_logprobs")
        turns = [turn.plain() for turn in self.messages]
        if not any(turn["role"] == "user" for turn in turns):
            raise RequestError(400, "A conversation needs a message of the user.", param="messages")
        return self._start(
            learned,
            usual,
            prompts=[turns],
            max_tokens=_limit(self.max_completion_tokens, "max_completion_tokens")
            or _limit(self.max_tokens, "max_tokens"),
            logprobs=(self.top_logprobs or 0) if self.logprobs else None,
        )


class TextRequest(_Common, frozen=True, kw_only=True):
    """Body of POST /v1/completions."""

    prompt: str | list[str | TokenId | list[TokenId]]
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=5)] | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None

    def start(self, learned: bool = False, usual: UsualSampling = USUAL) -> Start:
        """Like ChatRequest.start. With `echo` the prompt comes first, with its log-probabilities."""
        if self.suffix or self.best_of not in (None, self.n or 1):
            raise RequestError(400, "suffix and best_of are not supported here: leave them out.")
        parts = self.prompt if isinstance(self.prompt, list) else [self.prompt]
        ids = [part for part in parts if isinstance(part, int)]
        prompts: list[Any] = [ids] if len(ids) == len(parts) else parts
        if (ids and prompts is parts) or not all(prompts) or len(prompts) * (self.n or 1) > MAX_ANSWERS:
            raise RequestError(400, f"Up to {MAX_ANSWERS} answers to prompts with text.", param="prompt")
        none = bool(self.echo) and self.max_tokens == 0
        most = 16 if self.max_tokens is None else 0 if none else _limit(self.max_tokens, "max_tokens")
        return self._start(
            learned, usual, prompts=prompts, max_tokens=most, logprobs=self.logprobs, echo=bool(self.echo)
        )


Asked = ChatRequest | TextRequest


def _limit(asked: float | None, param: str) -> int | None:
    """Returns the maximum of tokens asked for, None for as many as the model can. Raises RequestError for 0 and
    for half a token.

    >>> _limit(4096.0, "max_tokens"), _limit(-1, "max_tokens")
    (4096, None)
    """
    if asked is None or asked == -1:
        return None
    if asked < 1 or asked != int(asked):
        sentence = f"{param} is a whole number from 1 on, or -1 for as many as it takes."
        raise RequestError(400, sentence, param=param)
    return int(asked)


_Request = TypeVar("_Request")


def parse_request(body: bytes, kind: type[_Request]) -> _Request:
    """Decodes a request body. Half an emoji, left by a program that cuts a text, becomes a question
    mark. Raises RequestError.

    >>> parse_request(rb'{"model": "m", "prompt": "a\\ud83d"}', TextRequest).prompt
    'a?'
    """
    try:
        if rb"\ud" in body.lower():
            body = json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        place = re.search(r"`\$\.(\w+)", str(error))
        raise RequestError(
            400, f"The request isn't one this server understands: {error}.", param=place[1] if place else None
        ) from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RequestError(400, f"The body isn't JSON ({error}).") from error


class ResponseWriter:
    """Writes the answers to one request in OpenAI's response format."""

    def __init__(self, asked: Asked) -> None:
        self._chat = isinstance(asked, ChatRequest)
        self._usage_wanted = asked.usage_wanted
        self._head = {
            "id": ("chatcmpl-" if self._chat else "cmpl-") + secrets.token_hex(12),
            "created": int(time.time()),
            "model": asked.model,
        }
        self._began: set[int] = set()
        self._prompt_tokens = self._tokens = 0
        self._offsets: dict[int, int] = {}

    def began(self, began: Began) -> None:
        self._prompt_tokens = began.tokens

    def full_response(self, replies: Sequence[Piece | Ended]) -> bytes:
        """Returns the response without streaming: all answers in one object."""
        ends = sorted((one for one in replies if isinstance(one, Ended)), key=lambda one: one.index)
        self._tokens = sum(one.tokens for one in ends)
        choices = []
        for end in ends:
            own = [one for one in replies if one.index == end.index]
            text = "".join(one.text for one in own)
            said = {"role": "assistant", "content": text, "refusal": None}
            message = {"message": said | ({"reasoning_content": end.work} if end.work else {})}
            choices.append(
                {
                    "index": end.index,
                    **(message if self._chat else {"text": text}),
                    "logprobs": self._logprobs(end.index, [choice for one in own for choice in one.logprobs]),
                    "finish_reason": end.reason,
                }
            )
        kind = "chat.completion" if self._chat else "text_completion"
        return msgspec.json.encode({**self._head, "object": kind, "choices": choices, "usage": self._usage()})

    def chunk(self, piece: Piece | Ended) -> bytes:
        """Returns a stream event for the new text, and one for the end of the answer if it has ended."""
        ended = piece if isinstance(piece, Ended) else None
        events = b""
        if piece.text or piece.logprobs or not ended:
            events += self._event(piece, piece.text, None, ended.work if ended is not None else "")
        if ended is not None:
            self._tokens += ended.tokens
            events += self._event(piece, None, ended.reason)
        return events

    def _event(self, piece: Piece | Ended, text: str | None, reason: str | None, work: str = "") -> bytes:
        choice: dict[str, Any] = {"index": piece.index}
        if self._chat:
            delta = {} if text is None else {"content": text}
            if work:
                delta = {"reasoning_content": work, **delta}
            if piece.index not in self._began:
                self._began.add(piece.index)
                delta = {"role": "assistant", "content": "", **delta}
            choice["delta"] = delta
        else:
            choice["text"] = text or ""
        choice["logprobs"] = self._logprobs(piece.index, piece.logprobs) if text is not None else None
        choice["finish_reason"] = reason
        return self._line([choice], None)

    def stream_end(self) -> bytes:
        """Returns the end of a stream, with the token counts if the request wants them."""
        return (self._line([], self._usage()) if self._usage_wanted else b"") + b"data: [DONE]\n\n"

    def _line(self, choices: list[dict[str, Any]], usage: dict[str, int] | None) -> bytes:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        shown = {"usage": usage} if self._usage_wanted else {}
        return (
            b"data: "
            + msgspec.json.encode({**self._head, "object": kind, "choices": choices, **shown})
            + b"\n\n"
        )

    def _usage(self) -> dict[str, int]:
        prompt, answer = self._prompt_tokens, self._tokens
        return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}

    def _logprobs(self, index: int, choices: Sequence[TokenChoice]) -> dict[str, Any] | None:
        if not choices:
            return None
        if self._chat:
            return {
                "content": [
                    {**_token(*one.token), "top_logprobs": [_token(*other) for other in one.top]}
                    for one in choices
                ],
                "refusal": None,
            }
        offsets = []
        for one in choices:
            offsets.append(self._offsets.get(index, 0))
            self._offsets[index] = offsets[-1] + len(one.token[0])
        return {
            "tokens": [one.token[0] for one in choices],
            "token_logprobs": [one.token[1] for one in choices],
            "top_logprobs": [dict(one.top) if one.token[1] is not None else None for one in choices],
            "text_offset": offsets,
        }


def _token(text: str, logprob: float | None) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


def models(names: Sequence[str], created: int) -> bytes:
    """Returns the body of GET /v1/models."""
    data = [{"id": name, "object": "model", "created": created, "owned_by": "shoal"} for name in names]
    return msgspec.json.encode({"object": "list", "data": data})
