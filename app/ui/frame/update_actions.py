"""The actions that pages may ask for concerning new versions of Shoal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing(*_: object) -> None:
    pass


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
