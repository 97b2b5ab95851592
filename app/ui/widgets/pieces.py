"""Small widgets and layouts: labels, cards, buttons, empty states, notices.

Tool tips are plain text. Qt takes what looks like HTML for HTML, and words of a relay or a peer may stand in
them: `<img src=...>` would load a file of this computer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QHelpEvent, QKeySequence, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLineEdit,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.theme.theme import drawn, line_icon
from app.ui.view.view import Problem

Box = TypeVar("Box", bound=QBoxLayout)
Item = QWidget | QLayout | int
Margins = tuple[int, int, int, int]
NONE: Margins = (0, 0, 0, 0)


class Label(QLabel):
    """A label that repaints only when its text changes, and never interprets it as markup."""

    def __init__(self, text: str = "", look: str = "", wrap: bool = False) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("look", look)
        self.setWordWrap(wrap)
        if look.startswith("chip"):
            self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)
        elif wrap:
            self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self.say(text)

    def say(self, text: str) -> None:
        if text != self.text():
            self.setText(text)

    def tell(self, text: str) -> None:
        """Shows the text; hides the label if it is empty."""
        self.say(text)
        self.setVisible(bool(text))

    def look(self, name: str) -> None:
        """Changes the label's look."""
        relook(self, name)


class Elided(Label):
    """A one-line label that ends in … if there is no room; its tool tip has the whole text. With word wrap it
    is a usual label."""

    def __init__(self, text: str = "", look: str = "") -> None:
        super().__init__(text, look)
        self.setMinimumWidth(24)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.wordWrap():
            super().paintEvent(event)
            return
        painter = QPainter(self)
        fitted = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), int(self.alignment() | Qt.AlignmentFlag.AlignVCenter), fitted)
        wanted = self.text() if fitted != self.text() else ""
        if self.toolTip() != wanted:
            self.setToolTip(wanted)


class Fitted(Elided):
    """A label of one line, or of more where one has no room. A label that always wraps would keep everything on
    its page from getting lower than it likes to be (`Bend.hasHeightForWidth`)."""

    def say(self, text: str) -> None:
        super().say(text)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.setWordWrap(self.fontMetrics().horizontalAdvance(self.text()) > self.width())


def column(*items: Item, gap: int = 8, margins: Margins = NONE, fill: int | Sequence[int] = ()) -> QVBoxLayout:
    """Lays out widgets below each other; a number is a stretch of that weight. `fill`: the index of the item
    that takes the remaining room, or the indexes of those that share it."""
    return filled(QVBoxLayout(), items, gap, margins, fill)


def row(*items: Item, gap: int = 8, margins: Margins = NONE, fill: int | Sequence[int] = ()) -> QHBoxLayout:
    """Lays out widgets beside each other; arguments as in `column`."""
    return filled(QHBoxLayout(), items, gap, margins, fill)


def filled(
    box: Box, items: Sequence[Item], gap: int, margins: Margins = NONE, fill: int | Sequence[int] = ()
) -> Box:
    """Adds the items to a layout; arguments as in `column`."""
    box.setSpacing(gap)
    box.setContentsMargins(*margins)
    for item in items:
        if isinstance(item, QWidget):
            box.addWidget(item)
        elif isinstance(item, QLayout):
            box.addLayout(item)
        else:
            box.addStretch(item)
    for at in (fill,) if isinstance(fill, int) else fill:
        box.setStretch(at, 1)
    return box


