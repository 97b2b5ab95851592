"""The frame that all pages share: a title, room for buttons beside it, and a body that scrolls if it must."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

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
    """Actions on models, requested by pages. A model's name is an argument of --model. Call `get` only after
    the person was told what it means and agreed."""

    refresh: Callable[[], None] = _nothing
    """Reads the library again; the result arrives in View.models."""
    get: Callable[[str], None] = _nothing
    cancel: Callable[[str], None] = _nothing
    retry: Callable[[str], None] = _nothing
    """Retries a waiting download now."""
    remove: Callable[[str], None] = _nothing
    choose: Callable[[str], None] = _nothing
    """Chooses the model that learns; a running node switches to it."""
    learn: Callable[[str], None] = _nothing
    """Chooses the model that learns, like `choose`, and starts learning if no node is running."""
    add_folder: Callable[[str], None] = _nothing
    export: Callable[..., None] = _nothing
    """Writes what a model has learned, in a format of `./shoal export`, into a new folder; a fourth argument is
    the name of the skill that is wanted instead of the puzzles."""
    back: Callable[[str], None] = _nothing
    """Puts the model back to its best round; what it learned later is deleted."""
    start_over: Callable[[str], None] = _nothing
    keep_token: Callable[[str], None] = _nothing
    serve: Callable[[bool], None] = _nothing
    """Starts or stops serving the chosen model to other programs on this computer."""
    result: Callable[[Callable[[str, bool], None]], None] = _nothing
    """Saves a signed result of the chosen model to a place that the person picks. The callback gets a sentence
    and whether it succeeded."""
    host: Callable[[], str] = _hub
    """Returns where models are downloaded from: the hub, or the mirror in the settings."""


@dataclass(frozen=True)
class IdentityActions:
    """Actions on the identity. Call `words`, `restore` and `renew` only after the person was told what they
    mean and agreed."""

    refresh: Callable[[], None] = _nothing
    """Reads the identity again; the result arrives in View.persona."""
    words: Callable[[Callable[[str], None]], None] = _nothing
    """Passes the recovery words to the callback; if they are not available, View.persona says why."""
    restore: Callable[[str], None] = _nothing
    """Restores the identity that these words belong to. Learning pauses until it is done."""
    renew: Callable[[], None] = _nothing
    """Creates an identity with a new name. Learning pauses until it is done."""


@dataclass(frozen=True)
class UpdateActions:
    """Actions on new versions of Shoal; results arrive in View.update_view."""

    check: Callable[[], None] = _nothing
    """Checks now, because the person pressed a button that names the host."""
    cancel_check: Callable[[], None] = _nothing
    decide: Callable[[bool], None] = _nothing
    """Allows or forbids the daily check."""
    hide: Callable[[str], None] = _nothing
    """Stops showing this version on the overview."""


@dataclass(frozen=True)
class EngineActions:
    """Actions on engines. Call `install` and `remove` only after the person was told what they mean and
    agreed."""

    refresh: Callable[[], None] = _nothing
    """Looks for engines again; the result arrives in View.pack."""
    install: Callable[[str, str], None] = _nothing
    """Takes a pack's name, and the folder to install it from; one of them may be empty."""
    repair: Callable[[], None] = _nothing
    remove: Callable[[], None] = _nothing
    retry: Callable[[], None] = _nothing
    cancel: Callable[[], None] = _nothing
    not_now: Callable[[str], None] = _nothing
    """Stops offering this version unasked."""


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
    """Actions that pages can request."""

    start: Callable[[], None]
    """Ends every pause: learns from now on whenever the rules allow."""
    contribute: Callable[[bool], None]
    """Turns learning whenever nobody uses the computer on or off."""
    insist: Callable[[], None]
    """Learns for a while even if other programs are busy."""
    pause: Callable[[], None]
    snooze: Callable[[float | None], None]
    """Pauses for this many seconds, or until tomorrow."""
    finish: Callable[[], None]
    """Pauses after the current round."""
    learn: Callable[[str], None]
    """Learns "alone" or with "others" from now on."""
    alone: Callable[[], None]
    """Stops learning with others; a pause stays in force."""
    join: Callable[[str], None]
    """Joins the swarm of an invite; "" joins any swarm that is found."""
    join_private: Callable[[str], None]
    """Joins the private swarm of these six words. Raises OSError if they cannot be stored."""
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
    want_questions: Callable[[Iterable[Coordinates]], None]
    """Requests the texts of these questions, which arrive in a later View."""
    set_choice: Callable[[str, object], None]
    """Changes a setting of the window. Raises OSError, and AutostartError for starting at login."""
    set_rule: Callable[[str, object], None]
    """Changes a rule. Raises PreferenceError for an invalid value, OSError if it cannot be saved."""
    starts_at_login: Callable[[], bool]
    reopen: Callable[[], None]
    """Closes the window and opens it again."""
    use_folder: Callable[[Path], None]
    """Makes this the data folder, and opens the window again with it. Raises NodeError."""
    remove_all: Callable[[], None]
    """Removes everything that Shoal stores on this computer, and closes the window."""
    choices: Choices
    rejoin: Callable[[], None] = lambda: None
    """Tries the relay of a lesson that has ended."""
    skip: Callable[[], None] = lambda: None
    """Skips the rest of the placement and starts learning."""
    learn_questions: Callable[[tuple[str, ...]], None] = lambda marks: None
    """Learns these question sets (hashes of their contents) from now on, in turns; puzzles if there are
    none."""
    ask_skill: Callable[[str, str, Callable[[AskedAnswer | str], None]], None] = lambda skill, text, hear: None
    """Asks a skill (its set's hash) a text; `hear` gets the answer, or a sentence that says why there is
    none."""
    models: ModelActions = field(default_factory=ModelActions)
    engine: EngineActions = field(default_factory=EngineActions)
    updates: UpdateActions = field(default_factory=UpdateActions)
    identity: IdentityActions = field(default_factory=IdentityActions)


T = TypeVar("T", Actions, ModelActions, EngineActions, UpdateActions, IdentityActions)


def collect_actions(kind: type[T], by: object, **others: object) -> T:
    """Builds a set of actions. Each field is taken from `others`, else from the method of `by` with the same
    name; without either, the field's default stays."""
    names = (one.name for one in fields(kind))
    found = {name: getattr(by, name) for name in names if hasattr(by, name)}
    return kind(**{**found, **others})


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
