"""What this is, which version, and the keys that do something."""

from __future__ import annotations

import sys

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QWidget

from app.ui.texts import tr
from app.ui.widgets.icons import picture_icon
from app.ui.widgets.pieces import Label, button, column, row
from app.updates import installed

_MARK = 56


def shortcuts() -> list[tuple[str, str]]:
    """(key, what it does), as this system writes keys."""
    known = [
        ("Ctrl+1 … Ctrl+9", tr("Go to a page")),
        ("Ctrl+P", tr("Pause or resume")),
        ("Ctrl+F", tr("Search on this page")),
        ("Ctrl+,", tr("Settings")),
        (QKeySequence(QKeySequence.StandardKey.Quit).toString() or "Ctrl+Q", tr("Quit")),
    ]
    return [(key.replace("Ctrl+", "⌘") if sys.platform == "darwin" else key, what) for key, what in known]


class About(QDialog):
    def __init__(self, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("About Shoal"))
        picture = Label("")
        picture.setPixmap(picture_icon("shoal").pixmap(_MARK, _MARK))
        version = Label(tr("Version {version}", version=installed.version() or tr("unknown")), "soft")
        version.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        lead = row(picture, column(Label("Shoal", "title"), version, gap=2), 1, gap=16)
        what = Label(
            tr(
                "A model on your own computer learns to solve puzzles, alone or together with others. "
                "Free software under the Apache License 2.0."
            ),
            wrap=True,
        )
        keys = QGridLayout()
        keys.setHorizontalSpacing(24)
        for at, (key, does) in enumerate(shortcuts()):
            keys.addWidget(Label(key, "strong"), at, 0)
            keys.addWidget(Label(does), at, 1)
        keys.setColumnStretch(1, 1)
        inside = column(lead, what, Label(tr("Keys"), "heading"), gap=14, margins=(24, 22, 24, 20))
        inside.addLayout(keys)
        inside.addLayout(row(1, button(tr("Close"), self.accept)))
        self.setLayout(inside)
        self.setMinimumWidth(440)
