"""The step of the first run that offers the models, and says whether each fits and how fast it learns here."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QLayout, QVBoxLayout, QWidget

from app.models.catalogue import STARTER
from app.ui.frame.frame import Actions
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.view import model_words
from app.ui.view.view import View
from app.ui.widgets.pieces import Label, button, card, column, row
from app.ui.widgets.selecting import Option, OptionGroup

Act = Callable[[], object]
STEP_SIDE = 32
"""Margin in pixels beside a step."""


def point(title: str, text: str) -> QFrame:
    return card(column(Label(title, "strong"), Label(text, "soft", wrap=True), 1, gap=6), "quiet", 18)


def step_text(at: int, of: int) -> str:
    return tr("Step {n} of {all}", n=at, all=of)


def step_layout(where: str, title: str, text: str, middle: QLayout, buttons: QLayout) -> QVBoxLayout:
    """Lays out a step: its number, heading and content, and the buttons to continue and go back."""
    said = (Label(where, "faint"), Label(title, "hero", wrap=True), Label(text, "lead", wrap=True))
    return column(*said, middle, 1, buttons, gap=12, margins=(STEP_SIDE, 26, STEP_SIDE, 26))


LARGER = "larger"


class ModelStep(QWidget):
    """The second step: which model learns. A bigger one is picked on the page Models, which starts it."""

    def __init__(self, theme: Theme, actions: Actions, go_on: Act, back: Act) -> None:
        super().__init__()
        self._actions, self._go_on = actions, go_on
        self._fits, self._speed = Label("", "soft", wrap=True), ""
        self._models = OptionGroup(tr("Model"))
        starter = tr("Built in. Only solves puzzles. Gets visibly better within minutes, on any computer.")
        larger = tr("Talks and knows more. Learns slower. Download one, or use one you have.")
        self._models.add(STARTER, Option(theme, tr("Starter (recommended)"), starter))
        self._models.add(LARGER, Option(theme, tr("A bigger model"), larger))
        self._models.chosen.connect(lambda _: self._show_choice())
        self._on = button(tr("Continue"), self._go, "large")
        title, about = tr("Which model should learn?"), tr("You can change this any time.")
        buttons = row(button(tr("Back"), back, "second"), self._on, 1, gap=10)
        models = column(self._models, self._fits, gap=12)
        self.setLayout(step_layout(step_text(2, 3), title, about, models, buttons))

    def arrive(self) -> None:
        self._actions.models.refresh()
        self._on.setFocus()

    def show_view(self, view: View) -> None:
        library = view.models.library if view.models is not None else None
        model = library.find(STARTER) if library is not None else None
        self._speed = model_words.fits_here(model, library) if model is not None and library else ""
        self._show_choice()

    def _show_choice(self) -> None:
        """Shows the starter's speed beside the starter alone, and where the button leads."""
        starter = self._models.value == STARTER
        self._fits.tell(self._speed if starter else "")
        self._on.setText(tr("Continue") if starter else tr("See the models"))

    def _go(self) -> None:
        if self._models.value == LARGER:
            self._actions.go("models")
            return
        if self._actions.choices["model"] != STARTER:
            self._actions.use_model(STARTER)
        self._go_on()
