"""The field for the right answer to a text: one of the labels, or any text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.node.models.skills import KnownSkill
from app.sapo.sets.bounds import MAX_TRUTH
from app.sapo.sets.question_set import Row
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.widgets.pieces import field
from app.ui.widgets.selecting import Picker

Teach = Callable[[Sequence[Row]], str]
"""Adds rows to the skill's set, where a question that is there gets the new answer; returns a sentence."""


class RightAnswer:
    """The widget `field`, and what stands in it."""

    def __init__(self, theme: Theme, known: KnownSkill, answer: str = "") -> None:
        self._picker = Picker(theme, tr("The right answer")) if known.skill.labels else None
        self._line = field(tr("The right answer"))
        self._line.setMaxLength(MAX_TRUTH)
        if self._picker is not None:
            self._picker.addItems(list(known.skill.labels))
        self.field = self._picker or self._line
        self.show_answer(answer)

    @property
    def text(self) -> str:
        return self._picker.currentText() if self._picker is not None else self._line.text().strip()

    def show_answer(self, answer: str) -> None:
        if self._picker is not None:
            self._picker.setCurrentText(answer)
        else:
            self._line.setText(answer)
