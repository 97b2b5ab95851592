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
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.common.text import safe_text
from app.node.record.records import GroupRow
from app.sapo.questions import Coordinates
from app.swarm.client.status import UNPACKED
from app.swarm.identity.identity import node_name
from app.swarm.wire.limits import MAX_BODY_BYTES, LoggedMessage
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, size, tr
from app.ui.privacy.group_list import (
    author_name,
    distinct_answers,
    family_title,
    gist,
    question,
    verdict,
    with_question,
)
from app.ui.privacy.live import AnswerRow
from app.ui.theme import Theme
from app.ui.theme.theme import SMALL, mono
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.exchange import breakable
from app.ui.widgets.pieces import Card, Elided, Label, button, column, row

_GROUPS, _ANSWERS = 8, 16
"""Maximum groups of a message, and answers of a group, that are shown; the exact text has all of them."""


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
        "questions": tr("asks for the teacher's questions"),
        "handout": tr("the teacher's questions"),
        "notice": tr("a word from the relay"),
        "err": tr("the relay says what was wrong"),
        "bye": tr("the relay says goodbye"),
    }.get(message.kind, message.kind)


class MessageRow(Card):
    """One message: its meaning, and on request the exact text that was sent. `opened` is emitted when the
    person opens or closes that text."""

    opened = Signal()

    def __init__(self, theme: Theme, ask: Actions) -> None:
        super().__init__("quiet")
        self._theme, self._ask = theme, ask
        self._way, self._kind, self._size = Label("", "chip"), Label("", "strong"), Label("", "faint")
        self._gist, self._groups = Elided("", "soft"), column(gap=14)
        self._verbatim: QPlainTextEdit | None = None
        self._answers = button(tr("Show the answers"), self._toggle_answers, "flat")
        self._exact = button(tr("Word for word"), self._toggle_exact, "flat")
        for one in (self._answers, self._exact):
            one.setCheckable(True)
        head, below = row(self._way, self._kind, 1, self._size), row(self._answers, self._exact, 1, gap=6)
        self._inside = column(head, self._gist, self._groups, below, gap=6, margins=(14, 10, 14, 8))
        self.setLayout(self._inside)
        self.message: LoggedMessage | None = None
        self._read: list[GroupRow] = []
        self._shown: list[tuple[GroupRow, GroupPart]] = []

    @property
    def open(self) -> bool:
        return self._answers.isChecked() or self._exact.isChecked()

    def close_again(self) -> None:
        for one in (self._answers, self._exact):
            if one.isChecked():
                one.click()

    def say(self, message: LoggedMessage, view: View) -> None:
        if message is not self.message and message != self.message:
            self.message, self._read = message, groups(message)
            self._way.look("chip" if message.outgoing else "chip-peer")
            self._way.say(tr("sent") if message.outgoing else tr("received"))
            self._kind.say(meaning(message))
            self.setAccessibleName(f"{self._way.text()}: {self._kind.text()}")
            self._answers.setVisible(bool(self._read))
        self._size.say(f"{size(message.size)}  ·  {words.moment(message.at, time.time())}")
        texts = {one.coordinates: one.question for one in view.groups if one.question} | dict(view.questions)
        self._gist.tell("" if self._shown else _gist([with_question(texts, one) for one in self._read]))
        for group, part in self._shown:
            part.show_group(with_question(texts, group))

    def _toggle_answers(self) -> None:
        wanted = self._read[:_GROUPS] if self._answers.isChecked() else []
        for _, part in self._shown:
            part.hide()
            part.deleteLater()
        self._shown = [(group, GroupPart(self._theme)) for group in wanted]
        for group, part in self._shown:
            part.show_group(group)
            self._groups.addWidget(part)
        self._ask.want_questions([group.coordinates for group, _ in self._shown])
        self._answers.setText(tr("Hide the answers") if wanted else tr("Show the answers"))
        self.opened.emit()

    def _toggle_exact(self) -> None:
        """Shows or hides the exact text, in a field made on demand: twenty would take more memory than the
        page."""
        if self._verbatim is not None:
            self._verbatim.hide()
            self._verbatim.deleteLater()
            self._verbatim = None
        if self._exact.isChecked() and self.message is not None:
            self._verbatim = _verbatim(safe_text(self.message.text))
            self._inside.addWidget(self._verbatim)
        self.opened.emit()


class GroupPart(QWidget):
    """A question and its answers in readable form."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._title, self._question = Label("", "strong"), Label("", wrap=True)
        self._question.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._rows = column(gap=6)
        self.setLayout(column(self._title, self._question, self._rows, gap=6))

    def show_group(self, group: GroupRow) -> None:
        author = "" if group.peer is None else author_name(group)
        self._title.say("  ·  ".join(filter(None, (family_title(group.family), author, _claimed(group)))))
        self._question.tell(breakable(safe_text(question(group))))
        if self._rows.count() == 0:
            for answer in distinct_answers(group)[:_ANSWERS]:
                line = AnswerRow(self._theme)
                line.say(*answer)
                self._rows.addWidget(line)


def _gist(read: Sequence[GroupRow]) -> str:
    """Returns one line about the groups."""
    if len(read) == 1:
        group = read[0]
        return "  ·  ".join(filter(None, (family_title(group.family), _claimed(group), gist(group))))
    families = ", ".join(dict.fromkeys(family_title(group.family) for group in read))
    said = counted("{n} puzzle: {families}", "{n} puzzles: {families}", len(read), families=families)
    return said if read else ""


def _claimed(group: GroupRow) -> str:
    """Returns the verdict; that of a peer as its own claim, because this computer checks it before learning."""
    said = verdict(group)
    return said if group.peer is None else tr("{verdict}, it says", verdict=said)


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
