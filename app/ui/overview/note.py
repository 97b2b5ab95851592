"""Notes on the overview, one at a time and each only once: a short line beside the title (a milestone, or the
first race), and a card with suggestions when the curve has been flat. Both can be dismissed; the line moves
nothing else and takes no focus."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from app.learning import flat
from app.models.fit import FitVerdict
from app.node.data.library import ModelEntry
from app.node.history.milestones import Milestone
from app.ui.frame.frame import Actions, open_milestone
from app.ui.language.texts import number, tr, translated
from app.ui.theme import Theme
from app.ui.view import model_words, words
from app.ui.view.settings import Choices, DismissedNotes
from app.ui.view.view import View
from app.ui.widgets.pieces import Card, Elided, IconButton, Label, boxed, button, column, row

RACE_AT, RACE_UNTIL = 20, 60
"""Rounds between which a new model's race is offered."""
FRESH_S = 24 * 3600.0
"""Seconds during which a milestone may be announced."""
AGAIN = 200
"""Rounds after which the card "what next" is shown again if the curve is still flat."""


Chosen = Choices | Mapping[str, Any]
"""The window's settings, by key."""


def training_id(view: View) -> str:
    """Returns an id of the model's training; starting over gives another id."""
    return f"{view.model}/{view.runs[0].started:.0f}" if view.runs else view.model


def race_due(view: View, seen: DismissedNotes, choices: Chosen) -> bool:
    if view.skill:  # puzzles are what races
        return False
    last = view.rounds[-1].round if view.rounds else 0
    return bool(choices["race"]) and RACE_AT <= last < RACE_UNTIL and seen.raced != training_id(view)


def milestone(view: View, seen: DismissedNotes, choices: Chosen, now: float) -> Milestone | None:
    """Returns the latest milestone if it was not announced yet, else None."""
    last = view.milestones[-1] if view.milestones and choices["notes"] else None
    return last if last is not None and seen.told < last.at and now - last.at < FRESH_S else None


def is_next_note_due(view: View, seen: DismissedNotes, choices: Chosen) -> bool:
    """Whether the curve of puzzles is flat and the card "what next" was not dismissed lately."""
    if view.skill or not choices["notes"] or not flat.has_plateaued(view.curve):
        return False
    last = view.curve[-1].round
    return seen.next_of != training_id(view) or last >= seen.next_at + AGAIN


_MIN = 90
"""Minimum pixels of text."""


class NoteLine(Card):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__("quiet")
        self._actions, self._view = actions, View()
        self._milestone: Milestone | None = None
        self._due = False
        self._said = Elided("", "strong")
        self._act = button("", self._do, "flat")
        self._away = IconButton(theme, "cross", tr("Put this away"))
        self._away.clicked.connect(self._put_away)
        self.setLayout(row(self._said, self._act, self._away, gap=8, margins=(12, 0, 2, 0), fill=0))
        self.setMaximumHeight(36)
        self.hide()

    def fit(self, room: int) -> None:
        """Limits the line to `room` pixels, or hides it if that leaves too few for the text."""
        text = self._said.fontMetrics().horizontalAdvance(self._said.text())
        beside = self._act.sizeHint().width() + self._away.sizeHint().width() + 34
        self.setFixedWidth(max(1, min(room, text + beside)))
        self.setVisible(self._due and room >= beside + _MIN)

    def show_view(self, view: View, now: float, quiet: bool = False) -> None:
        """Shows the note that is due for this View; none if `quiet`, when the page asks something else."""
        self._view = view
        seen, choices = self._actions.choices.memory.seen, self._actions.choices
        race = not quiet and race_due(view, seen, choices)
        self._milestone = None if race or quiet else milestone(view, seen, choices, now)
        self._due = race or self._milestone is not None
        self.setVisible(self._due)
        if race:
            twenty = tr("Twenty rounds learned. Is it better than it was? Let both race.")
            self._say(twenty, tr("Watch the race"))
        elif self._milestone is not None:
            self._say(words.milestone(self._milestone), tr("See the answers"))

    def _say(self, sentence: str, act: str) -> None:
        self._said.say(sentence)
        self._act.setText(act)
        self.setAccessibleName(sentence)

    def _do(self) -> None:
        one = self._milestone
        act: Callable[[], None] = (
            self._actions.race if one is None else lambda: open_milestone(one, self._actions)
        )
        self._put_away()
        act()

    def _put_away(self) -> None:
        if self._milestone is None:
            remember(self._actions, raced=training_id(self._view))
        else:
            remember(self._actions, told=self._milestone.at)
        self._due = False
        self.hide()


def remember(actions: Actions, **fields: object) -> None:
    """Saves that a note was dismissed, if the disk allows."""
    memory = actions.choices.memory
    with contextlib.suppress(OSError):
        actions.choices.remember_window(seen=msgspec.structs.replace(memory.seen, **fields))


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
        due = is_next_note_due(view, self._actions.choices.memory.seen, self._actions.choices)
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
        remember(self._actions, next_of=training_id(self._view), next_at=last)
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
