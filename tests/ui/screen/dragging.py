"""Another program from which a file is dragged: `python -m tests.ui.screen.dragging FILE`, a small window at
the top left of the screen. It says when it is there, and stays."""

from __future__ import annotations

import sys

from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QDrag, QMouseEvent
from PySide6.QtWidgets import QApplication, QLabel

SIDE = 40
"""Pixels."""


class Source(QLabel):
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        drag, carried = QDrag(self), QMimeData()
        carried.setUrls([QUrl.fromLocalFile(sys.argv[1])])
        drag.setMimeData(carried)
        drag.exec(Qt.DropAction.CopyAction)  # the other program asks for what is carried after its end


if __name__ == "__main__":
    app = QApplication(sys.argv)
    source = Source("file")
    source.setWindowFlag(Qt.WindowType.X11BypassWindowManagerHint)
    source.setGeometry(0, 0, SIDE, SIDE)
    source.show()
    print("there", flush=True)
    app.exec()
