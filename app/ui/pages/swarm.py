"""Swarm: who else is learning, how the link stands, and what went to and fro."""

from __future__ import annotations

import time

from PySide6.QtWidgets import QApplication, QFrame, QLineEdit, QStackedWidget, QWidget

from app.ui.model import Peer, Swarm, View
from app.ui.pages.frame import Actions, Page
from app.ui.texts import ago, counted, number, size, tr
from app.ui.theme import Theme
from app.ui.widgets.pieces import Elided, Empty, IconButton, Label, button, column, row
from app.ui.widgets.stat import Stat
from app.ui.widgets.table import Column, Rows, Table


class SwarmPage(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Swarm"))
        self._stack = QStackedWidget()
        self._stack.addWidget(Alone(theme, actions))
        self._leave = button(
            tr("Learn alone"),
            lambda: actions.learn("alone"),
            hint=tr("Leaves the swarm; nothing learned is lost"),
        )
        self.header.addWidget(self._leave)
        self._relay = RelayCard(theme)
        self._stats = [Stat() for _ in range(4)]
        rows = Rows(
            [
                Column(tr("Peer"), lambda peer: peer.name, wide=True),
                Column(tr("Model"), lambda peer: peer.model or "–", wide=True),
                Column(
                    tr("Seen"), lambda peer: ago(peer.seen_at, time.time()), lambda peer: peer.seen_at or 0.0
                ),
                Column(
                    tr("Learned from"), lambda peer: number(peer.groups), lambda peer: peer.groups, right=True
                ),
            ],
            sort=3,
        )
        self._table = Table(rows, tr("Peers"))
        self._table.set_widths(0, 0, 130, 130)
        self._find = QLineEdit()
        self._find.setPlaceholderText(tr("Search peers"))
        self._find.setAccessibleName(tr("Search peers"))
        self._find.setClearButtonEnabled(True)
        self._find.setFixedWidth(220)
        self._find.textChanged.connect(rows.search)
        self._count = Label("", "heading")
        self._nobody = Empty(
            theme,
            "swarm",
            tr("Nobody else is here yet"),
            tr("Share the invite above, and those who use it appear in this list."),
        )
        table = QFrame()
        table.setProperty("look", "card")
        head = row(self._count, 1, self._find, margins=(18, 14, 14, 4))
        inside = column(head, gap=4, margins=(2, 0, 2, 10))
        self._peers = QStackedWidget()
        self._peers.addWidget(self._nobody)
        self._peers.addWidget(self._table)
        inside.addWidget(self._peers, 1)
        table.setLayout(inside)
        full = QWidget()
        whole = column(self._relay, row(*self._stats, gap=16), table, gap=16)
        whole.setStretch(2, 1)
        full.setLayout(whole)
        self._stack.addWidget(full)
        self.add(self._stack, 1)

    def show_view(self, view: View) -> None:
        swarm = view.swarm
        self._stack.setCurrentIndex(0 if swarm is None else 1)
        self._leave.setVisible(swarm is not None)
        if swarm is None:
            return
        self._relay.show_swarm(swarm)
        peers: tuple[Peer, ...] = swarm.peers
        self._count.say(counted("{n} peer", "{n} peers", len(peers)))
        self._peers.setCurrentIndex(1 if peers else 0)
        self._find.setVisible(len(peers) > 8)
        self._table.show_rows(peers)
        online, given, taken, effect = self._stats
        online.say(tr("Online now"), number(swarm.online), tr("others in this swarm"))
        on_way = (
            counted("{n} on its way", "{n} on their way", swarm.waiting)
            if swarm.waiting
            else tr("all acknowledged")
        )
        given.say(tr("Given"), number(swarm.given), on_way)
        refused = sum(swarm.refused.values())
        turned = (
            counted("{n} turned away after checking", "{n} turned away after checking", refused)
            if refused
            else tr("every one checked here")
        )
        taken.say(tr("Taken"), number(swarm.taken), turned)
        if swarm.helped is not None:
            effect.say(tr("Your effect"), number(swarm.helped), tr("models learned from yours"))
        else:
            rate = size(swarm.bytes_per_hour) if swarm.bytes_per_hour is not None else "–"
            effect.say(
                tr("Traffic"),
                rate,
                tr("an hour") if swarm.bytes_per_hour is not None else tr("not measured yet"),
            )


class Alone(QWidget):
    """Before there is a swarm: how to come to one, and what that means."""

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._actions = actions
        self._address = QLineEdit()
        self._address.setPlaceholderText(tr("Invite link or address"))
        self._address.setAccessibleName(tr("Invite link or address"))
        self._address.setFixedWidth(300)
        self._address.returnPressed.connect(self._join)
        self._complaint = Label("", "bad", wrap=True)
        self._complaint.setFixedWidth(400)
        self._complaint.hide()
        join = button(tr("Join"), self._join, "primary")
        find = button(tr("Find one on this network, or host one here"), lambda: actions.join(""), "flat")
        ask = QWidget()
        ask.setLayout(column(row(self._address, join, gap=8), self._complaint, row(1, find, 1), gap=10))
        empty = Empty(
            theme,
            "swarm",
            tr("You are learning alone"),
            tr(
                "Nothing leaves this computer. In a swarm your model also learns from what other people's "
                "models found out: "
                "answers to generated puzzles go to and fro, as text."
            ),
            ask,
        )
        self.setLayout(column(empty))

    def _join(self) -> None:
        from app.swarm.invite import InviteError, where

        text = self._address.text().strip()
        try:
            where(text)
        except InviteError as error:
            self._complaint.say(str(error))
            self._complaint.show()
            return
        self._complaint.hide()
        self._actions.join(text)


class RelayCard(QFrame):
    """The link: whether it stands, to whom, under which name, and how to invite others."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._state, self._sentence, self._name = Label("", "good"), Elided("", "soft"), Elided("", "faint")
        self._invite = QLineEdit()
        self._invite.setReadOnly(True)
        self._invite.setAccessibleName(tr("Invite"))
        self._invite.setMinimumWidth(250)
        self._copy = IconButton(theme, "copy", tr("Copy the invite"), tr("Copy invite"), "")
        self._copy.clicked.connect(lambda: QApplication.clipboard().setText(self._invite.text()))
        state = row(self._state, self._sentence, gap=10)
        state.setStretch(1, 1)
        inside = row(
            column(state, self._name, gap=4), self._invite, self._copy, gap=12, margins=(20, 14, 16, 14)
        )
        inside.setStretch(0, 1)
        self.setLayout(inside)

    def show_swarm(self, swarm: Swarm) -> None:
        self._state.look("good" if swarm.connected else "warn")
        self._state.say(tr("Connected") if swarm.connected else tr("Not connected"))
        self._sentence.say(swarm.sentence)
        named = tr("You are {name} here.", name=swarm.name) if swarm.name else ""
        self._name.say("  ".join(filter(None, (named, swarm.relay))))
        self._invite.setVisible(bool(swarm.invite))
        self._copy.setVisible(bool(swarm.invite))
        if self._invite.text() != swarm.invite:
            self._invite.setText(swarm.invite)
            self._invite.setCursorPosition(0)
