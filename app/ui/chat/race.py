"""The race on its card: the lanes, the puzzle that is looked at with both answers, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QWidget

from app.chat.messages import Lap, Try
from app.chat.race import PUZZLES, Result
from app.common.text import safe, safe_line
from app.ui.fish.track import Track, outcome
from app.ui.language.texts import counted, number, tr
from app.ui.theme import Theme
from app.ui.view import growth
from app.ui.view.settings import Choices
from app.ui.view.view import View
from app.ui.widgets.exchange import show_verdict
from app.ui.widgets.pieces import Elided, Label, button, column, row


class RaceCard(QFrame):
    def __init__(
        self, theme: Theme, choices: Choices, again: Callable[[], None], close: Callable[[], None]
    ) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._running = False
        self._complaint = ""
        self.track = Track(theme, choices)
        self.track.looked.connect(self._show_lap)
        self.track.arrived.connect(self._say)
        self._title, self._about = Label("", "heading"), Label("", "soft")
        self._again = button(tr("Race again"), again)
        self._puzzle, self._outcome = Elided("", "strong"), Label("", "soft")
        self._before, self._after = Side(theme, tr("Before")), Side(theme, tr("After"))
        self._score, self._sure = Label("", "strong", wrap=True), Label("", "soft", wrap=True)
        head = row(self._title, self._about, 1, self._again, button(tr("Close"), close, "flat"), gap=10)
        asked = row(self._puzzle, self._outcome, gap=12, fill=0)
        sides = row(self._before, self._after, gap=24, fill=(0, 1))
        score = column(self._score, self._sure, gap=2)
        self.setLayout(column(head, self.track, asked, sides, score, gap=12, margins=(20, 16, 20, 16)))

    def begin(self, view: View) -> None:
        """Both at the start."""
        self._running, self._complaint = True, ""
        self._title.say(tr("Race"))
        self._about.say(counted("{n} new puzzle, one try each", "{n} new puzzles, one try each", PUZZLES))
        for label in (self._puzzle, self._outcome, self._score, self._sure):
            label.say("")
        for side in (self._before, self._after):
            side.say(None)
        names = (tr("Before"), tr("After"))
        self.track.begin(names, (growth.then(view), growth.now(view)), PUZZLES)
        self._say()

    def lap(self, lap: Lap) -> None:
        self.track.name(counted("After {n} round", "After {n} rounds", lap.learned))
        self.track.lap(lap)

    def done(self, sentence: str = "") -> None:
        """No more laps come; `sentence` says why, where it did not get to its end."""
        self._running, self._complaint = False, sentence
        self.track.end()
        self._say()

    @property
    def result(self) -> Result:
        """The result of what is in sight."""
        found = Result()
        for lap in self.track.laps:
            found = found.plus(lap.before.solved, lap.after.solved)
        return found

    def _show_lap(self, at: int) -> None:
        lap = self.track.laps[at]
        self._puzzle.say(f"{tr(lap.title)}: {safe_line(lap.text)}")
        self._outcome.say(outcome(lap))
        self._before.say(lap.before)
        self._after.say(lap.after)
        self.track.setAccessibleDescription(
            tr("Puzzle {n}: {puzzle}, {outcome}. Arrow keys read the others.", n=at + 1,
               puzzle=tr(lap.title), outcome=outcome(lap))
        )  # fmt: skip

    def _say(self) -> None:
        result = self.result
        over = not self._running and self.track.whole and bool(result.puzzles)
        self._again.setVisible(not self._running and self.track.whole)
        self._score.say(self._complaint or (score(result) if over else ""))
        self._sure.say(sure(result) if over else "")
        self.track.setAccessibleName(
            tr("Race: before solved {before}, after solved {after}, of {n} puzzles so far.",
               before=result.before, after=result.after, n=result.puzzles)
        )  # fmt: skip
        self.setAccessibleName(f"{self._score.text()} {self._sure.text()}".strip() or self._title.text())


class Side(QWidget):
    """One side's answer to the puzzle that is looked at."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._name, self._text = Label(name, "faint"), Elided("")
        self._sign, self._verdict = Label(""), Label("", "good")
        self._try: Try | None = None
        self.setLayout(row(self._name, self._text, self._sign, self._verdict, gap=8, fill=1))
        theme.changed.connect(self._draw)  # not a lambda: that would outlive the card
        self.say(None)

    def _draw(self) -> None:
        self.say(self._try)

    def say(self, tried: Try | None) -> None:
        self._try = tried
        self._text.say(safe_line(safe(tried.text)) or tr("(empty)") if tried is not None else "")
        show_verdict(self._theme, self._sign, self._verdict, tried.solved if tried is not None else None)
        self.setAccessibleName(f"{self._name.text()}: {self._text.text()}, {self._verdict.text()}")


def score(result: Result) -> str:
    """The score, with its error."""
    return tr(
        "Your model solves {after} of {n} now, {before} before: {lead} ± {error}.",
        after=result.after,
        before=result.before,
        n=result.puzzles,
        lead=("+" if result.lead > 0 else "") + number(result.lead),
        error=number(result.error, 1),
    )


def sure(result: Result) -> str:
    """What that says."""
    if not result.sure:
        return tr("So close could be chance. Each race draws new puzzles: race again to know more.")
    if result.lead < 0:
        return tr("Chance hardly explains that. Its newest rounds made it worse on these.")
    return tr("Chance hardly explains that: it really learned.")
