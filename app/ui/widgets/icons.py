"""Our own drawings (resources/icons) as icons in any colour, sharp at any scale."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

FOLDER = Path(__file__).parents[3] / "resources" / "icons"


def drawn(name: str, colour: str, width: int, height: int, scale: float = 2.0) -> QPixmap:
    """A drawing with `currentColor` replaced; sizes in logical pixels."""
    source = (FOLDER / f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", colour)
    return rendered(source, width, height, scale)


def rendered(source: str, width: int, height: int, scale: float = 2.0) -> QPixmap:
    """An SVG; sizes in logical pixels."""
    renderer = QSvgRenderer(QByteArray(source.encode()))
    pixmap = QPixmap(QSize(round(width * scale), round(height * scale)))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, width * scale, height * scale))
    painter.end()
    pixmap.setDevicePixelRatio(scale)
    return pixmap


def line_icon(name: str, colour: str, checked: str | None = None, size: int = 18) -> QIcon:
    """An icon for a button, in another colour while it is checked."""
    icon = QIcon(drawn(name, colour, size, size))
    if checked is not None:
        icon.addPixmap(drawn(name, checked, size, size), QIcon.Mode.Normal, QIcon.State.On)
    return icon


def picture_icon(name: str) -> QIcon:
    """A coloured icon (the app's, the tray's) in the sizes systems ask for."""
    icon = QIcon()
    for size in (16, 22, 24, 32, 48, 64, 128):
        icon.addPixmap(drawn(name, "#000000", size, size, 1.0))
    return icon
