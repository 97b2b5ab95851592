"""A card to share: whose model, its fish, its curve, three skills, the day, and an invite as a QR code where
its owner wants one. Nothing else: no path, no name of a computer, no text of a question."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtSvg import QSvgGenerator

from app.ui.fish.fish import paint
from app.ui.language.texts import number, percent, tr
from app.ui.theme import Theme
from app.ui.theme.theme import font
from app.ui.view import growth, words
from app.ui.view.view import FamilyView, View
from app.ui.widgets.qr_code import MOST, SIDE, encode

WIDE, HIGH = 1200, 630
"""As most places show a picture behind a link."""
_LEFT, _RIGHT = 64, 1136
_BOLD = QFont.Weight.DemiBold


def can_hold(invite: str) -> bool:
    """Whether the code has room for it."""
    return 0 < len(invite.encode()) <= MOST


def best(view: View) -> list[FamilyView]:
    """The three skills that it is best at now."""
    measured = [family for family in view.families if family.latest is not None]
    return sorted(measured, key=lambda family: (-(family.latest or 0.0), family.title))[:3]


def told(view: View) -> str:
    """The card in words."""
    skills = ", ".join(f"{family.title} {percent(family.latest)}" for family in best(view))
    said = f"{_name(view)}. {_lead(view)}."
    return f"{said} {tr('Best at: {skills}.', skills=skills)}" if skills else said


def png(theme: Theme, view: View, invite: str = "", scale: float = 1.0) -> QImage:
    made = QImage(QSize(round(WIDE * scale), round(HIGH * scale)), QImage.Format.Format_RGB32)
    painter = QPainter(made)
    painter.scale(scale, scale)
    draw(painter, theme, view, invite)
    painter.end()
    return made


def svg(theme: Theme, view: View, invite: str = "") -> bytes:
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(QSize(WIDE, HIGH))
    generator.setViewBox(QRectF(0, 0, WIDE, HIGH))
    generator.setTitle(_name(view))
    generator.setDescription(told(view))
    painter = QPainter(generator)
    draw(painter, theme, view, invite)
    painter.end()
    return bytes(content.data())


def save(path: Path, theme: Theme, view: View, invite: str = "") -> None:
    """By its ending as SVG, else as PNG. Raises OSError."""
    if path.suffix.lower() == ".svg":
        path.write_bytes(svg(theme, view, invite))
    elif not png(theme, view, invite, 2.0).save(str(path), "PNG"):  # type: ignore[call-overload]
        raise OSError(tr("the picture can't be written there"))


def draw(painter: QPainter, theme: Theme, view: View, invite: str = "") -> None:
    """On WIDE x HIGH."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRectF(0, 0, WIDE, HIGH), theme.colour("surface"))
    _water(painter, theme)
    held = can_hold(invite)
    length = 300 * growth.now(view).length
    middle = 950 if not held else 870
    paint(painter, theme, growth.now(view), QPointF(middle + length / 2, 150), length, 0.12)
    _text(painter, theme, 64, 96, _name(view), 46, "text", _BOLD)
    _text(painter, theme, 64, 142, _lead(view), 24, "text_soft")
    _curve(painter, theme, view, QRectF(_LEFT, 216, 640, 290))
    for place, family in enumerate(best(view)):
        _skill(painter, theme, family, 262 + 84 * place)
    if held:
        _code(painter, invite, QRectF(1010, 40, 126, 126))
    painter.setPen(QPen(theme.colour("line_strong"), 1))
    painter.drawLine(QPointF(_LEFT, 556), QPointF(_RIGHT, 556))
    foot = "  ·  ".join((tr("Round {n}", n=number(view.safe_round)), words.day(time.time())))
    _text(painter, theme, 64, 594, foot, 20, "text_soft")
    own = tr("Learned at home with Shoal, on puzzles")
    _text(painter, theme, _RIGHT, 594, own, 20, "accent", _BOLD, right=True)


def _name(view: View) -> str:
    return words.model_name(view) or tr("A model")


