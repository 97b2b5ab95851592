"""The frame that all pages share: a title, room for buttons beside it, and a body that scrolls when it must."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLayout,
    QMenu,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.node.history.milestones import Milestone, MilestoneKind
from app.sapo.questions import Coordinates
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.view.settings import Choices
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Label, column, row


def _nothing(*_: object) -> None:
    pass


def _hub() -> str:
    return "huggingface.co"


@dataclass(frozen=True)
class ModelActions:
    """`name` is what --model takes. Anyone who calls `get` has shown the person what it means and was told
    yes."""

    refresh: Callable[[], None] = _nothing
    """Reads the library again; View.models follows."""
    get: Callable[[str], None] = _nothing
    cancel: Callable[[str], None] = _nothing
    retry: Callable[[str], None] = _nothing
    """Tries a download that waits again, now."""
    remove: Callable[[str], None] = _nothing
    choose: Callable[[str], None] = _nothing
    """Learns with it; a node that runs changes over."""
    learn: Callable[[str], None] = _nothing
    """The same, and begins at once where nothing runs."""
    add_folder: Callable[[str], None] = _nothing
    export: Callable[[str, str, str], None] = _nothing
    """What a model has learned, in a format of `./shoal export`, into a new folder."""
    back: Callable[[str], None] = _nothing
    """To its best round; what it learned later is deleted."""
    start_over: Callable[[str], None] = _nothing
    keep_token: Callable[[str], None] = _nothing
    serve: Callable[[bool], None] = _nothing
    """Whether other programs on this computer may use the chosen model."""
    host: Callable[[], str] = _hub
    """Where models come from: the hub, or the mirror of the settings."""


@dataclass(frozen=True)
class IdentityActions:
    """Anyone who calls `words`, `restore` or `renew` has shown the person what it means and was told yes."""

    refresh: Callable[[], None] = _nothing
    """Looks again; View.persona follows."""
    words: Callable[[Callable[[str], None]], None] = _nothing
    """Gives the recovery words to this function; where they cannot be had, View.persona says why."""
    restore: Callable[[str], None] = _nothing
    """From these words. Learning rests meanwhile."""
    renew: Callable[[], None] = _nothing
    """Takes a new name. Learning rests meanwhile."""


@dataclass(frozen=True)
class UpdateActions:
    """View.update_view follows."""

    check: Callable[[], None] = _nothing
    """Asks at once: the person pressed a button that says whom."""
    fetch: Callable[[], None] = _nothing
    install: Callable[[], None] = _nothing
    cancel: Callable[[], None] = _nothing
    show: Callable[[], None] = _nothing
    """Opens the folder with the file."""
    decide: Callable[[bool], None] = _nothing
    """Whether it may look once a day."""
    hide: Callable[[str], None] = _nothing
    """Says no more about this version on the overview."""


@dataclass(frozen=True)
class EngineActions:
    """Anyone who calls `install` or `remove` has shown the person what it means and was told yes."""

    refresh: Callable[[], None] = _nothing
    """Looks again; View.pack follows."""
    install: Callable[[str, str], None] = _nothing
    """A pack's name, and the folder it is taken from; one of them may be empty."""
    repair: Callable[[], None] = _nothing
    rollback: Callable[[], None] = _nothing
    remove: Callable[[str], None] = _nothing
    retry: Callable[[], None] = _nothing
    cancel: Callable[[], None] = _nothing
    put_elsewhere: Callable[[str], None] = _nothing
    """Into this folder, from now on."""
    not_now: Callable[[str], None] = _nothing
    """The offer of this version is not made again by itself."""


HOUR_S = 3600.0


def pauses(menu: QMenu, snooze: Callable[[float | None], None]) -> None:
    """Fills a menu with how long a pause can be that ends by itself."""
    for text, seconds in (
        (tr("For 1 hour"), HOUR_S),
        (tr("For 3 hours"), 3 * HOUR_S),
        (tr("Until tomorrow morning"), None),
    ):
        menu.addAction(text).triggered.connect(lambda _=False, seconds=seconds: snooze(seconds))


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


def open_milestone(one: Milestone, actions: Actions) -> None:
    """The answers of that round. A measurement keeps none, so it opens what was measured."""
    if one.kind is MilestoneKind.MEASURED_HALF:
        actions.go("skills")
    else:
        actions.show_round(one.round)


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
