"""The icon in the system tray: what the node does at a glance, and the few things one wants without a
window."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app.ui.model import State, View
from app.ui.pages import words
from app.ui.texts import tr
from app.ui.widgets.icons import picture_icon

HOUR = 3600.0


@dataclass(frozen=True)
class TrayActions:
    open: Callable[[], None]
    start: Callable[[], None]
    pause: Callable[[float | None], None]
    quit: Callable[[], None]


def icon_name(state: State) -> str:
    """Four drawings for seven states; they differ in shape, not only in colour."""
    if state in (State.LEARNING, State.STARTING):
        return "tray-learning"
    if state is State.FAILED:
        return "tray-problem"
    return "tray-waiting" if state in (State.WAITING, State.STOPPING) else "tray-paused"


def tomorrow(now: float) -> float:
    """Seven in the morning of the next day."""
    day = time.localtime(now)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday + 1, 7, 0, 0, 0, 0, -1))


class Tray(QObject):
    """Shown from `show` on. Where there is no tray, `there` is False and nothing happens."""

    def __init__(self, actions: TrayActions) -> None:
        super().__init__()
        self._actions = actions
        self._icons = {
            name: picture_icon(name)
            for name in ("tray-learning", "tray-waiting", "tray-paused", "tray-problem")
        }
        self._drawn = ""
        self.menu = QMenu()
        self._state = QAction(self.menu)
        self._state.setEnabled(False)
        self._learn = QAction(self.menu)
        self._learn.triggered.connect(self._toggle)
        self._snooze = QMenu(tr("Pause for"), self.menu)
        for text, until in (
            (tr("1 hour"), lambda now: now + HOUR),
            (tr("3 hours"), lambda now: now + 3 * HOUR),
            (tr("Until tomorrow, 7:00"), tomorrow),
        ):
            self._snooze.addAction(text).triggered.connect(
                lambda _=False, end=until: actions.pause(end(time.time()))
            )
        self.menu.addAction(self._state)
        self.menu.addSeparator()
        self.menu.addAction(tr("Open Shoal"), actions.open)
        self.menu.addAction(self._learn)
        self.menu.addMenu(self._snooze)
        self.menu.addSeparator()
        self.menu.addAction(tr("Quit"), actions.quit)
        self._icon = QSystemTrayIcon(self._icons["tray-paused"])
        self._icon.setContextMenu(self.menu)
        self._icon.activated.connect(self._clicked)
        self._running = False

    @property
    def there(self) -> bool:
        return QSystemTrayIcon.isSystemTrayAvailable()

    def show(self) -> None:
        if self.there:
            self._icon.show()

    def hide(self) -> None:
        self._icon.hide()

    def show_view(self, view: View) -> None:
        name = icon_name(view.state)
        if name != self._drawn:
            self._drawn = name
            self._icon.setIcon(self._icons[name])
        now = time.time()
        sentence = words.reason(view, now)
        state = words.state_name(view.state)
        if view.state is State.LEARNING and view.round:
            state = f"{state}  ·  {words.round_line(view)}"
        self._icon.setToolTip(f"Shoal: {sentence}")
        self._state.setText(state)
        self._running = view.state in (State.LEARNING, State.STARTING, State.WAITING)
        self._learn.setText(tr("Pause") if self._running else tr("Start learning"))
        self._learn.setEnabled(view.state is not State.STOPPING)
        self._snooze.menuAction().setVisible(self._running)

    def tell(self, title: str, sentence: str) -> None:
        """One notification."""
        if self._icon.isVisible():
            self._icon.showMessage(title, sentence, self._icons["tray-problem"])

    def _toggle(self) -> None:
        if self._running:
            self._actions.pause(None)
        else:
            self._actions.start()

    def _clicked(self, why: QSystemTrayIcon.ActivationReason) -> None:
        if why in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self._actions.open()
