"""The main window: a side bar and one page at a time. Only the visible page gets new Views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QHideEvent,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QLayout,
    QLineEdit,
    QMainWindow,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QToolButton,
    QWidget,
)

from app.common.process.memory import free_memory
from app.models.gguf_shelf import is_gguf
from app.node.data.question_sets import SET_SUFFIXES
from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import tr
from app.ui.shell.sidebar import Sidebar
from app.ui.theme import Theme
from app.ui.theme.theme import picture_icon
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.pieces import row

SECOND_MS = 1000
TIDY_MS = 2000
"""Milliseconds after the last change of page when memory freed by pages is returned to the system."""
MIN = (760, 520)
"""Minimum size of the window, at which every page still works."""
_FIRST = (1180, 780)
_SHARE = 0.92
"""Maximum share of the screen that the window takes when it opens: its frame and a panel need the rest."""
_TITLE_BAR = 40
"""Maximum height in pixels of the title bar that a window manager adds."""
_FOLDS = 1000
"""Width in pixels below which the side bar shows icons only."""


def pages(theme: Theme) -> list[tuple[str, str, str, Callable[[Theme, Actions], Page]]]:
    """Returns every page's key, icon, title and constructor. Pages are created when first shown."""
    from app.ui.chat.page import TryIt
    from app.ui.models.page import Models
    from app.ui.overview.page import Overview
    from app.ui.pages.help import Help
    from app.ui.pages.history import HistoryPage
    from app.ui.privacy.live import Live
    from app.ui.privacy.page import Privacy
    from app.ui.settings.page import SettingsPage
    from app.ui.skills.page import Skills
    from app.ui.swarm.page import SwarmPage

    return [
        ("overview", "overview", tr("Overview"), Overview),
        ("live", "live", tr("Live"), Live),
        ("skills", "skills", tr("Skills"), Skills),
        ("swarm", "swarm", tr("Swarm"), SwarmPage),
        ("history", "history", tr("History"), HistoryPage),
        ("models", "models", tr("Models"), Models),
        ("tryit", "tryit", tr("Try it"), TryIt),
        ("privacy", "privacy", tr("Privacy"), Privacy),
        ("settings", "settings", tr("Settings"), SettingsPage),
        ("help", "help", tr("Help"), Help),
    ]


