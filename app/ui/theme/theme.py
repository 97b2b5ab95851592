"""The palette in use: the system's, or the one chosen in the settings; the colours and sizes of all widgets and
the style sheet made from them; the drawings of resources/icons as icons in any colour, sharp at any scale.

Text has a contrast to its background of at least 4.5 : 1 (tests/ui/theme/test_theme.py computes it), and no
meaning is carried by colour alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Literal

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

Palette = SimpleNamespace
"""Colours as #rrggbb, by their names in `_COLOURS`, and the palette's `name`."""
_COLOURS = {
    "ground": ("#f6f8f8", "#0d171b"),  # the window
    "side": ("#edf2f2", "#0a1215"),
    "surface": ("#ffffff", "#132127"),  # cards
    "sunken": ("#eff3f4", "#0e191e"),  # fields and tracks
    "hover": ("#e7edee", "#1a2b32"),
    "raised": ("#ffffff", "#26404a"),  # the selected option on a track
    "trough": ("#e7edee", "#0e191e"),
    "line": ("#e2e9ea", "#1f3138"),
    "line_strong": ("#c6d2d4", "#35505a"),
    "text": ("#0f2429", "#e8f0f1"),
    "text_soft": ("#46595f", "#aebfc4"),
    "text_faint": ("#53666c", "#8fa4ab"),
    "accent": ("#0b7285", "#4fc3d2"),
    "accent_hover": ("#095f6f", "#76d4e0"),
    "accent_soft": ("#dbeef0", "#133740"),
    "on_accent": ("#ffffff", "#06262c"),
    "own": ("#0e8a9c", "#4fc3d2"),  # this computer's own results
    "peer": ("#5255b3", "#a3a8f0"),  # those of others
    "peer_soft": ("#e8e8f8", "#23284a"),
    "good": ("#23724f", "#6fcfa0"),
    "warn": ("#8a5a0b", "#e3b567"),
    "bad": ("#b23a37", "#f08d84"),
    "bad_soft": ("#fbebe9", "#2b1d1e"),
    "bad_line": ("#edc5c1", "#5a3533"),
    "grid": ("#e9eef0", "#1b2b32"),
}
"""Each colour of the light and of the dark palette."""
LIGHT, DARK = (
    Palette(name=name, **{colour: pair[at] for colour, pair in _COLOURS.items()})
    for at, name in enumerate(("light", "dark"))
)


RADIUS_CONTROL = 7
RADIUS_CARD = 12

SMALL, BODY, LEAD, HEADING, TITLE, FIGURE, HERO = 12, 13, 15, 16, 22, 24, 34
"""Type sizes in pixels before scaling."""


