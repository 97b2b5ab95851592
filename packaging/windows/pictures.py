"""Draws what the installer shows, with Qt and in the app's own colours: `pictures.py SHOAL.SVG FONT FOLDER`.

shoal.ico (16 to 256 pixels), side-100.bmp beside the first and last page, header-100.bmp on the others, and
both for screens that show 150 and 200 % of that. Runs with the Python of the build, which has Qt.
"""

from __future__ import annotations

import math
import re
import struct
import sys
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QGuiApplication,
    QIcon,
    QImage,
    QLinearGradient,
    QPainter,
    QPainterPath,
    QRadialGradient,
)

ICON_SIZES = (16, 20, 24, 32, 40, 48, 64, 128, 256)
PERCENT = (100, 150, 200)
SIDE, HEADER = (164, 314), (150, 57)
"""Pixels at 100 %: what the Modern User Interface has room for."""
DEEP, WATER, LIGHT = QColor("#06262c"), QColor("#0b7285"), QColor("#2ba3b4")
FISH = (QColor("#ffffff"), QColor("#8fdbe4"), QColor("#c9f0f4"))
"""As in shoal.svg."""
COUNT, GOLDEN = 44, (math.sqrt(5) - 1) / 2


def main(svg: Path, font: Path, to: Path) -> None:
    application = QGuiApplication(["pictures", "-platform", "offscreen"])
    families = QFontDatabase.applicationFontFamilies(QFontDatabase.addApplicationFont(str(font)))
    fish = outline(svg.read_text(encoding="utf-8"))
    to.mkdir(parents=True, exist_ok=True)
    icon = QIcon(str(svg))
    (to / "shoal.ico").write_bytes(ico([icon.pixmap(size).toImage() for size in ICON_SIZES]))
    for percent in PERCENT:
        side(fish, families[0], percent / 100).save(str(to / f"side-{percent}.bmp"))
        header(icon, percent / 100).save(str(to / f"header-{percent}.bmp"))
    del application


def outline(svg: str) -> QPainterPath:
    """The fish of the icon: its first path, which is made of the commands M, C, L and Z."""
    path = QPainterPath()
    for letter, rest in re.findall(r"([MCLZ])([^MCLZ]*)", re.findall(r'<path d="([^"]+)"', svg)[0]):
        numbers = [float(one) for one in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", rest)]
        points = [QPointF(x, y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        match letter:
            case "M":
                path.moveTo(points[0])
            case "L":
                path.lineTo(points[0])
            case "C":
                for at in range(0, len(points), 3):
                    path.cubicTo(*points[at : at + 3])
            case "Z":
                path.closeSubpath()
    return path


def side(fish: QPainterPath, family: str, scale: float) -> QImage:
    """A shoal on its way up to the light, all alike and no two the same."""
    width, height = SIDE
    image, painter = canvas(SIDE, scale)
    ground = QLinearGradient(0, 0, width * 0.35, height)
    for at, colour in ((0, LIGHT), (0.28, WATER), (1, DEEP)):
        ground.setColorAt(at, colour)
    painter.fillRect(0, 0, width, height, ground)
    glow = QRadialGradient(width * 0.8, -20, 190)
    glow.setColorAt(0, QColor(255, 255, 255, 70))
    glow.setColorAt(1, QColor(255, 255, 255, 0))
    painter.fillRect(0, 0, width, height, glow)
    for number in range(COUNT):
        along = (number + 0.5) / COUNT
        aside = 2 * (number * GOLDEN % 1) - 1  # evenly over the width, never in a row
        spread = 44 * math.sin(math.pi * (0.12 + 0.84 * along)) + 6
        x = 22 + 104 * along + aside * spread * 0.78
        y = 262 - 214 * along**1.08 + aside * spread * 0.62
        size = 0.46 + 0.6 * along + 0.14 * math.sin(number * 4.1)
        colour = QColor(FISH[number % 3])
        colour.setAlphaF(0.16 + 0.78 * along**1.4)
        painter.save()
        painter.translate(x, y)
        painter.rotate(-52 + 9 * math.sin(number * 2.3))
        painter.scale(size, size)
        painter.fillPath(fish, colour)
        painter.restore()
    painter.setPen(QColor("#ffffff"))
    name = QFont(family)
    name.setPixelSize(25)
    name.setWeight(QFont.Weight.DemiBold)
    painter.setFont(name)
    painter.drawText(QRectF(18, height - 52, width - 30, 34), Qt.AlignmentFlag.AlignVCenter, "Shoal")
    painter.end()
    return image


def header(icon: QIcon, scale: float) -> QImage:
    """The icon at the right of a white band."""
    width, height = HEADER
    image, painter = canvas(HEADER, scale)
    painter.fillRect(0, 0, width, height, QColor("#ffffff"))
    edge = 38
    drawn = icon.pixmap(round(edge * scale)).toImage()
    painter.drawImage(QRectF(width - edge - 10, (height - edge) / 2, edge, edge), drawn)
    painter.end()
    return image


def canvas(size: tuple[int, int], scale: float) -> tuple[QImage, QPainter]:
    """Painted on in pixels at 100 %."""
    image = QImage(round(size[0] * scale), round(size[1] * scale), QImage.Format.Format_RGB888)
    painter = QPainter(image)
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
    painter.scale(image.width() / size[0], image.height() / size[1])
    return image, painter


def ico(images: list[QImage]) -> bytes:
    """An icon file: small pictures as bitmaps, which every part of Windows reads, the largest as PNG."""
    parts = [bitmap(image) if image.width() < 256 else png(image) for image in images]
    at = 6 + 16 * len(parts)
    entries = b""
    for image, part in zip(images, parts, strict=True):
        edge = image.width() % 256
        entries += struct.pack("<BBBBHHII", edge, edge, 0, 0, 1, 32, len(part), at)
        at += len(part)
    return struct.pack("<HHH", 0, 1, len(parts)) + entries + b"".join(parts)


def bitmap(image: QImage) -> bytes:
    """Rows from the bottom, four bytes a pixel; behind them a mask that masks nothing, since there is alpha."""
    image = image.convertToFormat(QImage.Format.Format_ARGB32)
    edge = image.width()
    content = bytes(image.constBits())
    rows = b"".join(content[4 * edge * y : 4 * edge * (y + 1)] for y in reversed(range(edge)))
    mask = bytes((edge + 31) // 32 * 4 * edge)
    return (
        struct.pack("<IiiHHIIiiII", 40, edge, 2 * edge, 1, 32, 0, len(rows) + len(mask), 0, 0, 0, 0)
        + rows
        + mask
    )


def png(image: QImage) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return bytes(buffer.data().data())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
