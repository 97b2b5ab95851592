"""Appearance: two palettes, one scale of sizes, the style sheet made from them, and the bundled font."""

from app.ui.theme.palette import DARK, LIGHT, Palette
from app.ui.theme.theme import Theme

__all__ = ["DARK", "LIGHT", "Palette", "Theme"]
