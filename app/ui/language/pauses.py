"""How long a pause can be that ends by itself: the same choices on the overview and in the tray."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QMenu

from app.ui.language.texts import tr

HOUR_S = 3600.0


def pauses(menu: QMenu, snooze: Callable[[float | None], None]) -> None:
    """Fills a menu with how long a pause can be that ends by itself."""
    for text, seconds in (
        (tr("For 1 hour"), HOUR_S),
        (tr("For 3 hours"), 3 * HOUR_S),
        (tr("Until tomorrow morning"), None),
    ):
        menu.addAction(text).triggered.connect(lambda _=False, seconds=seconds: snooze(seconds))
