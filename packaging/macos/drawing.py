"""Draws what the app and its disk image look like in the Finder. Run with the build's own Python, which has Qt:

python drawing.py icon SVG OUT.icns
python drawing.py background OUT.png      (and OUT@2x.png for sharp screens)
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QBuffer, QIODevice, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QImage, QLinearGradient, QPainter, QPen

SIZES = {
    b"ic07": 128,
    b"ic08": 256,
    b"ic09": 512,
    b"ic10": 1024,
    b"ic11": 32,
    b"ic12": 64,
    b"ic13": 256,
    b"ic14": 512,
}
"""Pixels of the PNG pictures. ic10 to ic14 are for sharp screens: 16, 32, 128, 256 and 512 points at twice the
pixels."""
OLD = {(b"is32", b"s8mk"): 16, (b"il32", b"l8mk"): 32}
"""The smallest two are colours and a mask: as PNG they are drawn wrongly in places."""
SHARE = 824 / 1024
"""Of its field, an icon of macOS fills so much; the rest is air."""
DRAWN = 60 / 64
"""Of its own field, shoal.svg does."""
WIDTH, HEIGHT = 660, 420
GROUND, DEEP, LINE = "#f6f8f8", "#dbeef0", "#4a97a4"
"""Of the light theme (app/ui/theme/palette.py); the line is its accent, softened."""


def icon(svg: Path) -> bytes:
    """An .icns file."""
    parts = [(kind, _png(picture(svg, pixels))) for kind, pixels in SIZES.items()]
    for (colours, mask), pixels in OLD.items():
        image = picture(svg, pixels).convertToFormat(QImage.Format.Format_RGBA8888)
        data = bytes(image.constBits())
        parts.append((colours, b"".join(packed(data[channel::4]) for channel in range(3))))
        parts.append((mask, data[3::4]))
    body = b"".join(kind + struct.pack(">I", len(data) + 8) + data for kind, data in parts)
    return b"icns" + struct.pack(">I", len(body) + 8) + body


def packed(channel: bytes) -> bytes:
    """Run-length coding of icns: 0-127 and then n + 1 bytes as they are, 128-255 and a byte n - 125 times.

    >>> packed(bytes([7] * 5)), packed(bytes([1, 2, 2])), packed(b"")
    (b'\\x82\\x07', b'\\x02\\x01\\x02\\x02', b'')
    """
    out, at = bytearray(), 0
    while at < len(channel):
        run = 1
        while run < 130 and channel[at + run : at + run + 1] == channel[at : at + 1]:
            run += 1
        if run >= 3:
            out += bytes([run + 125, channel[at]])
            at += run
            continue
        end = at
        while (
            end < len(channel)
            and end - at < 128
            and len(set(channel[end : end + 3])) + (end + 3 > len(channel)) > 1
        ):
            end += 1
        out += bytes([end - at - 1]) + channel[at:end]
        at = end
    return bytes(out)


def picture(svg: Path, pixels: int) -> QImage:
    image = QImage(pixels, pixels, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    size = pixels * SHARE / DRAWN
    drawn = QIcon(str(svg)).pixmap(1024).toImage()
    painter = QPainter(image)
    painter.setRenderHints(QPainter.RenderHint.SmoothPixmapTransform | QPainter.RenderHint.Antialiasing)
    small = drawn.scaled(
        max(1, round(size)),
        max(1, round(size)),
        Qt.AspectRatioMode.KeepAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    )
    edge = (pixels - small.width()) / 2
    painter.drawImage(QPointF(edge, edge), small)
    painter.end()
    return image


def background(scale: int) -> QImage:
    """The ground of the disk image's window, with an arrow from the app to Applications."""
    image = QImage(WIDTH * scale, HEIGHT * scale, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(scale, scale)
    shade = QLinearGradient(0, 0, 0, HEIGHT)
    shade.setColorAt(0, QColor(GROUND))
    shade.setColorAt(1, QColor(DEEP))
    painter.fillRect(QRectF(0, 0, WIDTH, HEIGHT), shade)
    pen = QPen(QColor(LINE), 5)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    tip = QPointF(376, 205)
    painter.drawLine(QPointF(286, 205), tip)
    painter.drawPolyline([QPointF(356, 187), tip, QPointF(356, 223)])
    painter.end()
    image.setDotsPerMeterX(round(2835 * scale))
    image.setDotsPerMeterY(round(2835 * scale))
    return image


def _png(image: QImage) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return bytes(buffer.data().data())


def main(arguments: list[str]) -> int:
    application = QGuiApplication(arguments[:1])
    if arguments[1] == "icon":
        Path(arguments[3]).write_bytes(icon(Path(arguments[2])))
    else:
        to = Path(arguments[2])
        background(1).save(str(to))
        background(2).save(str(to.with_name(f"{to.stem}@2x{to.suffix}")))
    del application
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
