"""The frame of every step of the welcome."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QLayout, QVBoxLayout

from app.ui.language.texts import tr
from app.ui.widgets.pieces import Label, card, column

Act = Callable[[], object]


def point(title: str, text: str) -> QFrame:
    inside = column(Label(title, "strong"), Label(text, "soft", wrap=True), gap=6)
    inside.addStretch(1)
    return card(inside, "quiet", 18)


def where(at: int, of: int) -> str:
    return tr("Step {n} of {all}", n=at, all=of)


def step_layout(where: Label, title: str, text: str, middle: QLayout, buttons: QLayout) -> QVBoxLayout:
    """The step's number, heading, content, and buttons to continue and go back."""
    return column(
        where,
        Label(title, "hero", wrap=True),
        Label(text, "lead", wrap=True),
        middle,
        1,
        buttons,
        gap=12,
        margins=(40, 26, 40, 26),
    )
