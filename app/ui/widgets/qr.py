"""A QR code, dark on light in every theme: many cameras read no other."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.ui.widgets.qr_code import SIDE, encode

_MODULE, _QUIET = 4, 4


class QrCode(QWidget):
    """`name` is what it is called aloud."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._modules = encode("")
        self.setAccessibleName(name)
        self.setToolTip(name)
        side = (SIDE + 2 * _QUIET) * _MODULE
        self.setFixedSize(side, side)

    def show_text(self, text: str) -> None:
        self._modules = encode(text)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor("white"))
        for row, line in enumerate(self._modules):
            for column, dark in enumerate(line):
                if dark:
                    left, top = (column + _QUIET) * _MODULE, (row + _QUIET) * _MODULE
                    painter.fillRect(QRectF(left, top, _MODULE, _MODULE), QColor("black"))
        painter.end()
