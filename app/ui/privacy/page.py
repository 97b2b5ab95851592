"""The page Privacy: the exact text that leaves this computer, and the switch that stops it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QFrame

from app.swarm.wire.limits import LoggedMessage
from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import size, tr, translated
from app.ui.privacy.group import Feed
from app.ui.privacy.message import MessageRow
from app.ui.theme import Theme
from app.ui.theme.theme import SMALL, mono
from app.ui.view import words
from app.ui.view.view import UpdateStage, View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Card, Elided, Label, Picture, button, card, column, open_path, row, rule
from app.ui.widgets.selecting import Segments, Switch

_MESSAGES = 20
BOTH, SENT, RECEIVED = "both", "sent", "received"


class Privacy(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Privacy"))
        self._view = View()
        self.add(self._answer_card())
        self._list = self._messages_card()
        self.add(self._list)
        self._door = Label("", wrap=True)
        self._door_card = card(
            column(Label(tr("Other programs on this computer"), "heading"), self._door, gap=6), padding=24
        )
        self.add(self._door_card)
        self.add(_never())
        self._updates = UpdatesCard(theme, actions)
        self.add(self._updates)
        self._where = Elided("", "soft")
        where = column(Label(tr("Where everything is kept"), "heading"), self._where, gap=4)
        kept = row(where, button(tr("Open folder"), lambda: open_path(self._view.home)), gap=16, fill=0)
        self.add(card(kept, padding=24))
        self.body.addStretch(1)

    def show_view(self, view: View) -> None:
        self._view = view
        answer, why = shared_summary(view)
        self._answer.say(answer)
        self._why.say(why)
        self._switch.show_on(not view.solo)
        self._cut.say(words.meeting_point_to_be() if view.solo else tr("Turn off to disconnect right away."))
        self._show_messages()
        door = view.models.door if view.models is not None else None
        self._door_card.setVisible(door is not None)
        if door is not None:
            said = tr(
                "A door is open at {address}. Programs on this computer that have the token can ask your "
                "model. No other computer can.",
                address=door.url,
            )
            self._door.say(said)
        self._where.say(view.home)
        self._updates.show_view(view)
        self._sign.recolour("good" if view.swarm is None else "own")

    def _answer_card(self) -> QFrame:
        self._sign = Picture(self.theme, "privacy", "good", 56, 56)
        self._answer, self._why = Label("", "hero", wrap=True), Label("", "lead", wrap=True)
        self._sign.setFixedWidth(64)
        self._switch = Switch(self.theme, tr("Learn with others"))
        self._switch.toggled.connect(self._turn)
        asked = Label(tr("What leaves this computer"), "caption")
        top = row(self._sign, column(asked, self._answer, self._why, gap=6), gap=18, fill=1)
        self._cut = Label("", "soft", wrap=True)
        said = column(Label(tr("Learn with others"), "strong"), self._cut, gap=3)
        stop = row(said, self._switch, gap=24, fill=0)
        return card(column(top, rule(), stop, gap=16), padding=28)

    def _messages_card(self) -> QFrame:
        self._which = Segments(
            [(BOTH, tr("All")), (SENT, tr("Sent")), (RECEIVED, tr("Received"))], tr("Which messages to show")
        )
        self._which.chosen.connect(lambda _: self._close_rows())
        self._feed = Feed(self._make_row, _MESSAGES)
        self._feed.newer.clicked.connect(self._close_rows)
        self._none = Label("", "soft", wrap=True)
        head = Bend(Label(tr("Last messages"), "heading"), 1, self._feed.newer, self._which)
        relay = tr("The relay is the computer that passes answers on between you and others.")
        inside = column(
            head, Label(relay, "soft", wrap=True), self._none, self._feed, gap=12, margins=(24, 20, 24, 20)
        )
        return card(inside, padding=None)

    def _make_row(self) -> MessageRow:
        made = MessageRow(self.ask)
        made.opened.connect(self._show_messages)
        return made

    def _show_messages(self) -> None:
        swarm, which = self._view.swarm, self._which.value
        self._list.setVisible(swarm is not None)
        reads = self._list.underMouse() or any(line.open for line in self._feed.rows)
        every: Sequence[LoggedMessage] = self._feed.steady(swarm.messages if swarm else (), reads)
        wanted = [one for one in reversed(every) if which == BOTH or one.outgoing is (which == SENT)]
        self._none.setVisible(not wanted)
        self._none.say(tr("No messages yet since you started learning."))
        for line, message in self._feed.place(wanted):
            line.say(message, self._view)

    def _close_rows(self) -> None:
        for line in self._feed.rows:
            line.close_again()
        self._feed.release()
        self._show_messages()

    def _turn(self, on: bool) -> None:
        self.ask.node.learn("others") if on else self.ask.alone()


def shared_summary(view: View) -> tuple[str, str]:
    """Returns what leaves this computer, in a few words, and a sentence that explains it."""
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
        return tr("Nothing right now"), translated(swarm.sentence) or tr("Looking for a swarm.")
    where = {"relay": swarm.relay_name or swarm.relay or "–", "name": swarm.name or "–"}
    if not swarm.given_ever and not any(one.outgoing and one.kind == "pub" for one in swarm.messages):
        answer = tr("No puzzle answers yet")
        why = tr("It signed in to {relay} with the made-up name {name}.", **where)
    else:
        answer = tr("Puzzle answers, {size} in the last hour", size=size(swarm.bytes_per_hour))
        why = tr("As text, to {relay}, signed with the made-up name {name}.", **where)
    return answer, " ".join(filter(None, (why, words.meeting_point(swarm))))


def _never() -> QFrame:
    facts = column(Label(tr("What is never sent"), "heading"), gap=12)
    for title, text in (
        (
            tr("Your files and what you type"),
            tr(
                "Shoal reads its own folder and the models that other apps downloaded. Your puzzle answers "
                "go out only after you say yes to the text."
            ),
        ),
        (
            tr("Your own questions"),
            tr("Your questions, their answers and what your model says to them stay here."),
        ),
        (
            tr("The model's weights"),
            tr("The model stays here, in a swarm too. Only puzzle answers are shared, as text."),
        ),
        (
            tr("Usage data"),
            tr("No telemetry, no account. Shoal checks for updates only if you want it to."),
        ),
    ):
        facts.addWidget(rule())
        facts.addLayout(column(Label(title, "strong"), Label(text, "soft", wrap=True), gap=3))
    return card(facts, padding=24)


class UpdatesCard(Card):
    """The card about checks for new versions, the only other request that Shoal may send unasked: its exact
    text, and its switch."""

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._why = Label("", "soft", wrap=True)
        self._request = Label("")
        self._request.setStyleSheet(f'font-family: "{mono(SMALL).family()}"; font-size: {SMALL}px;')
        self._box = card(row(self._request, 1, margins=(14, 10, 14, 10)), "quiet", None)
        self._switch = Switch(theme, tr("Check for updates once a day"))
        self._switch.toggled.connect(actions.updates.decide)
        said = column(Label(tr("Checking for updates"), "heading"), self._why, gap=4)
        head = row(said, self._switch, gap=24, fill=0)
        self.setLayout(column(head, self._box, gap=12, margins=(24, 20, 24, 20)))

    def show_view(self, view: View) -> None:
        now = view.update_view
        self._switch.show_on(now.wanted)
        installed = now.stage is not UpdateStage.CHECKOUT
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
