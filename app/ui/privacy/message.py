"""A message of the protocol in readable form: its purpose, whose answers it carries, and on request its exact
text.

The text comes from a peer or a relay: it is parsed for display only, within limits. What cannot be parsed is
left out."""

from __future__ import annotations

import binascii
import json
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QPlainTextEdit

from app.common.text import safe_text
from app.node.record.records import GroupRow
from app.sapo.questions import Coordinates
from app.swarm.client.status import UNPACKED
from app.swarm.identity.identity import node_name
from app.swarm.wire.limits import MAX_BODY_BYTES, LoggedMessage
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, size, tr
from app.ui.privacy.group import GroupCard, claim, family_title, gist, with_question
from app.ui.theme.theme import SMALL, mono
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Card, Elided, Label, button, clear_layout, column, row

_GROUPS = 8
"""Maximum groups of a message that are shown; the exact text has all of them."""


def meaning(message: LoggedMessage) -> str:
    """Returns the purpose of a message (app/swarm/PROTOCOL.md); for an unknown kind, its name."""
    return {
        "hello": tr("the relay introduces itself"),
        "auth": tr("signs in"),
        "welcome": tr("the relay lets this computer in"),
        "pub": tr("a puzzle with its answers"),
        "ok": tr("the relay has got it"),
        "sample": tr("asks for others' answers"),
        "recall": tr("asks for others' earlier answers"),
        "batch": tr("others' puzzles and answers"),
        "stats": tr("asks how the swarm is doing") if message.outgoing else tr("how the swarm is doing"),
        "report": tr("reports bad answers"),
        "receipts": tr("says whose answers helped"),
        "thanks": tr("a model learned from yours"),
        "taught": tr("your answers taught a model"),
        "erase": tr("asks the relay to delete its answers"),
        "erased": tr("the relay deleted its answers"),
        "progress": tr("tells the teacher how far it is"),
        "rest": tr("tells the teacher whether it's learning"),
        "questions": tr("asks for the teacher's questions"),
        "handout": tr("the teacher's questions"),
        "notice": tr("a word from the relay"),
        "err": tr("the relay says what was wrong"),
        "bye": tr("the relay says goodbye"),
    }.get(message.kind, message.kind)


class MessageRow(Card):
    """One message: its meaning, and on request its answers and the exact text. `opened` is emitted when the
    person opens or closes those."""

    opened = Signal()

    def __init__(self, ask: Actions) -> None:
        super().__init__("quiet")
        self._ask = ask
        self._way, self._kind, self._size = Label("", "chip"), Label("", "strong"), Label("", "faint")
        self._gist, self._inside = Elided("", "soft"), column(gap=10)
        self._open = button(tr("Word for word"), self._toggle, "flat")
        self._open.setCheckable(True)
        head = Bend(row(self._way, self._kind), 1, row(1, self._size, self._open))
        self.setLayout(column(head, self._gist, self._inside, gap=6, margins=(14, 8, 14, 8)))
        self.message: LoggedMessage | None = None
        self._read: list[GroupRow] = []
        self._shown: list[tuple[GroupRow, GroupCard]] = []

    @property
    def open(self) -> bool:
        return self._open.isChecked()

    def close_again(self) -> None:
        if self.open:
            self._open.click()

    def say(self, message: LoggedMessage, view: View) -> None:
        if message is not self.message and message != self.message:
            self.message, self._read = message, groups(message)
            self._way.look("chip" if message.outgoing else "chip-peer")
            self._way.say(tr("sent") if message.outgoing else tr("received"))
            self._kind.say(meaning(message))
            self.setAccessibleName(f"{self._way.text()}: {self._kind.text()}")
        self._size.say(f"{size(message.size)}  ·  {words.moment(message.at, time.time())}")
        texts = {one.coordinates: one.question for one in view.groups if one.question} | dict(view.questions)
        self._gist.tell("" if self._shown else _gist([with_question(texts, one) for one in self._read]))
        for group, part in self._shown:
            part.show_group(with_question(texts, group), claimed=True)

    def _toggle(self) -> None:
        """Shows or hides the answers and the exact text, in widgets made on demand: those of twenty messages
        would take more memory than the page."""
        clear_layout(self._inside)
        wanted = self._read[:_GROUPS] if self.open else []
        self._shown = [(group, GroupCard()) for group in wanted]
        for group, part in self._shown:
            part.show_group(group, claimed=True)
            self._inside.addWidget(part)
        if self.open and self.message is not None:
            self._inside.addWidget(_verbatim(safe_text(self.message.text)))
        self._ask.want_questions([group.coordinates for group in wanted])
        self._open.setText(tr("Hide") if self.open else tr("Word for word"))
        self.opened.emit()


def _gist(read: Sequence[GroupRow]) -> str:
    """Returns one line about the groups."""
    if len(read) == 1:
        group = read[0]
        return "  ·  ".join(filter(None, (family_title(group.family), claim(group), gist(group))))
    families = ", ".join(dict.fromkeys(family_title(group.family) for group in read))
    said = counted("{n} puzzle: {families}", "{n} puzzles: {families}", len(read), families=families)
    return said if read else ""


def _verbatim(text: str) -> QPlainTextEdit:
    made = QPlainTextEdit(text)
    made.setReadOnly(True)
    made.setAccessibleName(tr("The message, word for word"))
    made.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
    made.setStyleSheet(f'font-family: "{mono(SMALL).family()}"; font-size: {SMALL}px;')
    made.setFixedHeight(180)
    made.setTabChangesFocus(True)
    return made


_ITEMS = '"items":['
_decoder = json.JSONDecoder()


class _Body(msgspec.Struct):
    task: Coordinates
    completions: tuple[str, ...]
    rewards: tuple[int, ...]


def groups(message: LoggedMessage) -> list[GroupRow]:
    """Returns the groups in a message; of a long one, those at its beginning."""
    if message.kind == "pub":
        wholes: Iterator[object] = _values(message.text.split(UNPACKED)[0], 0)
    elif message.kind == "batch" and (at := message.text.find(_ITEMS)) >= 0:
        wholes = _values(message.text, at + len(_ITEMS))
    else:
        return []
    return [row for whole in wholes if (row := _row(whole, message)) is not None]


def _values(text: str, at: int) -> Iterator[object]:
    """Yields JSON values separated by commas, up to the first invalid one."""
    while True:
        try:
            value, at = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield value
        if text[at : at + 1] != ",":
            return
        at += 1


def _row(envelope: Any, message: LoggedMessage) -> GroupRow | None:
    try:
        text = envelope["body"]
        if envelope.get("enc") == "zlib":
            text = zlib.decompressobj().decompress(binascii.a2b_base64(text), MAX_BODY_BYTES)
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
