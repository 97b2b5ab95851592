"""The card of what to do next, when the curve has been flat: with others, harder puzzles, a larger model, or
a rest."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame

from app.node.data.library import ModelEntry
from app.ui.frame.frame import Actions
from app.ui.language.spoken import spoken
from app.ui.language.texts import number, tr
from app.ui.overview import note
from app.ui.overview.note import remember
from app.ui.theme import Theme
from app.ui.view import model_words, words
from app.ui.view.view import View
from app.ui.widgets.pieces import Elided, IconButton, Label, boxed, button, column, row
from engines.models.needs import FitVerdict

_LATELY = 50
"""Rounds for which the node's own reason for lack of progress counts as recent."""


class NextCard(QFrame):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._actions, self._view = actions, View()
        self._title, self._why = Label("", "strong"), Elided("", "soft")
        self._larger = Elided("", "faint")
        self._others = button(tr("Learn with others"), lambda: self._do(lambda: actions.learn("others")))
        self._harder = button(
            tr("Harder puzzles"), self._make_harder, hint=tr("Every kind of puzzle a level up")
        )
        self._bigger = button(tr("A bigger model"), lambda: actions.go("models"))
        self._rest = button(tr("Let it rest"), lambda: self._do(actions.pause))
        away = IconButton(theme, "cross", tr("Put this away"))
        away.clicked.connect(lambda: self._do(lambda: None))
        self._told: int | None = None
        """The safe round at which harder puzzles were asked for: said until the next one."""
        self._choices = boxed(
            row(self._others, self._harder, self._bigger, self._rest, self._larger, gap=8, fill=4)
        )
        head = row(self._title, self._why, away, gap=10, fill=1)
        self.setLayout(column(head, self._choices, gap=6, margins=(20, 6, 10, 12)))
        self.hide()

    def show_view(self, view: View) -> None:
        self._view = view
        if self._told is not None and view.safe_round == self._told:
            return
        self._told = None
        due = note.next_due(view, self._actions.choices.memory.seen, self._actions.choices)
        if due and self.isHidden() and view.models is None:
            self._actions.models.refresh()
        self.setVisible(due)
        if not due:
            return
        self._choices.show()
        self._title.say(tr("What next?"))
        self._why.say(why(view))
        self._others.setVisible(view.solo)
        model = larger(view)
        self._larger.say(about(model) if model is not None else "")
        self.setAccessibleName(f"{self._title.text()} {self._why.text()}")

    def _make_harder(self) -> None:
        """Keeps the card in order to confirm it: nothing else on the page changes before the next round."""
        self._do(self._actions.harder)
        self._told = self._view.safe_round
        self._title.say(tr("Harder puzzles"))
        self._why.say(tr("From the next round on, every kind of puzzle is a level harder."))
        self.setAccessibleName(f"{self._title.text()} {self._why.text()}")
        self._choices.hide()
        self.show()

    def _do(self, act: object) -> None:
        last = self._view.curve[-1].round if self._view.curve else 0
        remember(self._actions, next_of=note.model(self._view), next_at=last)
        self._told = None
        self.hide()
        if callable(act):
            act()


def why(view: View) -> str:
    """How long it has been flat, the node's own recent reason if there is one, and the kind of puzzle that is
    solved most by guessing: a model that guesses has nothing left to learn there."""
    from app.learning.flat import STEADY

    steady = view.curve[-STEADY:]
    rounds = steady[-1].round - steady[0].round
    said = tr("The curve has been flat for {n} rounds.", n=number(rounds))
    reasons = [one for one in view.happenings[-200:] if one.kind == "flat"]
    if reasons and steady[-1].round - reasons[-1].round <= _LATELY:
        said += " " + spoken(reasons[-1].sentence)
    easiest = max(view.families, key=lambda one: words.guess(one.name), default=None)
    if easiest is not None and (guessing := words.guessed(easiest.name)):
        said += " " + tr("{family}: {sentence}", family=tr(easiest.title), sentence=guessing)
    return said


def larger(view: View) -> ModelEntry | None:
    """The next larger model that fits here: the recommended one first, then the smallest."""
    if view.models is None or view.models.library is None:
        return None
    library = view.models.library
    known = library.find(view.model) or library.find(view.models.chosen)
    if known is None:
        return None
    fitting = [
        one
        for one in library.models
        if one.bytes > known.bytes
        and not one.problem
        and one.fit is not None
        and one.fit.verdict is FitVerdict.FITS
    ]
    return min(fitting, key=lambda one: (not one.recommended, one.bytes), default=None)


def about(model: ModelEntry) -> str:
    """Its name, and how fast it learns here."""
    pace = model_words.pace(model)
    said = tr("{title} fits here.", title=model.title)
    return tr("{title} fits here: {pace}.", title=model.title, pace=pace) if pace else said
