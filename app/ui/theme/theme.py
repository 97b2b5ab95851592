"""The palette in use: the system's, or the one chosen in the settings. Provides colours for widgets that paint
themselves, and the drawings of resources/icons as icons in any colour, sharp at any scale."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from app.ui.theme import palette as sizes
from app.ui.theme.palette import DARK, LIGHT, Palette, sheet

FONTS = Path(__file__).parents[3] / "resources" / "fonts"
Choice = Literal["system", "light", "dark"]


class Theme(QObject):
    """The current appearance: `palette` is current; `changed` is emitted when it has been replaced."""

    changed = Signal()

    def __init__(self, application: QApplication, choice: Choice = "system") -> None:
        super().__init__()
        self._application = application
        self._choice: Choice = choice
        for file in sorted(FONTS.glob("*.otf")):
            QFontDatabase.addApplicationFont(str(file))
        if application.font() != font(sizes.BODY):
            application.setStyle("Fusion")
            application.setFont(font(sizes.BODY))
        application.styleHints().colorSchemeChanged.connect(self._follow)
        self.palette = self._wanted()
        self._apply()

    def choose(self, choice: Choice) -> None:
        self._choice = choice
        self._follow()

    def colour(self, name: str, alpha: float = 1.0) -> QColor:
        """Returns a colour of the palette by its field's name."""
        colour = QColor(getattr(self.palette, name))
        colour.setAlphaF(alpha)
        return colour

    def _wanted(self) -> Palette:
        if self._choice != "system":
            return DARK if self._choice == "dark" else LIGHT
        dark = self._application.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return DARK if dark else LIGHT

    def _follow(self) -> None:
        wanted = self._wanted()
        if wanted is not self.palette:
            self.palette = wanted
            self._apply()
            self.changed.emit()

    def _apply(self) -> None:
        wanted = sheet(self.palette)
        if self._application.styleSheet() != wanted:  # each time every widget is polished again
            self._application.setPalette(_qt_palette(self.palette))
            self._application.setStyleSheet(wanted)


def font(size: int, weight: QFont.Weight = QFont.Weight.Normal, display: bool = False) -> QFont:
    """Returns the bundled font at a size in pixels, with digits of equal width; `display` is its cut for large
    sizes."""
    made = QFont()
    made.setFamilies(["Inter Display", "Inter"] if display else ["Inter"])
    made.setPixelSize(size)
    made.setWeight(weight)
    made.setFeature(QFont.Tag("tnum"), 1)
    made.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return made


def mono(size: int) -> QFont:
    """Returns the system's monospaced font, for answers of models."""
    made = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    made.setPixelSize(size)
    return made


def _qt_palette(colours: Palette) -> QPalette:
    """Returns the colours that the style sheet does not set: selections, disabled text, native parts."""
    made, roles = QPalette(), QPalette.ColorRole
    texts = (roles.Text, roles.ButtonText, roles.WindowText)
    for colour, of in (
        (colours.ground, (roles.Window, roles.ToolTipText)),
        (colours.surface, (roles.Base, roles.Button)),
        (colours.sunken, (roles.AlternateBase,)),
        (colours.text, (*texts, roles.ToolTipBase)),
        (colours.text_faint, (roles.PlaceholderText,)),
        (colours.bad, (roles.BrightText,)),
        (colours.accent, (roles.Highlight, roles.Link, roles.Accent)),
        (colours.on_accent, (roles.HighlightedText,)),
    ):
        for role in of:
            made.setColor(role, QColor(colour))
    for role in texts:
        made.setColor(QPalette.ColorGroup.Disabled, role, QColor(colours.text_faint))
    return made


FOLDER = Path(__file__).parents[3] / "resources" / "icons"


def drawn(name: str, colour: str, width: int, height: int, scale: float = 2.0) -> QPixmap:
    """Renders a drawing with `currentColor` replaced; sizes in logical pixels."""
    source = (FOLDER / f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", colour)
    return rendered(source, width, height, scale)


def rendered(source: str, width: int, height: int, scale: float = 2.0) -> QPixmap:
    """Renders an SVG; sizes in logical pixels."""
    renderer = QSvgRenderer(QByteArray(source.encode()))
    pixmap = QPixmap(QSize(round(width * scale), round(height * scale)))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, width * scale, height * scale))
    painter.end()
    pixmap.setDevicePixelRatio(scale)
    return pixmap


def line_icon(name: str, colour: str, checked: str | None = None, size: int = 18) -> QIcon:
    """Returns an icon for a button, in another colour while it is checked."""
    icon = QIcon(drawn(name, colour, size, size))
    if checked is not None:
        icon.addPixmap(drawn(name, checked, size, size), QIcon.Mode.Normal, QIcon.State.On)
    return icon


def picture_icon(name: str) -> QIcon:
    """Returns a coloured icon (the app's, the tray's) in the sizes that systems use."""
    icon = QIcon()
    for size in (16, 22, 24, 32, 48, 64, 128):
        icon.addPixmap(drawn(name, "#000000", size, size, 1.0))
    return icon
