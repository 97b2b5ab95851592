"""Privacy: what leaves this computer, word for word, and the switch that stops it."""

from __future__ import annotations

import time

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame

from app.ui.model import Message, View
from app.ui.pages import words
from app.ui.pages.frame import Actions, Page
from app.ui.pages.live import plain
from app.ui.texts import size, tr
from app.ui.theme import Theme
from app.ui.theme.palette import SMALL
from app.ui.theme.theme import mono
from app.ui.widgets.icons import drawn
from app.ui.widgets.pieces import Elided, Label, button, card, column, row, rule

_MESSAGES = 20


class Privacy(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("What leaves this computer"))
        self._home = ""
        self._sign, self._answer, self._why = (
            Label(""),
            Label("", "hero", wrap=True),
            Label("", "lead", wrap=True),
        )
        self._sign.setFixedWidth(64)
        self._stop = button(tr("Stop it: learn alone"), lambda: actions.learn("alone"))
        top = row(self._sign, column(self._answer, self._why, gap=6), self._stop, gap=18)
        top.setStretch(1, 1)
        self.add(card(top, padding=28))
        self._messages = column(gap=8)
        self._rows: list[MessageRow] = []
        self._list = QFrame()
        self._list.setProperty("look", "card")
        self._list.setLayout(
            column(
                Label(tr("Last messages, word for word"), "heading"),
                self._messages,
                gap=12,
                margins=(24, 20, 24, 20),
            )
        )
        self.add(self._list)
        facts = column(Label(tr("What is never sent"), "heading"), gap=12)
        for title, text in (
            (
                tr("Your files and what you type"),
                tr("Shoal reads nothing but its own folder. It trains on puzzles that it makes up itself."),
            ),
            (
                tr("The model's weights"),
                tr(
                    "Neither weights nor gradients travel, not even in a swarm: only answers to generated "
                    "puzzles would, as text."
                ),
            ),
            (tr("Usage data"), tr("There is no telemetry, no account and no check for updates.")),
        ):
            facts.addWidget(rule())
            facts.addLayout(column(Label(title, "strong"), Label(text, "soft", wrap=True), gap=3))
        self.add(card(facts, padding=24))
        self._where = Elided("", "soft")
        kept = row(
            column(Label(tr("Where everything is kept"), "heading"), self._where, gap=4),
            button(tr("Open folder"), self._open),
            gap=16,
        )
        kept.setStretch(0, 1)
        self.add(card(kept, padding=24))
        self.body.addStretch(1)
        theme.changed.connect(self._draw)
        self._alone = True
        self._draw()

    def show_view(self, view: View) -> None:
        swarm = view.swarm
        self._alone = view.solo and swarm is None
        if swarm is None:
            self._answer.say(tr("Nothing"))
            self._why.say(
                tr(
                    "Your model learns alone, and the process that runs it refuses to open any network "
                    "connection."
                )
            )
        else:
            rate = size(swarm.bytes_per_hour) if swarm.bytes_per_hour is not None else None
            self._answer.say(
                tr("Answers to puzzles, {rate} an hour", rate=rate) if rate else tr("Answers to puzzles")
            )
            self._why.say(
                tr(
                    "As text, signed with the name {name}. Learning alone stops it at once.",
                    name=swarm.name or "–",
                )
            )
        messages: tuple[Message, ...] = swarm.messages[-_MESSAGES:] if swarm else ()
        self._list.setVisible(bool(messages))
        self._stop.setVisible(swarm is not None)
        while len(self._rows) < len(messages):
            self._rows.append(MessageRow())
            self._messages.addWidget(self._rows[-1])
        for at, line in enumerate(self._rows):
            line.setVisible(at < len(messages))
            if at < len(messages):
                line.say(messages[-1 - at])
        self._home = view.home
        self._where.say(view.home)
        self._draw()

    def _draw(self) -> None:
        colour = self.theme.palette.good if self._alone else self.theme.palette.own
        self._sign.setPixmap(drawn("privacy", colour, 56, 56))

    def _open(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(self._home))


class MessageRow(QFrame):
    """One message as it went over the line."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("look", "quiet")
        self._way, self._kind, self._size = Label("", "chip"), Label("", "strong"), Label("", "faint")
        self._text = Label("", wrap=True)
        self._text.setStyleSheet(f'font-family: "{mono(SMALL).family()}"; font-size: {SMALL}px;')
        self.setLayout(
            column(row(self._way, self._kind, 1, self._size), self._text, gap=6, margins=(14, 10, 14, 10))
        )

    def say(self, message: Message) -> None:
        self._way.look("chip" if message.outgoing else "chip-peer")
        self._way.say(tr("sent") if message.outgoing else tr("received"))
        self._kind.say(message.kind)
        self._size.say(f"{size(message.size)}  ·  {words.moment(message.at, time.time())}")
        self._text.say(plain(message.text))
