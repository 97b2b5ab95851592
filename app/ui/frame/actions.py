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
    result: Callable[[Callable[[str, bool], None]], None] = _nothing
    """Saves a signed result of the chosen model where the person says; the function hears what came of it, and
    whether that is good."""
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
