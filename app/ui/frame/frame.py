"""The frame that all pages share: a title, room for buttons beside it, and a body that scrolls when it must."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.sapo.questions import Coordinates
from app.ui.frame.actions import EngineActions, IdentityActions, ModelActions, UpdateActions
from app.ui.theme import Theme
from app.ui.view.settings import Choices
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Label, column, row

WIDEST = 1240
"""Wider windows leave room at the right instead of stretching lines."""


@dataclass(frozen=True)
class Actions:
    """What a page may ask for."""

    start: Callable[[], None]
    """Contributes from now on, as the rules allow."""
    contribute: Callable[[bool], None]
    """Whether it is to learn whenever no one uses the computer."""
    insist: Callable[[], None]
    """Learns for a while whatever else runs on this computer."""
    pause: Callable[[], None]
    snooze: Callable[[float | None], None]
    """For so many seconds, or until tomorrow."""
    finish: Callable[[], None]
    """Pauses after the round in flight."""
    learn: Callable[[str], None]
    """"alone" or with "others", from now on."""
    alone: Callable[[], None]
    """Whatever it does, it does it alone from now on; a pause stays one."""
    join: Callable[[str], None]
    """With an invite, or with "" wherever a swarm is found."""
    join_private: Callable[[str], None]
    """With these six words. Raises OSError where they cannot be kept."""
    go: Callable[[str], None]
    """To another page, by its key."""
    show_family: Callable[[str], None]
    """The answers to puzzles of this family."""
    show_round: Callable[[int], None]
    """The answers of this round."""
    show_rule: Callable[[str], None]
    """The settings, at the setting of this key."""
    show_help: Callable[[str], None]
    """The help, at the page of this key."""
    want_questions: Callable[[Iterable[Coordinates]], None]
    """The texts of these; they come with a View."""
    set_choice: Callable[[str, object], None]
    """Raises OSError where it cannot be saved, and AutostartError for starting at login."""
    set_rule: Callable[[str, object], None]
    """Raises PreferenceError for a value that cannot be, OSError where it cannot be saved."""
    starts_at_login: Callable[[], bool]
    reopen: Callable[[], None]
    """The window ends, and opens again."""
    move_data: Callable[[Path], None]
    """To this folder. The window ends, and opens again there."""
    remove_all: Callable[[], None]
    """Everything that Shoal keeps on this computer. The window ends."""
    choices: Choices
    skip: Callable[[], None] = lambda: None
    """Starts to learn without the rest of the first look."""
    harder: Callable[[], None] = lambda: None
    """Harder puzzles, from the next round on."""
    race: Callable[[], None] = lambda: None
    """Twenty new puzzles, before against after."""
    learn_questions: Callable[[tuple[str, ...], str], None] = lambda marks, share: None
    """Question sets by the hashes of their contents, from now on, and how much of each round they are."""
    models: ModelActions = field(default_factory=ModelActions)
    engine: EngineActions = field(default_factory=EngineActions)
    updates: UpdateActions = field(default_factory=UpdateActions)
    identity: IdentityActions = field(default_factory=IdentityActions)


class Page(QScrollArea):
    """A page; `body` is filled by the one who makes it. `key` names it for good, `title` is for people."""

    lasting = True
    """Whether it holds what its owner would miss: a search, a conversation, a place in a list."""

    def __init__(self, theme: Theme, actions: Actions, title: str) -> None:
        super().__init__()
        self.theme, self.ask = theme, actions
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.title = Label(title, "title")
        self.header: QHBoxLayout = row(gap=8)
        self.body: QVBoxLayout = column(gap=16)
        inside = QWidget()
        inside.setProperty("look", "page")
        inside.setMaximumWidth(WIDEST)
        self.title.setMinimumHeight(36)
        top = Bend(self.title, 1, self.header, gap=8)
        whole = column(top, gap=18, margins=(32, 22, 32, 28))
        whole.addLayout(self.body, 1)
        inside.setLayout(whole)
        inside.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        outside = _Outside()
        outside.setProperty("look", "page")
        around = row(inside, gap=0)
        outside.setLayout(around)
        self.setWidget(outside)

    def show_view(self, view: View) -> None:
        raise NotImplementedError

    def enter(self) -> None:
        """Somebody looks at this page now."""

    def leave(self) -> None:
        """No one does any more: another page is shown, or no window."""

    def close_down(self) -> None:
        """The window ends: whatever this page has started ends too."""

    def add(self, item: QWidget | QLayout, stretch: int = 0) -> None:
        if isinstance(item, QWidget):
            self.body.addWidget(item, stretch)
        else:
            self.body.addLayout(item, stretch)


class _Outside(QWidget):
    """What scrolls. Its height follows from its width alone: the least height of wrapped texts is the one that
    they have when they are narrow, and would leave a page's end empty."""

    def minimumSizeHint(self) -> QSize:
        least = super().minimumSizeHint()
        return QSize(least.width(), 0) if self.hasHeightForWidth() else least
