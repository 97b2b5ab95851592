"""The swarm's messages as people read them: puzzles and answers, parsed from the message text.

The text is a peer's or a relay's: it is parsed for display only, within limits. What cannot be parsed is left
out."""

from __future__ import annotations

import binascii
import json
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from app.node.record.records import GroupRow
from app.sapo.questions import Coordinates
from app.swarm.client.ledger import UNPACKED
from app.swarm.identity.identity import node_name
from app.swarm.wire.limits import BODY, LineMessage

_ITEMS = '"items":['
_decoder = json.JSONDecoder()


class _Body(msgspec.Struct):
    task: Coordinates
    completions: tuple[str, ...]
    rewards: tuple[int, ...]


def groups(message: LineMessage) -> list[GroupRow]:
    """The groups in a message; of a long one, those at its beginning."""
    if message.kind == "pub":
        wholes: Iterator[object] = _values(message.text.split(UNPACKED)[0], 0)
    elif message.kind == "batch" and (at := message.text.find(_ITEMS)) >= 0:
        wholes = _values(message.text, at + len(_ITEMS))
    else:
        return []
    return [row for whole in wholes if (row := _row(whole, message)) is not None]


def _values(text: str, at: int) -> Iterator[object]:
    """JSON values separated by commas, up to the first that is not valid."""
    while True:
        try:
            value, at = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield value
        if text[at : at + 1] != ",":
            return
        at += 1


def _row(envelope: Any, message: LineMessage) -> GroupRow | None:
    try:
        text = envelope["body"]
        if envelope.get("enc") == "zlib":
            text = zlib.decompressobj().decompress(binascii.a2b_base64(text), BODY)
        body = msgspec.json.decode(text, type=_Body)
        author = None if message.outgoing else node_name(bytes.fromhex(envelope["pk"]))
        if len(body.completions) != len(body.rewards):
            return None
    except (msgspec.MsgspecError, zlib.error, ValueError, KeyError, TypeError, AttributeError, UnicodeError):
        return None
    return GroupRow(
        round=0,
        at=message.at,
        coordinates=body.task,
        rewards_G=body.rewards,
        finished_G=(True,) * len(body.rewards),
        scores_G=tuple(map(float, body.rewards)),
        completions_G=body.completions,
        peer=author,
    )
