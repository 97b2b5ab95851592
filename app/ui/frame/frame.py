"""The frame that all pages share: a title, room for buttons beside it, and a body that scrolls if it must."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QLayout,
    QMenu,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.sapo.questions import Coordinates
from app.skills.answering import AskedAnswer
from app.ui.language.texts import tr
from app.ui.process.control import Control
from app.ui.process.engine import EngineControl
from app.ui.process.identity import IdentityControl
from app.ui.process.models import ModelControl
from app.ui.process.updates import UpdateControl
from app.ui.theme import Theme
from app.ui.view.settings import Choices
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Label, column, row

HOUR_S = 3600.0


def add_pause_lengths(menu: QMenu, snooze: Callable[[float | None], None]) -> None:
    """Adds menu entries that pause for 1 hour, for 3 hours, or until tomorrow morning (None)."""
    for text, seconds in (
        (tr("For 1 hour"), HOUR_S),
        (tr("For 3 hours"), 3 * HOUR_S),
        (tr("Until tomorrow morning"), None),
    ):
        menu.addAction(text).triggered.connect(lambda _=False, seconds=seconds: snooze(seconds))


WIDEST = 1240
"""Maximum width of a page's content in pixels; wider windows leave room at the right."""
_NARROW = 600
"""Width of a page in pixels below which its margins are small."""


@dataclass(frozen=True)
class Actions:
    """What pages can ask for: of the controls, whose findings arrive in the View, and of the window. What
    deletes, downloads or sends something is asked for only after the person was told and agreed."""

    node: Control
    models: ModelControl
    engine: EngineControl
    updates: UpdateControl
    identity: IdentityControl
    choices: Choices
    alone: Callable[[], None]
    """Stops learning with others; a pause stays in force."""
    use_model: Callable[[str], None]
    """Chooses the model that learns; a running node switches to it."""
    learn_with: Callable[[str], None]
    """Chooses the model that learns, and starts learning if no node is running."""
    learn_questions: Callable[[tuple[str, ...]], None]
    """Learns these question sets (hashes of their contents) from now on, in turns; puzzles if there are
    none."""
    ask_skill: Callable[[str, str, Callable[[AskedAnswer | str], None]], None]
    """Asks a skill (its set's hash) a text; the callback gets the answer, or a sentence that says why there is
    none."""
    want_questions: Callable[[Iterable[Coordinates]], None]
    """Requests the texts of these questions, which arrive in a later View."""
    go: Callable[[str], None]
    """Shows another page, by its key."""
    show_family: Callable[[str], None]
    """Shows the answers to puzzles of this family."""
    show_round: Callable[[int], None]
    """Shows the answers of this round."""
    show_rule: Callable[[str], None]
    """Shows the setting with this key."""
    show_help: Callable[[str], None]
    """Shows the help page with this key."""
    set_choice: Callable[[str, object], None]
    """Changes a setting of the window. Raises OSError, and AutostartError for starting at login."""
    starts_at_login: Callable[[], bool]
    reopen: Callable[[], None]
    """Closes the window and opens it again."""
    use_folder: Callable[[Path], None]
    """Makes this the data folder, and opens the window again with it. Raises NodeError."""
    remove_all: Callable[[], None]
    """Removes everything that Shoal stores on this computer, and closes the window."""


class Page(QScrollArea):
    """A page: a heading `title`, buttons in `header`, and a `body` that subclasses fill."""

    lasting = True
    """Whether the page has state that a person would miss if it were destroyed: a search, a conversation, a
    place in a list."""

    def __init__(self, theme: Theme, actions: Actions, title: str) -> None:
        super().__init__()
        self.theme, self.ask = theme, actions
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.title = Label(title, "title")
        self.header = Bend(gap=8)
        self.body: QVBoxLayout = column(gap=16)
        inside = QWidget()
        inside.setProperty("look", "page")
        inside.setMaximumWidth(WIDEST)
        self.title.setMinimumHeight(36)
        top = Bend(self.title, 1, self.header, gap=8)
        self._whole = column(top, self.body, gap=18, fill=1)
        inside.setLayout(self._whole)
        inside.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        outside = _Outside()
        outside.setProperty("look", "page")
        outside.setLayout(row(inside, gap=0))
        self.setWidget(outside)

    def resizeEvent(self, event: QResizeEvent) -> None:
        beside = 14 if self.width() < _NARROW else 32
        self._whole.setContentsMargins(beside, 22, beside, 28)
        super().resizeEvent(event)

    def show_view(self, view: View) -> None:
        raise NotImplementedError

    def enter(self) -> None:
        """Called when the page is shown."""

    def leave(self) -> None:
        """Called when the page is hidden."""

    def close_down(self) -> None:
        """Ends everything that this page has started; called when the window closes."""

    def add(self, item: QWidget | QLayout, stretch: int = 0) -> None:
        if isinstance(item, QWidget):
            self.body.addWidget(item, stretch)
        else:
            self.body.addLayout(item, stretch)


class _Outside(QWidget):
    """The scroll area of a page. Its height follows from its width alone: the minimum height of wrapped text is
    that at minimum width, and would leave a page's end empty."""

    def minimumSizeHint(self) -> QSize:
        least = super().minimumSizeHint()
        return QSize(least.width(), 0) if self.hasHeightForWidth() else least
