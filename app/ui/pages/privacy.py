"""Privacy: what leaves this computer, word for word, and the switch that stops it."""

from __future__ import annotations

import time

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame

from app.common.text import safe
from app.swarm.ledger import Message
from app.ui.model import View
from app.ui.pages import words
from app.ui.pages.exchange import breakable
from app.ui.pages.frame import Actions, Page
from app.ui.renewal import Stage
from app.ui.texts import number, size, tr
from app.ui.theme import Theme
from app.ui.theme.palette import SMALL
from app.ui.theme.theme import mono
from app.ui.widgets.icons import drawn
from app.ui.widgets.pieces import Elided, Label, Segments, Switch, boxed, button, card, column, row, rule
from app.ui.widgets.stat import Stat

_MESSAGES = 20
_FIRST_PART = 700
"""Characters of a long message that are shown before somebody asks for all."""
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
        said = column(
            Label(tr("Learn with others"), "strong"),
            Label(tr("Off: every connection is closed at once, and none is opened again."), "soft", wrap=True),
            gap=3,
        )
        stop = row(said, self._switch, gap=24, fill=0)
        return card(column(top, rule(), stop, gap=16), padding=28)

    def _messages_card(self) -> QFrame:
        self._messages = column(gap=8)
        self._rows: list[MessageRow] = []
        self._which = Segments(
            [(BOTH, tr("All")), (SENT, tr("Sent")), (RECEIVED, tr("Received"))], tr("Which messages to show")
        )
        self._which.chosen.connect(lambda _: self._show_messages())
        self._none = Label("", "soft", wrap=True)
        head = row(Label(tr("Last messages, word for word"), "heading"), 1, self._which)
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
        waits = tr("{n} still to be sent", n=number(swarm.waiting)) if swarm.waiting else tr("all handed over")
        self._stats[2].say(tr("Puzzles whose answers were shared"), number(swarm.given), waits)

    def _show_messages(self) -> None:
        swarm, which = self._view.swarm, self._which.value
        self._list.setVisible(swarm is not None)
        every: tuple[Message, ...] = swarm.messages if swarm else ()
        wanted = [one for one in every if which == BOTH or one.outgoing is (which == SENT)][-_MESSAGES:]
        self._none.setVisible(not wanted)
        self._none.say(tr("No message yet since learning was started."))
        while len(self._rows) < len(wanted):
            self._rows.append(MessageRow())
            self._messages.addWidget(self._rows[-1])
        for at, line in enumerate(self._rows):
            line.setVisible(at < len(wanted))
            if at < len(wanted):
                line.say(wanted[-1 - at])

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
            "The engine is being fetched, as you asked for. Whoever gives it out sees this computer's network "
            "address, and nothing of yours."
        )
    if view.solo and swarm is None:
        return tr("Nothing"), tr(
            "Your model learns alone, and the process that runs it refuses to open any network connection."
        )
    if swarm is None or (view.ruling is None and not words.working(view)):
        return tr("Nothing at the moment"), tr(
            "Nothing runs. When your model learns with others, answers to puzzles that Shoal made up go out as "
            "text."
        )
    if not swarm.connected:
        return tr("Nothing at the moment"), swarm.sentence or tr("Looking for a swarm.")
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
            tr("Shoal reads nothing but its own folder. It trains on puzzles that it makes up itself."),
        ),
        (
            tr("The model's weights"),
            tr(
                "Neither weights nor gradients travel, not even in a swarm: only answers to generated "
                "puzzles would, as text."
            ),
        ),
        (
            tr("Usage data"),
            tr(
                "There is no telemetry and no account. Whether there is a newer Shoal is asked only if "
                "you want it."
            ),
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
        self._switch = Switch(theme, tr("Look for new versions once a day"))
        self._switch.toggled.connect(actions.updates.decide)
        head = row(
            column(Label(tr("Looking for new versions"), "heading"), self._why, gap=4),
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
            self._why.say(tr("This copy of Shoal is a checkout: it asks nobody."))
        elif not now.wanted:
            self._why.say(tr("Off. {host} is asked only when you press a button that says so.", host=now.host))
        elif view.solo:
            self._why.say(tr("On, but never while Shoal learns alone."))
        else:
            self._why.say(tr("On. {host} is asked once a day, while this window is open.", host=now.host))


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
        "report": tr("tells of answers that were no good"),
        "notice": tr("a word from the relay"),
        "err": tr("the relay says what was wrong"),
        "bye": tr("the relay says good-bye"),
    }.get(message.kind, message.kind)


class MessageRow(QFrame):
    """One message as it went over the line."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("look", "quiet")
        self._way, self._kind, self._size = Label("", "chip"), Label("", "strong"), Label("", "faint")
        self._text = Label("", wrap=True)
        self._text.setStyleSheet(f'font-family: "{mono(SMALL).family()}"; font-size: {SMALL}px;')
        self._message: Message | None = None
        self._all = False
        self._more = button("", self._toggle, "flat")
        self.setLayout(
            column(
                row(self._way, self._kind, 1, self._size),
                self._text,
                row(self._more, 1),
                gap=6,
                margins=(14, 10, 14, 10),
            )
        )

    def say(self, message: Message) -> None:
        if message is not self._message and message != self._message:
            self._message, self._all = message, False
            self._way.look("chip" if message.outgoing else "chip-peer")
            self._way.say(tr("sent") if message.outgoing else tr("received"))
            self._kind.say(meaning(message))
            self._write(message)
        self._size.say(f"{size(message.size)}  ·  {words.moment(message.at, time.time())}")

    def _toggle(self) -> None:
        self._all = not self._all
        if self._message is not None:
            self._write(self._message)

    def _write(self, message: Message) -> None:
        text = breakable(safe(message.text))
        long = len(text) > _FIRST_PART
        self._text.say(text if self._all or not long else text[:_FIRST_PART] + " …")
        self._more.setVisible(long)
        self._more.setText(tr("Show less") if self._all else tr("Show all of it"))
