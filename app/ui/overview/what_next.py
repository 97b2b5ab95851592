"""The card "what next": suggestions, shown when the curve has been flat, until it is put away."""

from __future__ import annotations

import contextlib

from app.learning import flat
from app.models.fit import FitVerdict
from app.node.data.library import ModelEntry
from app.ui.frame.frame import Actions
from app.ui.language.texts import number, tr, translated
from app.ui.theme import Theme
from app.ui.view import model_words, words
from app.ui.view.settings import WindowMemory
from app.ui.view.view import View
from app.ui.widgets.pieces import Card, Elided, IconButton, Label, boxed, button, column, row

AGAIN = 200
"""Rounds after which the card is shown again if the curve is still flat."""


def training_id(view: View) -> str:
    """Returns an id of the model's training; starting over gives another id."""
    return f"{view.model}/{view.runs[0].started:.0f}" if view.runs else view.model


def is_due(view: View, memory: WindowMemory) -> bool:
    """Whether the curve of puzzles is flat and the card was not put away lately."""
    if view.skill or not flat.has_plateaued(view.curve):
        return False
    return memory.next_of != training_id(view) or view.curve[-1].round >= memory.next_at + AGAIN


_LATELY = 50
"""Rounds during which the node's own explanation of a flat curve counts as recent."""


class NextCard(Card):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
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
        asks = row(self._others, self._harder, self._bigger, self._rest, 1, gap=8)
        self._choices = boxed(column(asks, self._larger, gap=6))
        head = row(self._title, self._why, away, gap=10, fill=1)
        self.setLayout(column(head, self._choices, gap=6, margins=(20, 6, 10, 12)))
        self.hide()

    def show_view(self, view: View) -> None:
        self._view = view
        if self._told is not None and view.safe_round == self._told:
            return
        self._told = None
        due = is_due(view, self._actions.choices.memory)
        if due and self.isHidden() and view.models is None:
            self._actions.models.refresh()
        self.setVisible(due)
        if not due:
            return
        self._choices.show()
        self._title.say(tr("What next?"))
        self._why.say(plateau_text(view))
        self._others.setVisible(view.solo)
        model = next_larger_model(view)
        self._larger.say(larger_model_text(model) if model is not None else "")
        self.setAccessibleName(f"{self._title.text()} {self._why.text()}")

    def _make_harder(self) -> None:
        """Makes the puzzles harder. The card stays to confirm it: nothing else on the page changes before the
        next round."""
        self._do(self._actions.harder)
        self._told = self._view.safe_round
        self._title.say(tr("Harder puzzles"))
        self._why.say(tr("From the next round on, every kind of puzzle is a level harder."))
        self.setAccessibleName(f"{self._title.text()} {self._why.text()}")
        self._choices.hide()
        self.show()

    def _do(self, act: object) -> None:
        last = self._view.curve[-1].round if self._view.curve else 0
        with contextlib.suppress(OSError):  # then it is shown again in the next window
            self._actions.choices.remember_window(next_of=training_id(self._view), next_at=last)
        self._told = None
        self.hide()
        if callable(act):
            act()


def plateau_text(view: View) -> str:
    """Returns sentences: for how many rounds the curve has been flat, the node's own recent explanation if
    there is one, and the family solved most by guessing, where a model that guesses has nothing left to
    learn."""
    from app.learning.flat import CURVE_POINTS

    steady = view.curve[-CURVE_POINTS:]
    rounds = steady[-1].round - steady[0].round
    said = tr("The curve has been flat for {n} rounds.", n=number(rounds))
    reasons = [one for one in view.happenings[-200:] if one.kind == "flat"]
    if reasons and steady[-1].round - reasons[-1].round <= _LATELY:
        said += " " + translated(reasons[-1].sentence)
    easiest = max(view.families, key=lambda one: words.guess(one.name), default=None)
    if easiest is not None and (guessing := words.guessing_sentence(easiest.name)):
        said += " " + tr("{family}: {sentence}", family=tr(easiest.title), sentence=guessing)
    return said


def next_larger_model(view: View) -> ModelEntry | None:
    """Returns a larger model that fits here: a recommended one if there is one, then the smallest; else
    None."""
    if view.models is None or view.models.library is None:
        return None
    library = view.models.library
    known = library.find(view.model) or library.find(view.models.chosen)
    if known is None:
        return None
    bigger = (one for one in library.models if one.bytes > known.bytes and not one.problem)
    fitting = [one for one in bigger if one.fit is not None and one.fit.verdict is FitVerdict.FITS]
    return min(fitting, key=lambda one: (not one.recommended, one.bytes), default=None)


def larger_model_text(model: ModelEntry) -> str:
    """Returns a sentence that this model fits here, with how fast it learns if that is known."""
    pace = model_words.pace(model)
    said = tr("{title} fits here.", title=model.title)
    return tr("{title} fits here: {pace}.", title=model.title, pace=pace) if pace else said
