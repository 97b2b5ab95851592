"""Appearance: two palettes, one scale of sizes, the style sheet made from them, and the bundled font."""

from app.ui.theme.theme import DARK, LIGHT, Palette, Theme

__all__ = ["DARK", "LIGHT", "Palette", "Theme"]