def sheet(c: Palette) -> str:
    return f"""
* {{ outline: none; }}
QWidget {{ color: {c.text}; font-size: {BODY}px; }}
QMainWindow, QDialog, QWidget[look="ground"] {{ background: {c.ground}; }}
QWidget[look="side"] {{ background: {c.side}; border-right: 1px solid {c.line}; }}
QFrame[look="card"] {{ background: {c.surface}; border: 1px solid {c.line}; border-radius: {RADIUS_CARD}px; }}
QFrame[look="card"]:focus {{ border: 2px solid {c.accent}; }}
QFrame[look="option"] {{ background: {c.surface}; border: 1px solid {c.line_strong}; border-radius: 9px; }}
QFrame[look="option"]:hover {{ background: {c.hover}; }}
QFrame[look="option-on"] {{ background: {c.accent_soft}; border: 1px solid {c.accent}; border-radius: 9px; }}
QFrame[look="quiet"] {{ background: {c.sunken}; border: none; border-radius: {RADIUS_CARD}px; }}
QFrame[look="problem"] {{ background: {c.bad_soft}; border: 1px solid {c.bad_line}; border-radius:
{RADIUS_CARD}px; }} QFrame[look="news"] {{ background: {c.accent_soft}; border: none; border-radius:
{RADIUS_CARD}px; }} QFrame[look="rule"] {{ background: {c.line}; border: none; max-height: 1px; min-height:
1px; }}

QLabel {{ background: transparent; }}
QLabel[look="title"] {{ font-family: "Inter Display", "Inter"; font-size: {TITLE}px; font-weight: 600; }}
QLabel[look="heading"] {{ font-size: {HEADING}px; font-weight: 600; }}
QLabel[look="lead"] {{ font-size: {LEAD}px; color: {c.text_soft}; }}
QLabel[look="strong"] {{ font-weight: 600; }}
QLabel[look="soft"] {{ color: {c.text_soft}; }}
QLabel[look="faint"] {{ color: {c.text_faint}; font-size: {SMALL}px; }}
QLabel[look="caption"] {{ color: {c.text_faint}; font-size: {SMALL}px; font-weight: 500; }}
QLabel[look="figure"] {{ font-family: "Inter Display", "Inter"; font-size: {FIGURE}px; font-weight: 600; }}
QLabel[look="hero"] {{ font-family: "Inter Display", "Inter"; font-size: {HERO}px; font-weight: 600; }}
QLabel[look="good"] {{ color: {c.good}; font-weight: 600; }}
QLabel[look="warn"] {{ color: {c.warn}; font-weight: 600; }}
QLabel[look="bad"] {{ color: {c.bad}; font-weight: 600; }}
QLabel[look="chip"] {{ background: {c.accent_soft}; color: {c.accent}; font-size: {SMALL}px; font-weight: 600;
    border-radius: 9px; padding: 2px 8px; }}
QLabel[look="chip-peer"] {{ background: {c.peer_soft}; color: {c.peer}; font-size: {SMALL}px; font-weight: 600;
    border-radius: 9px; padding: 2px 8px; }}

QPushButton, QToolButton {{ background: {c.surface}; color: {c.text}; border: 1px solid {c.line_strong};
    border-radius: {RADIUS_CONTROL}px; padding: 6px 13px; font-weight: 500; }}
QPushButton:hover, QToolButton:hover {{ background: {c.hover}; }}
QPushButton:pressed, QToolButton:pressed {{ background: {c.line}; }}
QPushButton:focus, QToolButton:focus {{ border: 2px solid {c.accent}; padding: 5px 12px; }}
QPushButton:disabled, QToolButton:disabled {{ color: {c.text_faint}; background: {c.sunken};
    border-color: {c.line}; }}
QPushButton[look="primary"] {{ background: {c.accent}; color: {c.on_accent}; border: 1px solid {c.accent};
    font-weight: 600; }}
QPushButton[look="primary"]:hover {{ background: {c.accent_hover}; border-color: {c.accent_hover}; }}
QPushButton[look="primary"]:focus {{ border: 1px solid {c.accent}; padding: 6px 13px; }}
QPushButton[look="primary"]:disabled, QPushButton[look="large"]:disabled {{ background: {c.sunken};
    color: {c.text_faint}; border-color: {c.line}; }}
QPushButton[look="large"] {{ background: {c.accent}; color: {c.on_accent}; border: 1px solid {c.accent};
    font-weight: 600; font-size: {LEAD}px; padding: 10px 22px; border-radius: 9px; }}
QPushButton[look="large"]:hover {{ background: {c.accent_hover}; border-color: {c.accent_hover}; }}
QPushButton[look="large"]:focus {{ border: 1px solid {c.accent}; padding: 10px 22px; }}
QPushButton[look="second"] {{ font-size: {LEAD}px; padding: 10px 22px; border-radius: 9px; }}
QPushButton[look="second"]:focus {{ padding: 9px 21px; }}
QPushButton[look="flat"], QToolButton[look="flat"] {{ background: transparent; border: 1px solid transparent;
    color: {c.text_soft}; padding: 5px 9px; }}
QPushButton[look="flat"]:hover, QToolButton[look="flat"]:hover {{ background: {c.hover}; color: {c.text}; }}
QPushButton[look="flat"]:focus, QToolButton[look="flat"]:focus {{ border: 2px solid {c.accent}; padding: 4px
8px; }} QPushButton[look="flat"]:checked, QToolButton[look="flat"]:checked {{ background: {c.accent_soft};
color: {c.accent}; }} QPushButton[look="danger"] {{ color: {c.bad}; }} QToolButton::menu-indicator,
QPushButton::menu-indicator {{ image: none; width: 0px; }}

QPushButton[look="tile"] {{ border-color: {c.line}; border-radius: {RADIUS_CARD}px; padding: 0; }}
QPushButton[look="tile"]:focus {{ border: 2px solid {c.accent}; }}

QAbstractButton[look="segment"] {{ background: transparent; border: 1px solid transparent; color: {c.text_soft};
    border-radius: 6px; padding: 4px 12px; font-weight: 500; }}
QAbstractButton[look="segment"]:hover {{ color: {c.text}; background: {c.hover}; }}
QAbstractButton[look="segment"]:checked {{ background: {c.raised}; color: {c.text}; border-color: {c.line}; }}
QAbstractButton[look="segment"]:focus {{ border: 2px solid {c.accent}; padding: 3px 11px; }}
QGroupBox {{ background: transparent; border: none; margin: 0; padding: 0; }}
QGroupBox[look="segments"] {{ background: {c.trough}; border-radius: 8px; }}

QLineEdit, QComboBox, QSpinBox, QPlainTextEdit, QTextEdit {{ background: {c.surface}; border: 1px solid
{c.line_strong}; border-radius: {RADIUS_CONTROL}px; padding: 6px 10px; selection-background-color: {c.accent};
selection-color: {c.on_accent}; }} QLineEdit:focus, QComboBox:focus, QSpinBox:focus, QPlainTextEdit:focus,
QTextEdit:focus {{ border: 2px solid {c.accent}; padding: 5px 9px; }}

QComboBox {{ padding-right: 26px; combobox-popup: 0; }}
QComboBox::drop-down {{ border: none; width: 24px; }}
QComboBox::down-arrow {{ image: none; }}
QComboBox QAbstractItemView {{ background: {c.surface}; border: 1px solid {c.line_strong};
    selection-background-color: {c.accent_soft}; selection-color: {c.text}; padding: 0; }}
QComboBox QAbstractItemView::item {{ min-height: 28px; padding: 0 8px; }}
QComboBox QAbstractItemView::item:selected {{ background: {c.accent_soft}; color: {c.text}; }}
QFileDialog QToolButton, QFileDialog QComboBox {{ padding: 3px 6px; }}
QSpinBox QLineEdit, QSpinBox QLineEdit:focus {{ border: none; padding: 0; background: transparent; }}
QSpinBox::up-button, QSpinBox::down-button {{ width: 0px; border: none; }}

QSlider {{ min-height: 22px; }}
QSlider::groove:horizontal {{ height: 4px; background: {c.line_strong}; border-radius: 2px; }}
QSlider::sub-page:horizontal {{ background: {c.accent}; border-radius: 2px; }}
QSlider::handle:horizontal {{ width: 14px; height: 14px; margin: -6px 0; border-radius: 8px;
    background: {c.surface}; border: 1px solid {c.line_strong}; }}
QSlider::handle:horizontal:hover, QSlider::handle:horizontal:focus {{ border: 2px solid {c.accent};
    width: 12px; height: 12px; }}

QProgressBar {{ background: {c.line}; border: none; border-radius: 2px; max-height: 4px; min-height: 4px; }}
QProgressBar::chunk {{ background: {c.accent}; border-radius: 2px; }}

QListWidget {{ background: {c.surface}; border: 1px solid {c.line_strong}; border-radius: {RADIUS_CONTROL}px;
    padding: 4px; }}
QListWidget:focus {{ border: 2px solid {c.accent}; padding: 3px; }}
QListWidget::item {{ padding: 6px 8px; border-radius: 5px; color: {c.text}; }}
QListWidget::item:selected {{ background: {c.accent_soft}; color: {c.text}; }}

QTableView {{ background: {c.surface}; alternate-background-color: {c.surface}; border: none;
    gridline-color: transparent; selection-background-color: {c.accent_soft}; selection-color: {c.text}; }}
QTableView:focus {{ border: none; }}
QTableView::item {{ padding: 0 12px; border-bottom: 1px solid {c.line}; }}
QTableView::item:selected {{ background: {c.accent_soft}; color: {c.text}; }}
QTableView::item:focus {{ background: {c.accent_soft}; }}
QHeaderView {{ background: {c.surface}; border: none; }}
QHeaderView::section {{ background: {c.surface}; color: {c.text_faint}; font-size: {SMALL}px; font-weight: 500;
    border: none; border-bottom: 1px solid {c.line}; padding: 8px 15px; }}
QTableCornerButton::section {{ background: {c.surface}; border: none; }}

QScrollArea {{ background: transparent; border: none; }}
QScrollArea > #qt_scrollarea_viewport {{ background: transparent; }}
QWidget[look="page"] {{ background: transparent; }}
QScrollBar:vertical {{ background: transparent; width: 12px; margin: 2px; }}
QScrollBar:horizontal {{ background: transparent; height: 12px; margin: 2px; }}
QScrollBar::handle {{ background: {c.line_strong}; border-radius: 4px; min-height: 32px; min-width: 32px; }}
QScrollBar::handle:hover {{ background: {c.text_faint}; }}
QScrollBar::add-line, QScrollBar::sub-line, QScrollBar::add-page, QScrollBar::sub-page {{ background: none;
    border: none; width: 0; height: 0; }}

QMenu {{ background: {c.surface}; border: 1px solid {c.line_strong}; border-radius: 8px; padding: 5px; }}
QMenu::item {{ padding: 7px 28px 7px 12px; border-radius: 5px; }}
QMenu::item:selected {{ background: {c.accent_soft}; color: {c.text}; }}
QMenu::item:disabled {{ color: {c.text_faint}; }}
QMenu::separator {{ height: 1px; background: {c.line}; margin: 5px 8px; }}
QToolTip {{ background: {c.text}; color: {c.ground}; border: none; padding: 5px 8px; }}
"""


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
        if application.font() != font(BODY):
            application.setStyle("Fusion")
            application.setFont(font(BODY))
        application.styleHints().colorSchemeChanged.connect(self._follow)
        self.palette = self._wanted()
        self._apply()

    def choose(self, choice: Choice) -> None:
        self._choice = choice
        self._follow()

    def colour(self, name: str, alpha: float = 1.0) -> QColor:
        """Returns the palette's colour with this field name."""
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


