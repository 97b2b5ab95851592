"""The colours and sizes everything is drawn with. Text has a contrast to its background of at least 4.5 : 1
(tests/ui/theme/test_theme.py computes it), and no meaning is carried by colour alone."""

from __future__ import annotations

import msgspec


class Palette(msgspec.Struct, frozen=True, kw_only=True):
    """Colours as #rrggbb. `own` is what this computer found out, `peer` what came from others."""

    name: str
    dark: bool
    ground: str
    """Behind everything."""
    side: str
    surface: str
    """Cards."""
    sunken: str
    """Fields and tracks."""
    hover: str
    raised: str
    """The chosen one of several options, on a track."""
    trough: str
    line: str
    line_strong: str
    text: str
    text_soft: str
    text_faint: str
    accent: str
    accent_hover: str
    accent_soft: str
    on_accent: str
    own: str
    peer: str
    peer_soft: str
    good: str
    good_soft: str
    warn: str
    warn_soft: str
    bad: str
    bad_soft: str
    bad_line: str
    grid: str


LIGHT = Palette(
    name="light",
    dark=False,
    ground="#f6f8f8",
    side="#edf2f2",
    surface="#ffffff",
    sunken="#eff3f4",
    hover="#e7edee",
    raised="#ffffff",
    trough="#e7edee",
    line="#e2e9ea",
    line_strong="#c6d2d4",
    text="#0f2429",
    text_soft="#46595f",
    text_faint="#53666c",
    accent="#0b7285",
    accent_hover="#095f6f",
    accent_soft="#dbeef0",
    on_accent="#ffffff",
    own="#0e8a9c",
    peer="#5255b3",
    peer_soft="#e8e8f8",
    good="#23724f",
    good_soft="#dff1e8",
    warn="#8a5a0b",
    warn_soft="#fbf0d9",
    bad="#b23a37",
    bad_soft="#fbebe9",
    bad_line="#edc5c1",
    grid="#e9eef0",
)

DARK = Palette(
    name="dark",
    dark=True,
    ground="#0d171b",
    side="#0a1215",
    surface="#132127",
    sunken="#0e191e",
    hover="#1a2b32",
    raised="#26404a",
    trough="#0e191e",
    line="#1f3138",
    line_strong="#35505a",
    text="#e8f0f1",
    text_soft="#aebfc4",
    text_faint="#8fa4ab",
    accent="#4fc3d2",
    accent_hover="#76d4e0",
    accent_soft="#133740",
    on_accent="#06262c",
    own="#4fc3d2",
    peer="#a3a8f0",
    peer_soft="#23284a",
    good="#6fcfa0",
    good_soft="#15362a",
    warn="#e3b567",
    warn_soft="#382d16",
    bad="#f08d84",
    bad_soft="#2b1d1e",
    bad_line="#5a3533",
    grid="#1b2b32",
)


RADIUS_CONTROL = 7
RADIUS_CARD = 12

SMALL, BODY, LEAD, HEADING, TITLE, FIGURE, HERO = 12, 13, 15, 16, 22, 24, 34
"""Type sizes in pixels before scaling."""
