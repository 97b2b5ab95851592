"""The actions that pages may ask for concerning the owner's name among other Shoals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing(*_: object) -> None:
    pass


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