def relook(widget: QWidget, name: str) -> None:
    """Changes the look of a widget in the style sheet, also of one that is visible already."""
    if widget.property("look") != name:
        widget.setProperty("look", name)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def clear_layout(box: QLayout) -> None:
    while (item := box.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()


def antialiased_painter(widget: QWidget) -> QPainter:
    """Returns a painter of the widget with antialiasing."""
    painter = QPainter(widget)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    return painter


def open_path(path: Path | str) -> None:
    """Opens a file or folder with the program that the system has for it."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))


def confirm(parent: QWidget, question: str, about: str, deed: str, danger: bool = False) -> bool:
    """Shows a dialog that asks for confirmation and returns whether the person agreed. `deed` is the text of
    the button that agrees; Enter presses Cancel."""
    roles = QMessageBox.ButtonRole
    box = QMessageBox(QMessageBox.Icon.NoIcon, "Shoal", question, parent=parent)
    box.setInformativeText(about)
    really = box.addButton(deed, roles.DestructiveRole if danger else roles.AcceptRole)
    if danger:
        relook(really, "danger")
    box.setDefaultButton(box.addButton(tr("Cancel"), roles.RejectRole))
    box.exec()
    return box.clickedButton() is really


def boxed(inside: QLayout) -> QWidget:
    """Wraps a layout in one widget that can be shown and hidden."""
    widget = QWidget()
    widget.setLayout(inside)
    return widget


class Card(QFrame):
    """A surface; `look` is one of the style sheet's names."""

    def __init__(self, look: str = "card") -> None:
        super().__init__()
        self.setProperty("look", look)


def card(inside: QLayout, look: str = "card", padding: int | None = 20) -> Card:
    """Creates a card around this layout. `padding` replaces the layout's margins; None keeps them."""
    frame = Card(look)
    if padding is not None:
        inside.setContentsMargins(padding, padding - 2, padding, padding - 2)
    frame.setLayout(inside)
    return frame


def stack(*pages: QWidget) -> QStackedWidget:
    """Creates a stack that shows one of these pages, at first the first."""
    made = QStackedWidget()
    for page in pages:
        made.addWidget(page)
    return made


def field(hint: str, name: str = "", width: int = 0) -> QLineEdit:
    """Creates a line of input; `hint` is shown while it is empty, `name` is for screen readers."""
    line = QLineEdit()
    line.setPlaceholderText(hint)
    line.setAccessibleName(name or hint)
    if width:
        line.setFixedWidth(width)
    return line


def search(hint: str, act: Callable[[str], object], name: str = "", width: int = 0) -> QLineEdit:
    """Creates a search field that calls `act` with its text at every change, and can be cleared by one
    click."""
    line = field(hint, name, width)
    line.setClearButtonEnabled(True)
    line.setToolTip(
        QKeySequence(QKeySequence.StandardKey.Find).toString(QKeySequence.SequenceFormat.NativeText)
    )
    line.textChanged.connect(act)
    return line


def progress_bar(name: str, most: int = 1000) -> QProgressBar:
    bar = QProgressBar()
    bar.setTextVisible(False)
    bar.setRange(0, most)
    bar.setAccessibleName(name)
    return bar


def rule() -> QFrame:
    return Card("rule")


class _Filled(QPushButton):
    """A button in the accent colour. The focus ring is inside, in the text's colour: around the button, no
    colour would stand out from both the button and the background."""

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.hasFocus():
            painter = antialiased_painter(self)
            painter.setPen(QPen(self.palette().buttonText().color(), 1.5))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(3.5, 3.5, -3.5, -3.5), 4, 4)
            painter.end()


def button(text: str, act: Callable[[], object], look: str = "", hint: str = "") -> QPushButton:
    made = _Filled(text) if look in ("primary", "large") else QPushButton(text)
    made.setProperty("look", look)
    made.setCursor(Qt.CursorShape.PointingHandCursor)
    made.clicked.connect(lambda: act())
    made.setToolTip(hint)
    return made


class IconButton(QToolButton):
    """A button with an icon and an optional text. `name` is for screen readers."""

    def __init__(self, theme: Theme, icon: str, name: str, text: str = "", look: str = "flat") -> None:
        super().__init__()
        self._theme, self._icon = theme, icon
        self.setProperty("look", look)
        self.setText(text)
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setIconSize(QSize(17, 17))
        beside = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        self.setToolButtonStyle(beside if text else Qt.ToolButtonStyle.ToolButtonIconOnly)
        theme.changed.connect(self._draw)
        self._draw()

    def _draw(self) -> None:
        colours = self._theme.palette
        self.setIcon(line_icon(self._icon, colours.text_soft, colours.accent))


