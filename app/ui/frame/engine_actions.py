"""The actions that pages may ask for concerning the engine of an installed app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing(*_: object) -> None:
    pass


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