def _lead(view: View) -> str:
    if not view.curve:
        return tr("It has just begun.")
    first, last = view.curve[0], view.curve[-1]
    return tr(
        "Solves {last} of 100 new puzzles (± {error}), {first} when it started",
        last=number(100 * last.share),
        error=number(100 * last.stderr),
        first=number(100 * first.share),
    )


def _text(
    painter: QPainter,
    theme: Theme,
    x: float,
    y: float,
    text: str,
    size: int,
    colour: str,
    weight: QFont.Weight = QFont.Weight.Normal,
    right: bool = False,
) -> None:
    """On the line y; too long a text loses its end."""
    chosen = font(size, weight)
    painter.setFont(chosen)
    painter.setPen(theme.colour(colour))
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, 700 if not right else 560)
    left = x - painter.fontMetrics().horizontalAdvance(shown) if right else x
    painter.drawText(QPointF(left, y), shown)


def _water(painter: QPainter, theme: Theme) -> None:
    """A swell in the upper right, behind the fish."""
    swell = QPainterPath(QPointF(WIDE, 0))
    swell.lineTo(724, 0)
    swell.cubicTo(750, 110, 706, 186, 830, 212)
    swell.cubicTo(940, 236, 1050, 196, WIDE, 224)
    swell.closeSubpath()
    painter.fillPath(swell, theme.colour("accent_soft", 0.7))


def _curve(painter: QPainter, theme: Theme, view: View, room: QRectF) -> None:
    """With its error band, from 0 to the next fifth above its highest."""
    if len(view.curve) < 2:
        return
    top = next((q for q in (0.2, 0.4, 0.6, 0.8) if max(one.share for one in view.curve) < q * 0.96), 1.0)
    last = max(1, view.curve[-1].round)

    def place(round: float, share: float) -> QPointF:
        return QPointF(
            room.left() + 56 + (room.width() - 66) * round / last,
            room.bottom() - 30 - (room.height() - 44) * min(1.0, max(0.0, share / top)),
        )

    for part in (0.0, 0.5, 1.0):
        y = place(0, part * top).y()
        painter.setPen(QPen(theme.colour("grid"), 1.4))
        painter.drawLine(QPointF(room.left() + 56, y), QPointF(room.right(), y))
        _text(painter, theme, room.left(), y + 6, percent(part * top), 17, "text_faint")
    _text(painter, theme, room.right(), room.bottom(), tr("rounds"), 17, "text_faint", right=True)
    above = [place(one.round, one.share + one.stderr) for one in view.curve]
    below = [place(one.round, one.share - one.stderr) for one in view.curve]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour("own", 0.18))
    painter.drawPolygon(QPolygonF([*above, *reversed(below)]))
    line = [place(one.round, one.share) for one in view.curve]
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(theme.colour("own"), 4, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    painter.drawPolyline(QPolygonF(line))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour("own"))
    painter.drawEllipse(line[-1], 8, 8)


def _skill(painter: QPainter, theme: Theme, family: FamilyView, y: float) -> None:
    left, share = 776.0, family.latest or 0.0
    _text(painter, theme, left, y, family.title, 22, "text", _BOLD)
    _text(painter, theme, _RIGHT, y, percent(share), 22, "text", _BOLD, right=True)
    track = QRectF(left, y + 14, _RIGHT - left, 12)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour("sunken"))
    painter.drawRoundedRect(track, 6, 6)
    painter.setBrush(theme.colour("own"))
    painter.drawRoundedRect(QRectF(left, y + 14, max(12.0, track.width() * share), 12), 6, 6)


def _code(painter: QPainter, invite: str, room: QRectF) -> None:
    """Dark on light in every theme, with the quiet zone that cameras want."""
    modules, quiet = encode(invite), 4
    size = room.width() / (SIDE + 2 * quiet)
    painter.fillRect(room, QColor("white"))
    for at, line in enumerate(modules):
        for column, dark in enumerate(line):
            if dark:
                left, top = room.left() + (column + quiet) * size, room.top() + (at + quiet) * size
                painter.fillRect(QRectF(left, top, size + 0.05, size + 0.05), QColor("black"))