class MainWindow(QMainWindow):
    """The main window. `closing` decides whether it may close: True to close, False to stay."""

    quit_asked = Signal()

    def __init__(self, theme: Theme, actions: Actions, closing: Callable[[], bool] = lambda: True) -> None:
        super().__init__()
        self._theme, self._actions, self._closing = theme, actions, closing
        self._view = View()
        self.setWindowTitle("Shoal")
        self.setWindowIcon(picture_icon("shoal"))
        room = self._room().size()
        self.setMinimumSize(first_size(QSize(*MIN), room))
        self.resize(first_size(QSize(*_FIRST), room))
        self._makers = {key: make for key, _, _, make in pages(theme)}
        self._pages: dict[str, Page] = {}
        self._stack = QStackedWidget()
        self._stack.setProperty("look", "ground")
        self._sidebar = Sidebar(theme, [(key, icon, title) for key, icon, title, _ in pages(theme)])
        self._sidebar.chosen.connect(self.go)
        self._inside = inside = QWidget()
        inside.setProperty("look", "ground")
        inside.setLayout(row(self._sidebar, self._stack, gap=0, fill=1))
        self.setCentralWidget(inside)
        for at, key in zip(range(1, 10), self._makers, strict=False):
            QShortcut(QKeySequence(f"Ctrl+{at}"), self, partial(self.go, key))
        QShortcut(QKeySequence("F1"), self, partial(self.go, "help"))
        QShortcut(QKeySequence.StandardKey.Quit, self, self.quit_asked.emit)
        QShortcut(QKeySequence("Ctrl+P"), self, self._toggle)
        QShortcut(QKeySequence("Ctrl+,"), self, partial(self.go, "settings"))
        QShortcut(QKeySequence.StandardKey.Find, self, self._search)
        self._second = QTimer(self, interval=SECOND_MS)
        self._second.timeout.connect(self._pass_time)
        self._tidy = QTimer(self, interval=TIDY_MS, singleShot=True)
        self._tidy.timeout.connect(free_memory)
        self.setAcceptDrops(True)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setFocus()  # else Qt marks the first button, as if somebody had gone there
        self.go("overview")

    @property
    def page(self) -> str:
        return next(key for key, page in self._pages.items() if page is self._stack.currentWidget())

    def go(self, key: str) -> None:
        if key not in self._makers:
            key = "overview"
        if key not in self._pages:
            page = self._makers[key](self._theme, self._actions)
            self._pages[key] = page
            self._stack.addWidget(page)
        before, page = self._stack.currentWidget(), self._pages[key]
        focused = self.focusWidget()
        beside = focused is not None and self._sidebar.isAncestorOf(focused)
        self._stack.setCurrentWidget(page)
        if before is not page and not beside:  # Qt would focus the first button, and Space would press it
            page.setFocus()
        self._sidebar.choose(key)
        page.show_view(self._view)
        if self.isVisible() and before is not page:
            if isinstance(before, Page):
                before.leave()
                self._let_go(before)
            page.enter()
            self._tidy.start()

    def _let_go(self, page: Page) -> None:
        """Destroys a page without state to keep, whose widgets take megabytes; `go` creates it again."""
        if page.lasting:
            return
        self._pages = {key: one for key, one in self._pages.items() if one is not page}
        page.close_down()
        self._stack.removeWidget(page)
        page.deleteLater()

    def open_page(self, key: str) -> Any:
        """Shows a page and returns it; each page type has its own methods to scroll or filter."""
        self.go(key)
        return self._pages[key]

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Adds a dropped model (GGUF file or folder) to the models; opens a table as a question set."""
        for path in _dropped(event):
            event.acceptProposedAction()
            if path.lower().endswith(SET_SUFFIXES):
                self.open_page("skills").own.offer(path)
                continue
            (self._actions.models.get if is_gguf(path) else self._actions.models.add_folder)(path)
            self.go("models")

    def show_view(self, view: View) -> None:
        self._view = view
        self._sidebar.show_view(view)
        if self.isVisible():
            self._pages[self.page].show_view(view)
        self._keep_time()

    def close_down(self) -> None:
        """Ends everything that pages have started."""
        for page in self._pages.values():
            page.close_down()

    def saved_place(self) -> str:
        """Returns size and position as text, for `restore_place`."""
        return bytes(self.saveGeometry().toBase64().data()).decode()

    def restore_place(self, text: str) -> None:
        if text:
            self.restoreGeometry(QByteArray.fromBase64(text.encode()))
        if self.isMaximized() or self.isFullScreen():
            return
        room = self._room()
        self.resize(first_size(self.size(), room.size()))
        at = self.frameGeometry()
        if at == self.geometry():  # not shown yet, so its frame is still to come
            at.setHeight(at.height() + _TITLE_BAR)
        at.moveLeft(max(room.left(), min(at.left(), room.right() - at.width())))
        at.moveTop(max(room.top(), min(at.top(), room.bottom() - at.height())))
        if text and at.topLeft() != self.frameGeometry().topLeft():  # else a frame not yet known would move it
            self.move(at.topLeft())

    def bring(self) -> None:
        """Shows the window in front, even if it was closed or minimised."""
        self.setWindowState(self.windowState() & ~self.windowState().WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def ask_closing(self) -> str:
        """Asks, on a desktop without a tray, what closing means: "quit", "keep" (minimised) or "stay"."""
        box = QMessageBox(self)
        box.setWindowTitle("Shoal")
        box.setText(tr("Close Shoal?"))
        box.setInformativeText(tr("This desktop has no tray to stay in. Everything it learned is safe."))
        leave = box.addButton(tr("Stop learning and quit"), QMessageBox.ButtonRole.DestructiveRole)
        keep = box.addButton(tr("Keep learning, minimised"), QMessageBox.ButtonRole.AcceptRole)
        box.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(keep)
        box.exec()
        if box.clickedButton() is leave:
            return "quit"
        return "keep" if box.clickedButton() is keep else "stay"

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._pages[self.page].show_view(self._view)
        self._pages[self.page].enter()
        self._keep_time()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._pages[self.page].leave()
        self._keep_time()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._closing():
            event.accept()
        else:
            event.ignore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._sidebar.fold(self.width() < _FOLDS)

    def focusNextPrevChild(self, next: bool) -> bool:
        """Moves in reading order, and scrolls the page to the widget that Tab reaches. Qt would go by when a
        widget was made, and rows are made later than what stands below them."""
        stops, now = list(in_reading_order(self._inside)), self.focusWidget()
        if now is None or now not in stops:
            return super().focusNextPrevChild(next)
        reasons = Qt.FocusReason
        after = stops[(stops.index(now) + (1 if next else -1)) % len(stops)]
        after.setFocus(reasons.TabFocusReason if next else reasons.BacktabFocusReason)
        page = self._pages[self.page]
        if page.isAncestorOf(after):
            page.ensureWidgetVisible(after)
        return True

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter presses the button that has the focus, or else the page's main button."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            focused = self.focusWidget()
            aimed = focused if isinstance(focused, QPushButton | QToolButton) else self._main_button()
            if aimed is not None and not isinstance(focused, QLineEdit):
                aimed.click()
                return
        super().keyPressEvent(event)

    def _search(self) -> None:
        """Focuses the page's search field, if it has one."""
        fields = self._pages[self.page].findChildren(QLineEdit)
        if found := next((one for one in fields if one.isVisible() and one.isClearButtonEnabled()), None):
            found.setFocus(Qt.FocusReason.ShortcutFocusReason)
            found.selectAll()

    def _main_button(self) -> QAbstractButton | None:
        """Returns the only visible main button; None if there are several."""
        shown = [one for one in self._pages[self.page].findChildren(QPushButton) if one.isVisible()]
        main = [one for one in shown if one.property("look") in ("primary", "large") and one.isEnabled()]
        return main[0] if len(main) == 1 else None

    def _room(self) -> QRect:
        """Returns the screen's area without panels."""
        return self.screen().availableGeometry()

    def _keep_time(self) -> None:
        """Updates the page every second while it is visible and shows something that changes with time."""
        wanted = self.isVisible() and words.contributes(self._view)
        if wanted != self._second.isActive():
            self._second.start() if wanted else self._second.stop()

    def _pass_time(self) -> None:
        self._pages[self.page].show_view(self._view)
        self._sidebar.show_view(self._view)

    def _toggle(self) -> None:
        node = self._actions.node
        (node.pause if words.contributes(self._view) else node.start)()


