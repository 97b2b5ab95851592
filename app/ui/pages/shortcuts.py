"""The keys that do something in the window."""

from __future__ import annotations

import sys

from PySide6.QtGui import QKeySequence

from app.ui.language.texts import tr


def shortcuts() -> list[tuple[str, str]]:
    """(key, what it does), as this system writes keys."""
    known = [
        ("Ctrl+1 … Ctrl+9", tr("Go to a page")),
        ("Ctrl+P", tr("Pause or resume")),
        ("Ctrl+F", tr("Search on this page")),
        ("Ctrl+,", tr("Settings")),
        ("F1", tr("Help")),
        (QKeySequence(QKeySequence.StandardKey.Quit).toString() or "Ctrl+Q", tr("Quit")),
    ]
    return [(key.replace("Ctrl+", "⌘") if sys.platform == "darwin" else key, what) for key, what in known]
