"""OpenAI's newer way of asking, /v1/responses (https://platform.openai.com/docs/api-reference/responses), for
text: a request becomes one for a chat, and the answer is written in the newer form, whole or as events.
Nothing is stored, so `previous_response_id` is refused."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from app.serve.messages import Began, Ended, Piece, Start
from app.serve.openai import (
    USUAL,
    ChatRequest,
    ChatTurn,
    JsonSchema,
    RequestError,
    ResponseFormat,
    Share,
    Temperature,
    TextPart,
    TokenLimit,
    UsualSampling,
)


class InputPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message; text is the only kind this model reads."""

    type: Literal["input_text", "output_text", "text"]
    text: str


class InputItem(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the conversation, a call of a tool or its result, or what an earlier answer came from: a
    program sends back all that was answered."""

    type: Literal["message", "function_call", "function_call_output", "reasoning"] = "message"
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: str | list[InputPart] | None = ""
    output: str | list[InputPart] = ""
    name: str = ""
    arguments: str = ""

    def turn(self) -> ChatTurn:
        if self.type == "function_call":
            call = {"function": {"name": self.name, "arguments": self.arguments}}
            return ChatTurn(role="assistant", tool_calls=[call])
        if self.type == "function_call_output":
            return ChatTurn(role="tool", content=_parts(self.output))
        return ChatTurn(role=self.role, content=_parts(self.content or ""))


def _parts(content: str | list[InputPart]) -> str | list[TextPart]:
    return content if isinstance(content, str) else [TextPart(type="text", text=one.text) for one in content]


class TextFormat(JsonSchema, frozen=True, kw_only=True):
    """The form of the answer, as the newer way writes it: the schema stands beside the type."""

    type: Literal["text", "json_object", "json_schema"]


class TextOptions(msgspec.Struct, frozen=True, kw_only=True):
    format: TextFormat | None = None


class ResponsesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Body of POST /v1/responses."""

    model: str
    input: str | Annotated[list[InputItem], msgspec.Meta(min_length=1, max_length=512)]
    instructions: str | None = None
    max_output_tokens: TokenLimit | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    stream: bool | None = None
    previous_response_id: str | None = None
    tool_choice: Any = None
    text: TextOptions | None = None

    def start(self, learned: bool = False, usual: UsualSampling = USUAL) -> Start:
        """Converts the request to a message for the model process. Raises RequestError."""
        if self.previous_response_id:
            sentence = "Nothing is stored here: send the whole conversation as input."
            raise RequestError(400, sentence, param="previous_response_id")
        items = [InputItem(content=self.input)] if isinstance(self.input, str) else self.input
        turns = [one.turn() for one in items if one.type != "reasoning"]
        if self.instructions:
            turns = [ChatTurn(role="system", content=self.instructions), *turns]
        form = self.text.format if self.text is not None else None
        return ChatRequest(
            model=self.model,
            messages=turns,
            max_tokens=self.max_output_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            stream=self.stream,
            tool_choice=self.tool_choice,
            response_format=None if form is None else ResponseFormat(type=form.type, json_schema=form),
        ).start(learned, usual)


class EventWriter:
    """Writes the answer to one request in the newer form."""

    def __init__(self, asked: ResponsesRequest) -> None:
        self._id, self._item = f"resp_{secrets.token_hex(12)}", f"msg_{secrets.token_hex(12)}"
        self._model, self._created = asked.model, int(time.time())
        self._prompt_tokens = self._number = 0
        self._text = ""

    def began(self, began: Began) -> None:
        self._prompt_tokens = began.tokens

    def full_response(self, replies: Sequence[Piece | Ended]) -> bytes:
        """Returns the response without streaming."""
        (end,) = (one for one in replies if isinstance(one, Ended))
        self._text = "".join(one.text for one in replies)
        return msgspec.json.encode(self._response("completed", end))

    def chunk(self, piece: Piece | Ended) -> bytes:
        """Returns the stream events of new text, and those of the end of the answer if it has ended."""
        said = b"" if self._number else self._opening()
        if piece.text:
            self._text += piece.text
            said += self._event("response.output_text.delta", **self._place, delta=piece.text)
        if isinstance(piece, Ended):
            item = {"output_index": 0, "item": self._message("completed")}
            said += self._event("response.output_text.done", **self._place, text=self._text)
            said += self._event("response.content_part.done", **self._place, part=self._part(self._text))
            said += self._event("response.output_item.done", **item)
            said += self._event("response.completed", response=self._response("completed", piece))
        return said

    def stream_end(self) -> bytes:
        return b""

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item, "output_index": 0, "content_index": 0}

    def _opening(self) -> bytes:
        begun = {**self._message("in_progress"), "content": []}
        return (
            self._event("response.created", response=self._response("in_progress"))
            + self._event("response.output_item.added", output_index=0, item=begun)
            + self._event("response.content_part.added", **self._place, part=self._part(""))
        )

    def _event(self, kind: str, **fields: Any) -> bytes:
        told = msgspec.json.encode({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        return f"event: {kind}\ndata: ".encode() + told + b"\n\n"

    def _part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": []}

    def _message(self, status: str) -> dict[str, Any]:
        parts = [self._part(self._text)]
        return {"id": self._item, "type": "message", "status": status, "role": "assistant", "content": parts}

    def _response(self, status: str, end: Ended | None = None) -> dict[str, Any]:
        cut = end is not None and end.reason == "length"
        found: dict[str, Any] = {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "model": self._model,
            "status": "incomplete" if cut else status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": [] if end is None else [self._message(status)],
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
        }
        if end is None:
            return found
        if end.work:
            thought = {"type": "summary_text", "text": end.work}
            reasoning = {"id": f"rs_{self._id[5:]}", "type": "reasoning", "summary": [thought]}
            found["output"] = [reasoning, *found["output"]]
        tokens = {"input_tokens": self._prompt_tokens, "output_tokens": end.tokens}
        details = {
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        found["usage"] = tokens | details | {"total_tokens": self._prompt_tokens + end.tokens}
        return found
