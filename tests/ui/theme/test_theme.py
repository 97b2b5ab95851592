from __future__ import annotations

import pytest
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QApplication

from app.ui.theme import DARK, LIGHT, Palette, Theme

PAIRS = [
    (text, ground)
    for text in ("text", "text_soft", "text_faint", "accent", "good", "warn", "bad")
    for ground in ("ground", "side", "surface", "sunken")
] + [
    ("on_accent", "accent"),
    ("on_accent", "accent_hover"),
    ("accent", "accent_soft"),
    ("peer", "peer_soft"),
    ("text", "accent_soft"),
    ("text_soft", "accent_soft"),
    ("text", "bad_soft"),
    ("text_soft", "bad_soft"),
    ("text", "raised"),
    ("text_soft", "trough"),
    ("text_faint", "accent_soft"),
]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2 contrast ratio of two colours.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=lambda palette: palette.name)
def test_text_can_be_read_on_its_ground_and_the_curve_stands_out(palette: Palette) -> None:
    shares = {pair: contrast(*(getattr(palette, name) for name in pair)) for pair in PAIRS}
    assert min(shares.values()) >= 4.5, shares
    assert contrast(palette.own, palette.surface) >= 3 and contrast(palette.peer, palette.surface) >= 3


def test_the_font_is_our_own(qapp: QApplication) -> None:
    Theme(qapp, "light")
    assert {"Inter", "Inter Display"} <= set(QFontDatabase.families())
    assert qapp.font().families()[0] == "Inter"


def test_a_choice_changes_everything_at_once(qapp: QApplication) -> None:
    theme = Theme(qapp, "light")
    told = []
    theme.changed.connect(lambda: told.append(theme.palette.name))
    theme.choose("dark")
    theme.choose("dark")
    assert told == ["dark"] and DARK.ground in qapp.styleSheet()
    theme.choose("light")
    assert LIGHT.ground in qapp.styleSheet()
