"""The newer way of asking: requests become those of a chat, and answers are written whole and as events."""

from __future__ import annotations

import json

import pytest

from app.serve.messages import BASE_SIDE, Began, Ended, Piece
from app.serve.openai import RequestError, parse_request
from app.serve.responses import EventWriter, ResponsesRequest


def asked(**fields: object) -> ResponsesRequest:
    return parse_request(json.dumps({"model": "mails", "input": "Lunch?", **fields}).encode(), ResponsesRequest)


def test_a_text_instructions_and_parts_become_turns() -> None:
    parts = [{"role": "user", "content": [{"type": "input_text", "text": "Lunch?"}]}]
    for one in (asked(), asked(input=parts)):
        assert one.start().prompts == [[{"role": "user", "content": "Lunch?"}]]
    start = asked(instructions="Be brief.", max_output_tokens=4.0, temperature=0).start(learned=True)
    assert start.prompts[0][0] == {"role": "system", "content": "Be brief."}
    assert (start.side, start.max_tokens, start.temperature) == (
        "mails",
        4,
        0,
    ) and asked().start().side == BASE_SIDE


def test_what_was_answered_can_be_sent_back_and_an_answer_may_have_a_form() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    back = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Soup."}]},
        call,
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "At one."}]},
    ]
    turns = asked(input=[{"role": "user", "content": "Lunch?"}, *back]).start().prompts[0]
    assert [turn["content"] for turn in turns] == [
        "Lunch?",
        "Soup.",
        '[{"name":"f","arguments":"{}"}]',
        "At one.",
    ]
    form = {"type": "json_schema", "name": "x", "schema": {"enum": ["soup"]}}
    assert "soup" in asked(text={"format": form}).start().grammar
    assert not asked(text={"format": {"type": "text"}, "verbosity": "low"}).start().grammar


@pytest.mark.parametrize("fields", [{"previous_response_id": "resp_1"}, {"tool_choice": "required"}])
def test_what_cannot_be_kept_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(RequestError) as refused:
        asked(**fields).start()
    assert refused.value.status == 400


def test_the_whole_answer_has_its_text_and_what_came_before_it() -> None:
    writer = EventWriter(asked())
    writer.began(Began(number=1, tokens=7))
    told = json.loads(
        writer.full_response([Ended(number=1, index=0, text="42", reason="stop", tokens=5, work="6*7=42")])
    )
    thought, message = told["output"]
    assert (thought["type"], thought["summary"][0]["text"]) == ("reasoning", "6*7=42")
    assert message["content"][0]["text"] == "42" and told["status"] == "completed"
    assert told["usage"]["total_tokens"] == 12


def test_a_stream_is_numbered_events_from_the_beginning_to_the_end() -> None:
    writer = EventWriter(asked(stream=True))
    writer.began(Began(number=1, tokens=7))
    raw = writer.chunk(Piece(number=1, index=0, text="ha"))
    raw += writer.chunk(Ended(number=1, index=0, text="m", reason="length", tokens=2)) + writer.stream_end()
    events = [json.loads(block.partition("data: ")[2]) for block in raw.decode().strip().split("\n\n")]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert events[5]["text"] == "ham" and events[-1]["response"]["status"] == "incomplete"
