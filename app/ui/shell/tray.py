"""The icon in the system tray: the node's state at a glance, and the few actions wanted without a window."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app.ui.frame.frame import Actions, add_pause_lengths
from app.ui.language.texts import tr
from app.ui.theme.theme import picture_icon
from app.ui.view import words
from app.ui.view.view import NodeStatus, View

LATE_MS, LATE_TRIES = 3000, 20
"""Milliseconds between attempts to find a tray at login, which may start later than Shoal, and their number."""


def icon_name(state: NodeStatus) -> str:
    """Returns one of four drawings for seven states; they differ in shape, not only in colour."""
    if state in (NodeStatus.LEARNING, NodeStatus.STARTING):
        return "tray-learning"
    if state is NodeStatus.FAILED:
        return "tray-problem"
    return "tray-waiting" if state in (NodeStatus.WAITING, NodeStatus.STOPPING) else "tray-paused"


class Tray(QObject):
    """The tray icon, visible after `show`. Without a tray, `there` is False and nothing happens."""

    def __init__(self, actions: Actions, bring: Callable[[], None], leave: Callable[[], None]) -> None:
        """`bring` shows the window, `leave` quits."""
        super().__init__()
        self._actions, self._bring = actions, bring
        self._icons = {
            name: picture_icon(name)
            for name in ("tray-learning", "tray-waiting", "tray-paused", "tray-problem")
        }
        self._drawn = ""
        self.menu = QMenu()
        self._state = self.menu.addAction("")
        self._state.setEnabled(False)
        self.menu.addSeparator()
        self.menu.addAction(tr("Open Shoal"), bring)
        self.menu.addSeparator()
        self._contribute = self.menu.addAction(tr("Learn while I'm away"))
        self._contribute.triggered.connect(lambda on: actions.node.contribute(on))
        self._also = self.menu.addAction(tr("Also while I use this computer"))
        self._also.triggered.connect(self._also_in_use)
        for one in (self._contribute, self._also):
            one.setCheckable(True)
        self._resume = self.menu.addAction(tr("Resume"), lambda: actions.node.start())
        self._anyway = self.menu.addAction(tr("Learn now anyway"), lambda: actions.node.insist())
        self._pause = self.menu.addAction(tr("Pause"), lambda: actions.node.pause())
        self._longer = self.menu.addMenu(tr("Pause for a while"))
        add_pause_lengths(self._longer, actions.node.snooze)
        self._finish = self.menu.addAction(tr("Finish this round, then stop"), lambda: actions.node.finish())
        self.menu.addSeparator()
        self.menu.addAction(tr("Quit"), leave)
        self._icon = QSystemTrayIcon(self._icons["tray-paused"])
        self._icon.setContextMenu(self.menu)
        self._icon.activated.connect(self._clicked)
        self._late = QTimer(self, interval=LATE_MS)
        self._late.timeout.connect(self._look_again)
        self._tries = 0

    @property
    def there(self) -> bool:
        return QSystemTrayIcon.isSystemTrayAvailable()

    def show(self) -> None:
        if self.there:
            self._icon.show()
        else:
            self._late.start()

    def hide(self) -> None:
        self._late.stop()
        self._icon.hide()

    def show_view(self, view: View) -> None:
        name = icon_name(view.state)
        if name != self._drawn:
            self._drawn = name
            self._icon.setIcon(self._icons[name])
        sentence = words.reason(view, time.time())
        self._icon.setToolTip(f"Shoal: {sentence}")
        learning = view.state is NodeStatus.LEARNING and view.round and not words.finishing(view)
        round = f"  ·  {words.round_line(view)}" if learning else ""
        self._state.setText(f"{words.state_name(view.state)}{round}" if learning else sentence)
        wanted = words.contributes(view)
        self._contribute.setChecked(view.willing)
        self._contribute.setEnabled(view.state not in (NodeStatus.NEW, NodeStatus.STOPPING))
        self._also.setChecked(not view.rules.get("contribute_when_idle", True))
        self._also.setEnabled(view.willing)
        self._pause.setVisible(wanted)
        self._longer.menuAction().setVisible(wanted)
        self._resume.setVisible(view.state is NodeStatus.PAUSED)
        away = view.state is NodeStatus.PAUSED and bool(words.waits_for_absence(view))
        self._anyway.setVisible((view.state is NodeStatus.WAITING and words.is_held_back(view)) or away)
        self._finish.setVisible(view.state is NodeStatus.LEARNING)
        self._finish.setEnabled(not words.finishing(view))

    def tell(self, title: str, sentence: str) -> None:
        if self._icon.isVisible():
            self._icon.showMessage(title, sentence, self._icons["tray-problem"])

    def _also_in_use(self, on: bool) -> None:
        with contextlib.suppress(OSError):  # the switch goes back by itself
            self._actions.node.set_rule("contribute_when_idle", not on)

    def _look_again(self) -> None:
        self._tries += 1
        if self.there:
            self._icon.show()
        if self.there or self._tries >= LATE_TRIES:
            self._late.stop()

    def _clicked(self, why: QSystemTrayIcon.ActivationReason) -> None:
        if sys.platform == "darwin":
            return  # the same click opens the menu there, and a window would cover it
        if why in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self._bring()
