"""Privacy: what leaves this computer, word for word, and the switch that stops it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QTextOption
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from app.common.text import safe
from app.node.record.records import GroupRow
from app.swarm.client.ledger import Message
from app.ui.frame.frame import Actions, Page
from app.ui.language.spoken import spoken
from app.ui.language.texts import counted, number, size, tr
from app.ui.privacy.exchanged import groups
from app.ui.privacy.live import AnswerRow, asked, family_title, gist, merged, question, verdict, who
from app.ui.theme import Theme
from app.ui.theme.palette import SMALL
from app.ui.theme.theme import mono
from app.ui.view import words
from app.ui.view.updates import Stage
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.exchange import breakable
from app.ui.widgets.icons import drawn
from app.ui.widgets.pieces import Elided, Label, Segments, Switch, boxed, button, card, column, row, rule
from app.ui.widgets.stat import Stat

_MESSAGES = 20
_GROUPS, _ANSWERS = 8, 16
"""Of one message, that are shown to people; word for word there is more."""
BOTH, SENT, RECEIVED = "both", "sent", "received"


class Privacy(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("What leaves this computer"))
        self._view = View()
        self.add(self._answer_card())
        self._stats = [Stat() for _ in range(3)]
        self._figures = boxed(row(*self._stats, gap=12))
        self.add(self._figures)
        self._list = self._messages_card()
        self.add(self._list)
        self.add(_never())
        self._updates = UpdatesCard(theme, actions)
        self.add(self._updates)
        self._where = Elided("", "soft")
        kept = row(
            column(Label(tr("Where everything is kept"), "heading"), self._where, gap=4),
            button(tr("Open folder"), self._open),
            gap=16,
            fill=0,
        )
        self.add(card(kept, padding=24))
        self.body.addStretch(1)
        theme.changed.connect(self._draw)
        self._draw()

    def show_view(self, view: View) -> None:
        self._view = view
        answer, why = told(view)
        self._answer.say(answer)
        self._why.say(why)
        self._switch.show_on(not view.solo)
        self._cut.setVisible(not view.solo)
        self._show_figures()
        self._show_messages()
        self._where.say(view.home)
        self._updates.show_view(view)
        self._draw()

    def _answer_card(self) -> QFrame:
        self._sign, self._answer, self._why = (
            Label(""),
            Label("", "hero", wrap=True),
            Label("", "lead", wrap=True),
        )
        self._sign.setFixedWidth(64)
        self._switch = Switch(self.theme, tr("Learn with others"))
        self._switch.toggled.connect(self._turn)
        top = row(self._sign, column(self._answer, self._why, gap=6), gap=18, fill=1)
        self._cut = Label(tr("Turn off to disconnect right away."), "soft", wrap=True)
        said = column(Label(tr("Learn with others"), "strong"), self._cut, gap=3)
        stop = row(said, self._switch, gap=24, fill=0)
        return card(column(top, rule(), stop, gap=16), padding=28)

    def _messages_card(self) -> QFrame:
        self._messages = column(gap=8)
        self._rows: list[MessageRow] = []
        self._which = Segments(
            [(BOTH, tr("All")), (SENT, tr("Sent")), (RECEIVED, tr("Received"))], tr("Which messages to show")
        )
        self._which.chosen.connect(lambda _: self._close_rows())
        self._newer = button(tr("Show newer messages"), self._close_rows, "flat", tr("Closes what is open"))
        self._newer.hide()
        self._frozen: tuple[Message, ...] = ()
        self._none = Label("", "soft", wrap=True)
        head = Bend(Label(tr("Last messages"), "heading"), 1, self._newer, self._which)
        inside = column(head, self._none, self._messages, gap=12, margins=(24, 20, 24, 20))
        return card(inside, padding=None)

    def _show_figures(self) -> None:
        swarm = self._view.swarm
        self._figures.setVisible(swarm is not None)
        if swarm is None:
            return
        sent, received = swarm.bytes_per_hour, swarm.received_per_hour
        hour = tr("in the last hour")
        self._stats[0].say(tr("Sent"), "–" if sent is None else size(sent), hour)
        self._stats[1].say(tr("Received"), "–" if received is None else size(received), hour)
        waits = tr("{n} still to be sent", n=number(swarm.waiting)) if swarm.waiting else tr("all sent")
        self._stats[2].say(tr("Puzzles whose answers were shared"), number(swarm.given_ever), waits)

    def _show_messages(self) -> None:
        swarm, which = self._view.swarm, self._which.value
        self._list.setVisible(swarm is not None)
        every: tuple[Message, ...] = swarm.messages if swarm else ()
        reading = self._list.underMouse() or any(line.open for line in self._rows)
        if reading and self._frozen:  # nothing moves under somebody who reads, or aims at a button
            every = self._frozen
        newer = swarm is not None and every is not swarm.messages and every != swarm.messages
        self._newer.setVisible(newer)
        self._frozen = every
        wanted = [one for one in every if which == BOTH or one.outgoing is (which == SENT)][-_MESSAGES:]
        self._none.setVisible(not wanted)
        self._none.say(tr("No messages yet since you started learning."))
        while len(self._rows) < len(wanted):
            self._rows.append(MessageRow(self.theme, self.ask))
            self._rows[-1].opened.connect(self._show_messages)
            self._messages.addWidget(self._rows[-1])
        for at, line in enumerate(self._rows):
            line.setVisible(at < len(wanted))
            if at < len(wanted):
                line.say(wanted[-1 - at], self._view)

    def _close_rows(self) -> None:
        self._frozen = ()
        for line in self._rows:
            line.close_again()
        self._frozen = ()
        self._show_messages()

    def _turn(self, on: bool) -> None:
        self.ask.learn("others") if on else self.ask.alone()

    def _draw(self) -> None:
        nothing = self._view.swarm is None
        colour = self.theme.palette.good if nothing else self.theme.palette.own
        self._sign.setPixmap(drawn("privacy", colour, 56, 56))

    def _open(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(self._view.home))


def told(view: View) -> tuple[str, str]:
    """What leaves this computer, in a word or two, and why."""
    swarm = view.swarm
    doing = view.pack.doing if view.pack is not None else None
    if doing is not None and doing.stage in ("", "fetch") and not doing.offline:
        return tr("Requests for the engine's files"), tr(
            "You're downloading the engine. The server sees your IP address and what you download."
        )
    if view.solo and swarm is None:
        return tr("Nothing"), tr("Your model learns alone. Its process can't open a network connection.")
    if swarm is None or (view.ruling is None and not words.working(view)):
        return tr("Nothing right now"), tr(
            "Nothing runs. When you learn with others, only puzzle answers go out, as text."
        )
    if not swarm.connected:
        return tr("Nothing right now"), spoken(swarm.sentence) or tr("Looking for a swarm.")
    rate = size(swarm.bytes_per_hour) if swarm.bytes_per_hour is not None else None
    answer = tr("Answers to puzzles, {rate} an hour", rate=rate) if rate else tr("Answers to puzzles")
    return answer, tr(
        "As text, to {relay}, signed with the made-up name {name}.",
        relay=swarm.relay_name or swarm.relay or "–",
        name=swarm.name or "–",
    )


def _never() -> QFrame:
    facts = column(Label(tr("What is never sent"), "heading"), gap=12)
    for title, text in (
        (
            tr("Your files and what you type"),
            tr(
                "Shoal only reads its own folder. Your puzzle answers go out only after you say yes to "
                "the text."
            ),
        ),
        (
            tr("The model's weights"),
            tr("The model stays here, in a swarm too. Only puzzle answers travel, as text."),
        ),
        (
            tr("Usage data"),
            tr("No telemetry, no account. Shoal checks for updates only if you want it to."),
        ),
    ):
        facts.addWidget(rule())
        facts.addLayout(column(Label(title, "strong"), Label(text, "soft", wrap=True), gap=3))
    return card(facts, padding=24)


class UpdatesCard(QFrame):
    """The one other request that Shoal may make by itself, word for word, and its switch."""

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._why = Label("", "soft", wrap=True)
        self._request = Label("")
        self._request.setStyleSheet(f'font-family: "{mono(SMALL).family()}"; font-size: {SMALL}px;')
        self._box = card(row(self._request, 1, margins=(14, 10, 14, 10)), "quiet", None)
        self._switch = Switch(theme, tr("Check for updates once a day"))
        self._switch.toggled.connect(actions.updates.decide)
        head = row(
            column(Label(tr("Checking for updates"), "heading"), self._why, gap=4),
            self._switch,
            gap=24,
            fill=0,
        )
        self.setLayout(column(head, self._box, gap=12, margins=(24, 20, 24, 20)))

    def show_view(self, view: View) -> None:
        now = view.renewal
        self._switch.show_on(now.wanted)
        installed = now.stage is not Stage.CHECKOUT
        self._switch.setVisible(installed)
        self._box.setVisible(installed)
        self._request.say(now.request)
        if not installed:
            self._why.say(tr("Developer copy: updates come with git pull."))
        elif not now.wanted:
            self._why.say(tr("Off. Shoal asks {host} only when you press the button.", host=now.host))
        elif view.solo:
            self._why.say(tr("On, but never while it learns alone."))
        else:
            self._why.say(tr("On. Shoal asks {host} once a day while this window is open.", host=now.host))


def meaning(message: Message) -> str:
    """What a message of the protocol is for (app/swarm/PROTOCOL.md); of an unknown kind, its own name."""
    return {
        "hello": tr("the relay introduces itself"),
        "auth": tr("signs in"),
        "welcome": tr("the relay lets this computer in"),
        "pub": tr("a puzzle with its answers"),
        "ok": tr("the relay has got it"),
        "sample": tr("asks for others' answers"),
        "batch": tr("others' puzzles and answers"),
        "stats": tr("asks how the swarm is doing") if message.outgoing else tr("how the swarm is doing"),
        "report": tr("reports bad answers"),
        "receipts": tr("says whose answers helped"),
        "thanks": tr("a model learned from yours"),
        "notice": tr("a word from the relay"),
        "err": tr("the relay says what was wrong"),
        "bye": tr("the relay says goodbye"),
    }.get(message.kind, message.kind)


class MessageRow(QFrame):
    """One message: for people what it says, and on request word for word what went over the line. `opened`
    tells that somebody has begun, or ended, to read it."""

    opened = Signal()

    def __init__(self, theme: Theme, ask: Actions) -> None:
        super().__init__()
        self.setProperty("look", "quiet")
        self._theme, self._ask = theme, ask
        self._way, self._kind, self._size = Label("", "chip"), Label("", "strong"), Label("", "faint")
        self._gist, self._groups = Elided("", "soft"), column(gap=14)
        self._verbatim: QPlainTextEdit | None = None
        self._answers = button(tr("Show the answers"), self._toggle_answers, "flat")
        self._exact = button(tr("Word for word"), self._toggle_exact, "flat")
        for one in (self._answers, self._exact):
            one.setCheckable(True)
        self._inside = column(
            row(self._way, self._kind, 1, self._size),
            self._gist,
            self._groups,
            row(self._answers, self._exact, 1, gap=6),
            gap=6,
            margins=(14, 10, 14, 8),
        )
        self.setLayout(self._inside)
        self.message: Message | None = None
        self._read: list[GroupRow] = []
        self._shown: list[tuple[GroupRow, GroupPart]] = []

    @property
    def open(self) -> bool:
        return self._answers.isChecked() or self._exact.isChecked()

    def close_again(self) -> None:
        for one in (self._answers, self._exact):
            if one.isChecked():
                one.click()

    def say(self, message: Message, view: View) -> None:
        if message is not self.message and message != self.message:
            self.message, self._read = message, groups(message)
            self._way.look("chip" if message.outgoing else "chip-peer")
            self._way.say(tr("sent") if message.outgoing else tr("received"))
            self._kind.say(meaning(message))
            self.setAccessibleName(f"{self._way.text()}: {self._kind.text()}")
            self._answers.setVisible(bool(self._read))
        self._size.say(f"{size(message.size)}  ·  {words.moment(message.at, time.time())}")
        texts = {one.coordinates: one.question for one in view.groups if one.question} | dict(view.questions)
        self._gist.tell("" if self._shown else _gist([asked(texts, one) for one in self._read]))
        for group, part in self._shown:
            part.show_group(asked(texts, group))

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
        """The field is made when it is wanted: twenty of them would cost more memory than the page."""
        if self._verbatim is not None:
            self._verbatim.hide()
            self._verbatim.deleteLater()
            self._verbatim = None
        if self._exact.isChecked() and self.message is not None:
            self._verbatim = _verbatim(safe(self.message.text))
            self._inside.addWidget(self._verbatim)
        self.opened.emit()


class GroupPart(QWidget):
    """A question and the answers to it, as people read them."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._title, self._question = Label("", "strong"), Label("", wrap=True)
        self._question.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._rows = column(gap=6)
        self.setLayout(column(self._title, self._question, self._rows, gap=6))

    def show_group(self, group: GroupRow) -> None:
        author = "" if group.peer is None else who(group)
        self._title.say("  ·  ".join(filter(None, (family_title(group.family), author, _claimed(group)))))
        self._question.tell(breakable(safe(question(group))))
        if self._rows.count() == 0:
            for answer in merged(group)[:_ANSWERS]:
                line = AnswerRow(self._theme)
                line.say(*answer)
                self._rows.addWidget(line)


def _gist(read: Sequence[GroupRow]) -> str:
    """What groups are about, in a line."""
    if len(read) == 1:
        group = read[0]
        return "  ·  ".join(filter(None, (family_title(group.family), _claimed(group), gist(group))))
    families = ", ".join(dict.fromkeys(family_title(group.family) for group in read))
    said = counted("{n} puzzle: {families}", "{n} puzzles: {families}", len(read), families=families)
    return said if read else ""


def _claimed(group: GroupRow) -> str:
    """A peer's verdict is its own; this computer checks before it learns."""
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
