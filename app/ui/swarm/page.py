"""The page Swarm: who else is learning, the state of the connection, and what was sent and received; and a card
for a private swarm, with the six words that let others join it."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from app.models.catalogue import title
from app.node.record.snapshot import SwarmView
from app.swarm.client.status import Peer
from app.swarm.intake.reasons import IntakeReason
from app.ui.charts.table import Column, Table, TableRows
from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import ago, counted, family_titles, number, size, tr, translated
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.view.words import meeting_point, meeting_point_to_be
from app.ui.widgets.bend import Bend, Stat, stats_row
from app.ui.widgets.invite import InviteField, class_words, saving_error
from app.ui.widgets.pieces import (
    Card,
    CopyButton,
    Empty,
    Label,
    boxed,
    button,
    card,
    column,
    row,
    search,
    stack,
)

_MODULE, _QUIET = 4, 4
"""Pixels of a QR code's module, and the width of its quiet zone in modules, as the standard requires."""
HIDDEN = "•••••  •••••  •••••  •••••  •••••  •••••"


class PrivateCard(Card):
    """The card of a private swarm. `join` gets six words with a valid checksum. It may raise OSError."""

    def __init__(self, theme: Theme, join: Callable[[str], None]) -> None:
        super().__init__()
        self._join, self._text = join, ""
        self._why = Label("", "soft", wrap=True)
        self._complaint = Label("", "bad", wrap=True)
        self._complaint.hide()
        self._make_words = button(tr("Make new words"), self._make, hint=tr("Starts a private swarm"))
        self._words = Label(HIDDEN, "strong", wrap=True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._qr = QrCode(tr("The six words as a QR code"))
        self._show = button(tr("Show the words"), self._toggle)
        self._copy = CopyButton(theme, tr("Copy the words"), lambda: self._text)
        self._again = button(tr("Join again"), lambda: self._try(self._text), "primary")
        doing = Bend(self._show, self._copy, self._again, 1, gap=8)
        shown = column(self._words, boxed(doing), gap=10)
        shown.addStretch(1)
        self._told = boxed(row(shown, self._qr, gap=24, fill=0))
        said = column(Label(tr("Private swarm"), "heading"), self._why, gap=4)
        head = row(said, self._make_words, gap=16, fill=0)
        self.setLayout(column(head, self._told, self._complaint, gap=10, margins=(20, 16, 20, 16)))
        self.show_words("", joined=False)

    def show_words(self, words: str, joined: bool) -> None:
        """Shows the words of this computer's private swarm, if it has one; `joined`: it is connected now."""
        if words != self._text:
            self._text = words
            self._put(False)
        self._make_words.setVisible(not words)
        self._told.setVisible(bool(words))
        self._again.setVisible(not joined)
        self._why.say(
            tr("Anyone who has these words can join. Share them only with people you trust.")
            if words
            else tr("Learn only with people you trust. Give them six new words; they enter them above.")
        )

    def _toggle(self) -> None:
        self._put(self._words.text() == HIDDEN)

    def _put(self, shown: bool) -> None:
        """Shows or hides words and code, which only invited people may see."""
        shown = shown and bool(self._text)
        self._words.say(self._text if shown else HIDDEN)
        self._qr.show_text(self._text if shown else "")
        self._qr.setVisible(shown)
        self._show.setText(tr("Hide the words") if shown else tr("Show the words"))

    def _make(self) -> None:
        from app.swarm.invite.private import new_words

        self._try(new_words())
        self._put(True)

    def _try(self, words: str) -> None:
        self._complaint.hide()
        try:
            self._join(words)
        except OSError as error:
            self._complaint.tell(saving_error(error))
        else:
            self.show_words(words, joined=True)


class QrCode(QWidget):
    """A text as a QR code, dark on light in every theme, because many cameras read no other. `name` is its name
    for screen readers."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._modules: list[bytes] = []
        self.setAccessibleName(name)
        self.setToolTip(name)

    def show_text(self, text: str) -> None:
        """Shows the code of a text; no code for an empty text."""
        import segno  # 150 ms, that only a private swarm costs

        lines = segno.make_qr(text).matrix_iter(border=_QUIET) if text else ()
        self._modules = [bytes(line) for line in lines]
        self.setFixedSize(len(self._modules) * _MODULE, len(self._modules) * _MODULE)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor("white"))
        for top, line in enumerate(self._modules):
            for left, dark in enumerate(line):
                if dark:
                    painter.fillRect(left * _MODULE, top * _MODULE, _MODULE, _MODULE, QColor("black"))
        painter.end()


_KINDS = 3
"""Maximum kinds of puzzles named in a line."""


class SwarmPage(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Swarm"))
        stays = tr("Leaves the swarm. What it learned stays.")
        self._leave = button(tr("Learn alone"), actions.alone, hint=stays)
        self.header.addWidget(self._leave)
        self._relay, self._class = RelayCard(theme), ClassCard(actions)
        self._private = PrivateCard(theme, actions.join_private)
        self._stats = [Stat() for _ in range(4)]
        rows = TableRows(
            [
                Column(tr("Peer"), lambda peer: peer.name, wide=True),
                Column(tr("Model"), lambda peer: tr(title(peer.model)) if peer.model else "–", wide=True),
                Column(tr("Seen"), lambda one: ago(one.seen_at, time.time()), lambda one: one.seen_at or 0.0),
                Column(tr("Received"), lambda one: number(one.groups), lambda one: one.groups, right=True),
                Column(tr("Learned from"), learned_from, lambda one: one.learned),
            ],
            sort=3,
        )
        self._table = Table(rows, tr("Peers"))
        self._table.set_widths(0, 0, 100, 90, 240)
        self._helped, self._taught = Label("", "strong"), Label("", "strong", wrap=True)
        self._find = search(tr("Search peers"), rows.search, width=220)
        self._count = Label("", "heading")
        self._nobody = Empty(theme, "swarm", "", "")
        head = row(Bend(self._count, 1, self._find), margins=(18, 14, 14, 4))
        self._peers = stack(self._nobody, self._table)
        table = card(column(head, self._peers, gap=4, margins=(2, 0, 2, 10), fill=1), padding=None)
        parts = (self._class, self._relay, stats_row(*self._stats), self._helped, self._taught, table)
        self._alone, self._together = Alone(actions), boxed(column(*parts, gap=16, fill=5))
        self._rest = QWidget()
        for part in (self._alone, self._private):
            self.add(part)
        self.body.insertWidget(1, self._together, 1)
        self.add(self._rest, 1)

    def show_view(self, view: View) -> None:
        swarm = view.swarm
        if swarm is not None and (focused := QApplication.focusWidget()) and self._alone.isAncestorOf(focused):
            self.window().setFocus()  # Qt would move it to the next button, which does something else
        for part in (self._alone, self._rest):
            part.setVisible(swarm is None)
        self._together.setVisible(swarm is not None)
        self._leave.setVisible(swarm is not None and not swarm.in_class)  # a class has a button of its own
        self._alone.show_view(view)
        self._private.setVisible(swarm is None or bool(view.words))
        self._private.show_words(view.words, joined=swarm is not None)
        if swarm is None:
            return
        self._relay.setVisible(not swarm.lesson_over)
        self._relay.show_swarm(swarm)
        heading, sentence = waiting_for(swarm)
        self._nobody.title.say(heading)
        self._nobody.sentence.say(sentence)
        self._class.show_swarm(swarm)
        peers = swarm.peers
        shared = counted("{n} peer shared answers", "{n} peers shared answers", len(peers))
        self._count.say(shared if peers else tr("Peers"))
        helped, receipts = swarm.helped, bool(view.rules.get("receipts", True))
        self._helped.setVisible(helped > 0 and receipts)
        self._helped.say(
            counted("Your answers helped {n} model today.", "Your answers helped {n} models today.", helped)
        )
        self._taught.setVisible(bool(swarm.taught) and receipts)
        self._taught.say(taught(swarm))
        self._peers.setCurrentIndex(1 if peers else 0)
        self._find.setVisible(len(peers) > 8)
        self._table.show_rows(peers)
        online, given, taken, traffic = self._stats
        others = counted("other in this swarm", "others in this swarm", swarm.online)
        online.say(tr("Online now"), number(swarm.online), others)
        on_way = counted("{n} on its way", "{n} on their way", swarm.waiting)
        arrived = tr("puzzles with their answers")
        given.say(tr("Shared"), number(swarm.given_ever), on_way if swarm.waiting else arrived)
        refused = sum(swarm.refused.values()) - swarm.refused.get(IntakeReason.SEEN.value, 0)
        turned = (
            counted("{n} turned away", "{n} turned away", refused) if refused else tr("puzzles checked here")
        )
        why = why_nothing(swarm) if not view.taken else ""
        taken.say(tr("Learned from"), number(view.taken), why or turned)
        got = tr("in the last hour; {size} received", size=size(swarm.received_per_hour))
        traffic.say(tr("Data sent"), size(swarm.bytes_per_hour), got)


def learned_from(peer: Peer) -> str:
    """Returns how many of a peer's puzzles this model learned from, or 0 and why."""
    return number(peer.learned) + (f": {translated(peer.unused)}" if peer.unused else "")


def why_nothing(swarm: SwarmView) -> str:
    """Returns the sentence that says why nothing was learned from what came: of the peer that sent most, or the
    reason for which the latest was turned away; empty while nothing came."""
    if swarm.peers:
        return translated(max(swarm.peers, key=lambda one: one.groups).unused)
    latest = next(reversed(swarm.refused), "")
    return next((translated(one.sentence) for one in IntakeReason if one == latest), "")


def taught(swarm: SwarmView) -> str:
    """Returns a sentence on what other models say they learned from this one: the families named most often."""
    most = sorted(swarm.taught.items(), key=lambda one: (-one[1], one[0]))
    titles = family_titles(name for name, _ in most[:_KINDS])
    said = [f"{family} ({number(count)})" for family, (_, count) in zip(titles, most, strict=False)]
    if len(most) > _KINDS:
        said.append(counted("{n} other kind", "{n} other kinds", len(most) - _KINDS))
    return counted(
        "{n} model says yours taught it: {kinds}.",
        "{n} models say yours taught them: {kinds}.",
        swarm.pupils,
        kinds=", ".join(said),
    )


def waiting_for(swarm: SwarmView) -> tuple[str, str]:
    """Returns the texts shown while no peer has sent anything: whether anyone is there, and what comes next."""
    if swarm.lesson_over:
        return tr("No answers came in this lesson"), ""
    if swarm.online:
        online = counted("{n} other is online", "{n} others are online", swarm.online)
        return online, tr("They appear here with the first answer they share.")
    nobody = tr("No one else is here yet")
    if swarm.invite:
        return nobody, tr("Share the invite above. Everyone who joins appears here.")
    return nobody, tr("Everyone who joins appears here.")


class Alone(Card):
    """Shown while not in a swarm: how to join one, and what it means."""

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        self._actions = actions
        self._address = InviteField(tr("Join"))
        self._address.setMinimumWidth(240)
        self._address.returnPressed.connect(self._join)
        join = button(tr("Join"), self._join, "primary")
        find = button(tr("Find or start a swarm on this network"), lambda: actions.join(""))
        self._state, self._about = Label("", "heading"), Label("", "soft", wrap=True)
        said = column(self._state, self._about, gap=4)
        ask = boxed(Bend(self._address, join, find, gap=8))
        opens = Label(meeting_point_to_be(), "faint", wrap=True)
        lines = (said, ask, self._address.complaint, self._address.words, opens)
        self.setLayout(column(*lines, gap=10, margins=(20, 16, 20, 16)))

    def show_view(self, view: View) -> None:
        if view.solo:
            self._state.say(tr("Your model learns alone"))
            about = tr(
                "Nothing leaves this computer. In a swarm, your model also learns from other people's "
                "models. They swap puzzle answers, as plain text."
            )
        else:
            self._state.say(tr("Your model learns with others"))
            about = tr("Nothing runs right now. It joins its swarm again when you start learning.")
        self._about.say(about)

    def _join(self) -> None:
        self._address.join_entered(self._actions.join, self._actions.join_private)


class ClassCard(Card):
    """The card of a class: who sees what, and what the teacher may do. The person can leave at any time."""

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        self._state, self._about = Label("", "strong"), Label("", "soft", wrap=True)
        self._again = button(tr("Join again"), actions.rejoin)
        doing = boxed(Bend(self._again, button(tr("Leave the class"), actions.alone), gap=8))
        said = column(self._state, self._about, gap=4)
        self.setLayout(row(said, doing, gap=16, margins=(20, 14, 16, 14), fill=0))
        self.hide()

    def show_swarm(self, swarm: SwarmView) -> None:
        self.setVisible(swarm.in_class)
        self._again.setVisible(swarm.lesson_over)
        about = class_words()
        if swarm.lesson_over:
            state = translated(swarm.sentence) or tr("The lesson has ended.")
            about = tr(
                "What your model learned stays, and so do questions you added. It learns alone "
                "from now on, and sends nothing."
            )
        elif swarm.class_paused:
            state = tr("The teacher has paused everyone.")
        elif swarm.connected:
            state = tr("You're in a class.")
        else:
            state = tr("Looking for your class")
        self._state.say(state)
        self._about.say(about)


class RelayCard(Card):
    """The card of the connection: its state, the relay, the name used there, and how to invite others."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._state, self._sentence = Label("", "good"), Label("", "soft", wrap=True)
        self._name = Label("", "faint", wrap=True)
        self._invite = QLineEdit()
        self._invite.setReadOnly(True)
        self._invite.setAccessibleName(tr("Invite"))
        self._invite.setMinimumWidth(250)
        self._copy = CopyButton(theme, tr("Copy invite"), self._invite.text)
        state = row(self._state, self._sentence, gap=10, fill=1)
        invite = row(self._invite, self._copy, gap=12)
        inside = Bend(column(state, self._name, gap=4), invite, gap=12, least=720)
        for at in range(2):
            inside.setStretch(at, 1)
        self._open = Label("", "soft", wrap=True)
        self.setLayout(column(inside, self._open, gap=8, margins=(20, 14, 16, 14)))

    def show_swarm(self, swarm: SwarmView) -> None:
        self._state.look("good" if swarm.connected else "warn")
        self._state.say(tr("Connected") if swarm.connected else tr("Not connected"))
        there = swarm.connected and swarm.relay_name
        said = translated(swarm.sentence)
        self._sentence.say(
            tr("to the relay at {address}, which passes answers on", address=swarm.relay_name)
            if there
            else said
        )
        self._state.setToolTip("\n".join(filter(None, (said, swarm.relay))))
        self._name.say(tr("Others see you as {name}.", name=swarm.name) if swarm.name else "")
        self._open.tell(meeting_point(swarm))
        self._invite.setVisible(bool(swarm.invite))
        self._copy.setVisible(bool(swarm.invite))
        if self._invite.text() != swarm.invite:
            self._invite.setText(swarm.invite)
            self._invite.setCursorPosition(0)