def in_reading_order(widget: QWidget) -> Iterator[QWidget]:
    """Yields every visible part that Tab reaches or leaves, in the order of the layouts."""
    if not widget.isVisible() or not widget.isEnabled():
        return
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus or widget.hasFocus():
        yield widget
    if isinstance(widget, QScrollArea) and (inside := widget.widget()) is not None:
        yield from in_reading_order(inside)
    if (layout := widget.layout()) is not None:
        yield from _in_layout(layout)


def _in_layout(layout: QLayout) -> Iterator[QWidget]:
    for at in range(layout.count()):
        item = layout.itemAt(at)
        assert item is not None
        if (part := item.widget()) is not None:
            yield from in_reading_order(part)
        elif (inner := item.layout()) is not None:
            yield from _in_layout(inner)


def first_size(wanted: QSize, room: QSize) -> QSize:
    """Returns the size of a window when it opens: the preferred one, or most of a smaller screen.

    >>> first_size(QSize(1180, 780), QSize(1280, 720)).toTuple()
    (1177, 662)
    """
    return wanted.boundedTo(QSize(int(_SHARE * room.width()), int(_SHARE * room.height())))


def _dropped(event: QDropEvent) -> list[str]:
    """Returns the dropped local files and folders that may be models or tables."""
    paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
    return [
        str(path)
        for path in paths
        if (path.is_file() and (is_gguf(path) or path.suffix.lower() in SET_SUFFIXES))
        or (path / "config.json").is_file()
    ]
