"""Turns JSON and JSON lines into a table: objects become rows, their fields columns.

Nested fields are named `outer.inner`; a list of objects makes a row of each, with the outer fields repeated, as
in SQuAD and exports of labelling tools. A chat becomes its first question and the answer to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product

import msgspec

from app.sapo.sets.bounds import MAX_CELLS, MAX_DEPTH, MAX_FROM_ONE, MAX_UNPACKED
from app.sapo.sets.question_set import SetError

_CHATS = ("messages", "conversations", "conversation", "dialog")
_ASKS, _REPLIES = {"user", "human", "prompter"}, {"assistant", "gpt", "model", "bot"}
Fields = Mapping[str, str]


def records(text: str, most: int) -> tuple[list[tuple[int, Fields]], list[int]] | None:
    """Returns up to `most` rows with their numbers, and the numbers of the lines that are no object or list;
    None if the text isn't JSON. Rows without names have the columns "A" and "B"."""
    decode = msgspec.json.Decoder(float_hook=str).decode
    try:
        whole = decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        items: list[tuple[int, object]] = []
        for number, line in lines[: 2 * most]:
            try:
                items.append((number, decode(line)))
            except (msgspec.DecodeError, RecursionError, ValueError):
                items.append((number, None))
        if sum(isinstance(item, dict | list) for _, item in items) * 2 < len(items) or not items:
            return None
    else:
        items = list(enumerate(_list(whole), 1))
    found: list[tuple[int, Fields]] = []
    bad: list[int] = []
    cells = characters = 0
    for number, item in items:
        if isinstance(item, list) and len(item) == 2 and not any(isinstance(one, dict | list) for one in item):
            item = {"A": item[0], "B": item[1]}
        before = len(found)
        for row in islice(_rows(item, 0), MAX_FROM_ONE) if isinstance(item, dict) else ():
            if row:
                found.append((number, row))
                cells += len(row)
                characters += sum(map(len, row.values()))
            if cells > MAX_CELLS or characters > MAX_UNPACKED:
                raise SetError("This JSON makes more cells than Shoal can hold. Take a part of it.")
        if len(found) == before:
            bad.append(number)
        if len(found) >= most:
            break
    return (found[:most], bad) if found else None


def _list(whole: object) -> list[object]:
    """Returns the list of rows in a document."""
    if isinstance(whole, list):
        return whole
    if not isinstance(whole, dict):
        return []
    if any(name in whole for name in _CHATS):
        return [whole]
    values = list(whole.values())
    lists = [value for value in values if isinstance(value, list) and value]
    if (
        len(lists) == len(values) > 1
        and len(set(map(len, lists))) == 1
        and not isinstance(lists[0][0], dict | list)
    ):
        return [dict(zip(whole, cells, strict=True)) for cells in zip(*lists, strict=True)]  # columns
    if rows := [value for value in lists if isinstance(value[0], dict | list)]:
        return max(rows, key=len)
    if any(isinstance(value, dict) for value in values) and all(isinstance(value, dict) for value in values):
        return list(values) if len(values) > 1 else _list(values[0])
    if len(values) > 3 and not any(isinstance(value, dict | list) for value in values):
        return [[key, value] for key, value in whole.items()]  # {question: answer}
    return [whole]


def _rows(item: Mapping[str, object], depth: int) -> Iterator[dict[str, str]]:
    flat: dict[str, str] = {}
    nested: list[list[dict[str, str]]] = []
    for name, value in item.items():
        if name in _CHATS and isinstance(value, list) and (turns := _chat(value)):
            flat |= turns
        elif name == "answers" and (texts := _texts(value)) is not None:
            flat[name] = " | ".join(dict.fromkeys(texts))
        elif isinstance(value, dict) and depth < MAX_DEPTH:
            inner = list(islice(_rows(value, depth + 1), MAX_FROM_ONE))
            nested.append([{f"{name}.{key}": cell for key, cell in row.items()} for row in inner])
        elif isinstance(value, list) and value and isinstance(value[0], dict) and depth < MAX_DEPTH:
            inner = [
                row for one in value if isinstance(one, dict) for row in islice(_rows(one, depth + 1), 500)
            ]
            nested.append([{f"{name}.{key}": cell for key, cell in row.items()} for row in inner])
        else:
            flat[name] = _text(value)
    for parts in islice(product(*(part for part in nested if part)), MAX_FROM_ONE):
        row = dict(flat)
        for part in parts:
            row |= part
        yield row


def _chat(turns: list[object]) -> dict[str, str]:
    """Returns the first question of a chat and the answer to it."""
    question = ""
    for turn in turns:
        if isinstance(turn, dict):
            role = str(turn.get("role", turn.get("from", ""))).casefold()
            said = _text(turn.get("content", turn.get("value", turn.get("text", ""))))
            if role in _ASKS and not question:
                question = said
            elif role in _REPLIES and question:
                return {"question": question, "answer": said}
    return {"question": question, "answer": ""} if question else {}


def _texts(value: object) -> list[str] | None:
    """Returns the answers of a SQuAD question, in either of its forms; None for anything else."""
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        value = value["text"]
    if not isinstance(value, list):
        return None
    return [_text(one["text"] if isinstance(one, dict) and "text" in one else one) for one in value[:50]]


def _text(value: object, depth: int = 0) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(_text(one, depth + 1) for one in value[:50]) if depth < MAX_DEPTH else "\u2026"
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return "" if value is None else str(value)
