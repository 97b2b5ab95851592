"""The actions that pages may ask for concerning models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
    host: Callable[[], str] = _hub
    """Where models come from: the hub, or the mirror of the settings."""