def font(size: int, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """The bundled font at this pixel size, with digits of equal width."""
    made = QFont()
    made.setFamilies(["Inter"])
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
    """Renders resources/icons/NAME.svg in `colour`, which replaces `currentColor`. `width` and `height` are
    logical pixels, and the pixmap has `scale` times as many."""
    source = (FOLDER / f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", colour)
    renderer = QSvgRenderer(QByteArray(source.encode()))
    pixmap = QPixmap(QSize(round(width * scale), round(height * scale)))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, width * scale, height * scale))
    painter.end()
    pixmap.setDevicePixelRatio(scale)
    return pixmap


def line_icon(name: str, colour: str, checked: str | None = None) -> QIcon:
    """Returns an icon for a button, in another colour while it is checked."""
    icon = QIcon(drawn(name, colour, 18, 18))
    if checked is not None:
        icon.addPixmap(drawn(name, checked, 18, 18), QIcon.Mode.Normal, QIcon.State.On)
    return icon


def picture_icon(name: str) -> QIcon:
    """Returns a coloured icon (the app's, the tray's) in the sizes that systems use."""
    icon = QIcon()
    for size in (16, 22, 24, 32, 48, 64, 128):
        icon.addPixmap(drawn(name, "#000000", size, size, 1.0))
    return icon