class Picture(QLabel):
    """A drawing in a colour of the theme; `colour` is that colour's name."""

    def __init__(self, theme: Theme, name: str, colour: str, width: int, height: int) -> None:
        super().__init__()
        self._theme, self._drawing, self._size = theme, name, (width, height)
        self._colour = colour
        theme.changed.connect(self._draw)
        self._draw()

    def recolour(self, colour: str) -> None:
        if colour != self._colour:
            self._colour = colour
            self._draw()

    def _draw(self) -> None:
        self.setPixmap(drawn(self._drawing, getattr(self._theme.palette, self._colour), *self._size))


class Empty(QWidget):
    """Shown on a page without content yet: a picture, what will be here, and what to do."""

    def __init__(self, theme: Theme, icon: str, title: str, sentence: str, act: QWidget | None = None) -> None:
        super().__init__()
        picture = Picture(theme, icon, "line_strong", 56, 56)
        picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title = Label(title, "heading")
        self.title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.sentence = Label(sentence, "soft", wrap=True)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.sentence.setFixedWidth(400)
        inside = column(1, picture, self.title, row(1, self.sentence, 1), gap=10)
        if act is not None:
            inside.addSpacing(6)
            inside.addLayout(row(1, act, 1))
        inside.addStretch(1)
        self.setLayout(inside)


class Notice(Card):
    """Shows a problem: title, sentence, remedy, and a button to solve it."""

    def __init__(self, act: QPushButton) -> None:
        super().__init__("problem")
        self._title, self._sentence = Label("", "strong"), Label("", wrap=True)
        self._remedy = Label("", "soft", wrap=True)
        inside = row(column(self._title, self._sentence, self._remedy, gap=4), gap=24, fill=0)
        inside.addWidget(act, alignment=Qt.AlignmentFlag.AlignVCenter)
        inside.setContentsMargins(20, 16, 20, 16)
        self.setLayout(inside)

    def show_problem(self, problem: Problem | None) -> None:
        self.setVisible(problem is not None)
        if problem is not None:
            self._title.say(problem.title)
            self._sentence.say(problem.sentence)
            self._remedy.say(problem.remedy)
            self.setAccessibleName(f"{problem.title}. {problem.sentence} {problem.remedy}")


SAID_MS = 2000


def bring_into_sight(widget: QWidget) -> None:
    """Scrolls the page until a widget that has just appeared is fully visible."""
    above = widget.parentWidget()
    while above is not None and not isinstance(above, QScrollArea):
        above = above.parentWidget()
    if above is not None and (inside := above.widget()) is not None:
        if (layout := inside.layout()) is not None:
            layout.activate()
        above.ensureWidgetVisible(widget, 0, 24)


class CopyButton(IconButton):
    """A button that copies what `text` returns at that moment; `name` is its text and its name for screen
    readers."""

    def __init__(self, theme: Theme, name: str, text: Callable[[], str]) -> None:
        super().__init__(theme, "copy", name, name, "")
        self._name, self._wanted = name, text
        self.clicked.connect(self._copy)
        self._back = QTimer(self, singleShot=True, interval=SAID_MS)
        self._back.timeout.connect(lambda: self._say(name))

    def _copy(self) -> None:
        QApplication.clipboard().setText(self._wanted())
        self.setMinimumWidth(self.width())  # nothing beside it moves
        self._say(tr("Copied"))
        self._back.start()

    def _say(self, text: str) -> None:
        self.setText(text)
        self.setAccessibleName(text)


def plain(text: str) -> str:
    """Returns markup that shows exactly `text` where Qt might take it for HTML; any other text unchanged.

    >>> plain("64 answers"), plain("2 < 3\\n<img src=x>")
    ('64 answers', '<p style="white-space:pre-wrap">2 &lt; 3\\n&lt;img src=x&gt;</p>')
    """
    return f'<p style="white-space:pre-wrap">{escape(text)}</p>' if "<" in text else text


class PlainTips(QObject):
    """An application-wide event filter that shows every widget's tool tip as plain text."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and isinstance(watched, QWidget):
            tip = watched.toolTip()
            if event.type() == QEvent.Type.ToolTip and plain(tip) != tip:
                QToolTip.showText(event.globalPos(), plain(tip), watched)
                return True
        return False
