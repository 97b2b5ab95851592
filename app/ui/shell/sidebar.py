"""The side bar: the list of pages, and below it the node's state, visible on every page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFont, QKeyEvent, QKeySequence, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QSizePolicy, QWidget

from app.ui.shell.tray import icon_name
from app.ui.theme import Theme
from app.ui.theme.theme import BODY, drawn, font
from app.ui.view import words
from app.ui.view.view import NodeStatus, View
from app.ui.widgets.exchange import breakable
from app.ui.widgets.pieces import Label, Picture, antialiased_painter, boxed, column, row

WIDTH, FOLDED = 212, 60
_LOW = 440
"""Height in pixels below which the side bar has no room for Shoal's mark."""
_BESIDE = 48
"""Width in pixels of a page's icon and margins beside its name."""
_KEYS = tuple(QKeySequence(f"Ctrl+{n}").toString(QKeySequence.SequenceFormat.NativeText) for n in range(1, 10))
_LONGEST_WORD = 18
"""Maximum characters of a word, for example a path, that fit into one line."""


class SidebarEntry(QAbstractButton):
    """The button of one page: an icon and its name. Arrow keys move to the next."""

    def __init__(self, theme: Theme, icon: str, text: str, near: Callable[[int], None]) -> None:
        super().__init__()
        self._theme, self._icon, self._near = theme, icon, near
        self._by_key = self._folded = False
        self.keys = ""
        """The keyboard shortcut, as people read it."""
        self.setText(text)
        self.setAccessibleName(text)
        self.setCheckable(True)
        self.setAutoExclusive(True)  # one of several, also for screen readers
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def sizeHint(self) -> QSize:
        return QSize(36 if self._folded else _BESIDE + self.fontMetrics().horizontalAdvance(self.text()), 36)

    def fold(self, folded: bool) -> None:
        """Shows only the icon, with the name as a tool tip."""
        self._folded = folded
        self.setToolTip(f"{self.text()}  {self.keys}".strip() if folded else self.keys)
        self.updateGeometry()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._by_key = False
        super().focusInEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        """Shows the focus ring to people who navigate by keyboard: the key that moved the focus here is
        released here. Shortcuts move it elsewhere."""
        if event.key() in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab, Qt.Key.Key_Down, Qt.Key.Key_Up):
            self._by_key = True
            self.update()
        super().keyReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            self._near(1 if event.key() == Qt.Key.Key_Down else -1)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, painter = self._theme, antialiased_painter(self)
        area = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        on = self.isChecked()
        if on or self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.colour("accent_soft" if on else "hover"))
            painter.drawRoundedRect(area, 8, 8)
        if self.hasFocus() and self._by_key:
            painter.setPen(QPen(colours.colour("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(area, 8, 8)
        name = "accent" if on else "text_soft"
        icon = drawn(self._icon, getattr(colours.palette, name), 18, 18, self.devicePixelRatioF())
        left = round((self.width() - 18) / 2) if self._folded else 12
        painter.drawPixmap(left, round((self.height() - 18) / 2), icon)
        if not self._folded:
            painter.setPen(colours.colour("text" if on else "text_soft"))
            painter.setFont(font(BODY, QFont.Weight.DemiBold if on else QFont.Weight.Medium))
            room = QRectF(40, 0, self.width() - _BESIDE, self.height())
            painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), self.text())
        painter.end()


class Sidebar(QWidget):
    """The side bar. `chosen` emits the key of the page that was selected."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, places: Sequence[tuple[str, str, str]]) -> None:
        """`places` are (key, icon, title)."""
        super().__init__()
        self.setProperty("look", "side")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH)
        self._keys = [key for key, _, _ in places]
        self._group = QButtonGroup(self)
        self._name = Label("Shoal", "heading")
        inside = column(gap=2, margins=(12, 18, 12, 14))
        self._mark = Picture(theme, "mark", "own", 29, 24)
        self._top = row(self._mark, self._name, 1, gap=9)
        inside.addLayout(self._top)
        for at, (_, icon, title) in enumerate(places):
            place = SidebarEntry(theme, icon, title, self._near)
            place.keys = _KEYS[at] if at < len(_KEYS) else ""
            self._group.addButton(place, at)
            inside.addWidget(place)
        inside.addStretch(1)
        self._sign, self._state = Label(""), Label("", "strong", wrap=True)
        self._sign.setFixedSize(18, 18)
        self._detail = Label("", "faint", wrap=True)
        self._said = boxed(column(self._state, self._detail, gap=3))
        below = row(self._sign, self._said, gap=9, margins=(10, 6, 4, 4), fill=1)
        below.setAlignment(self._sign, Qt.AlignmentFlag.AlignTop)
        inside.addLayout(below)
        self.setLayout(inside)
        self._folded: bool | None = None
        self.fold(False)
        self._group.idClicked.connect(lambda at: self.chosen.emit(self._keys[at]))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leaves the room of the mark to the pages in a low window, where their entries become lower too."""
        super().resizeEvent(event)
        self._mark.setVisible(self.height() >= _LOW)

    def choose(self, key: str) -> None:
        """Marks this page as the one in sight, which Tab leads to; arrow keys lead to the others."""
        policies = Qt.FocusPolicy
        for name, place in zip(self._keys, self._group.buttons(), strict=True):
            place.setFocusPolicy(policies.StrongFocus if name == key else policies.ClickFocus)
        self._group.button(self._keys.index(key)).setChecked(True)

    def fold(self, folded: bool) -> None:
        """Shows icons only, for a narrow window."""
        if folded == self._folded:
            return
        self._folded = folded
        self.setFixedWidth(FOLDED if folded else WIDTH)
        self._name.setVisible(not folded)
        self._said.setVisible(not folded)
        self._top.setContentsMargins(3 if folded else 8, 0, 0, 14)
        for place in self._group.buttons():
            assert isinstance(place, SidebarEntry)
            place.fold(folded)

    def show_view(self, view: View) -> None:
        self._sign.setPixmap(drawn(icon_name(view.state), "#000000", 18, 18))
        self._state.say(words.state_name(view.state))
        self._state.setVisible(not words.is_held_back(view) and view.state is not NodeStatus.NEW)
        plain = view.state is NodeStatus.LEARNING and view.round and not words.finishing(view)
        detail = words.round_line(view) if plain else words.reason(view, time.time())
        self._detail.say(breakable(detail.replace(" %", "\u00a0%"), _LONGEST_WORD))
        said = [words.state_name(view.state), detail]
        self._sign.setToolTip("\n".join(said))
        self._sign.setAccessibleName(". ".join(said))

    def _near(self, step: int) -> None:
        at = (self._group.checkedId() + step) % len(self._keys)
        self._group.button(at).setFocus()
        self._group.button(at).click()
