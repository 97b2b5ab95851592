"""The actions that pages may ask for: models, the owner's name, new versions, the engine, pauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtWidgets import QMenu

from app.ui.language.texts import tr


def _nothing(*_: object) -> None:
    pass


def _hub() -> str:
    return "huggingface.co"


@dataclass(frozen=True)
class ModelActions:
    """`name` is an argument of --model. `get` must only be called after the person was told what it means and
    agreed."""

    refresh: Callable[[], None] = _nothing
    """Reads the library again; View.models follows."""
    get: Callable[[str], None] = _nothing
    cancel: Callable[[str], None] = _nothing
    retry: Callable[[str], None] = _nothing
    """Retries a waiting download now."""
    remove: Callable[[str], None] = _nothing
    choose: Callable[[str], None] = _nothing
    """Chooses the model that learns; a running node switches to it."""
    learn: Callable[[str], None] = _nothing
    """The same, and starts learning if nothing runs."""
    add_folder: Callable[[str], None] = _nothing
    export: Callable[[str, str, str], None] = _nothing
    """Writes what a model has learned, in a format of `./shoal export`, into a new folder."""
    back: Callable[[str], None] = _nothing
    """Puts the model back to its best round; what it learned later is deleted."""
    start_over: Callable[[str], None] = _nothing
    keep_token: Callable[[str], None] = _nothing
    serve: Callable[[bool], None] = _nothing
    """Whether other programs on this computer may use the chosen model."""
    host: Callable[[], str] = _hub
    """Where models are downloaded from: the hub, or the mirror of the settings."""


@dataclass(frozen=True)
class IdentityActions:
    """`words`, `restore` and `renew` must only be called after the person was told what they mean and
    agreed."""

    refresh: Callable[[], None] = _nothing
    """Looks again; View.persona follows."""
    words: Callable[[Callable[[str], None]], None] = _nothing
    """Passes the recovery words to this function; if they are not available, View.persona says why."""
    restore: Callable[[str], None] = _nothing
    """Restores the identity of these words. Learning pauses meanwhile."""
    renew: Callable[[], None] = _nothing
    """Makes a new name. Learning pauses meanwhile."""


@dataclass(frozen=True)
class UpdateActions:
    """Their results are in View.update_view."""

    check: Callable[[], None] = _nothing
    """Checks now, because the person pressed a button that names the host."""
    fetch: Callable[[], None] = _nothing
    install: Callable[[], None] = _nothing
    cancel: Callable[[], None] = _nothing
    show: Callable[[], None] = _nothing
    """Opens the folder with the downloaded file."""
    decide: Callable[[bool], None] = _nothing
    """Whether it may check once a day."""
    hide: Callable[[str], None] = _nothing
    """Stops showing this version on the overview."""


@dataclass(frozen=True)
class EngineActions:
    """`install` and `remove` must only be called after the person was told what they mean and agreed."""

    refresh: Callable[[], None] = _nothing
    """Looks again; View.pack follows."""
    install: Callable[[str, str], None] = _nothing
    """Takes a pack's name, and the folder to install it from; one of them may be empty."""
    repair: Callable[[], None] = _nothing
    rollback: Callable[[], None] = _nothing
    remove: Callable[[str], None] = _nothing
    retry: Callable[[], None] = _nothing
    cancel: Callable[[], None] = _nothing
    put_elsewhere: Callable[[str], None] = _nothing
    """Stores engines in this folder from now on."""
    not_now: Callable[[str], None] = _nothing
    """Does not offer this version again unasked."""


HOUR_S = 3600.0


def pauses(menu: QMenu, snooze: Callable[[float | None], None]) -> None:
    """Fills a menu with the lengths of pauses that end by themselves."""
    for text, seconds in (
        (tr("For 1 hour"), HOUR_S),
        (tr("For 3 hours"), 3 * HOUR_S),
        (tr("Until tomorrow morning"), None),
    ):
        menu.addAction(text).triggered.connect(lambda _=False, seconds=seconds: snooze(seconds))
