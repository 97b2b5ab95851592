"""The race on its card: every puzzle with both answers side by side, and the score."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QFrame, QGridLayout, QWidget

from app.chat.messages import PUZZLES, Lap, Result, Try
from app.common.text import safe, safe_line
from app.node.record.records import Probe
from app.ui.language.texts import counted, number, tr
from app.ui.theme import Theme
from app.ui.widgets.exchange import show_verdict
from app.ui.widgets.pieces import Elided, Label, button, column, row


class RaceCard(QFrame):
    def __init__(self, theme: Theme, again: Callable[[], None], close: Callable[[], None]) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._theme = theme
        self._running = False
        self._complaint = ""
        self._curve: Sequence[Probe] = ()
        self.result = Result()
        self._title, self._about = Label(tr("Race"), "heading"), Label("", "soft")
        self._again = button(tr("Race again"), again)
        self._score, self._sure = Label("", "strong", wrap=True), Label("", "soft", wrap=True)
        self._laps = QWidget()
        head = row(self._title, self._about, 1, self._again, button(tr("Close"), close, "flat"), gap=10)
        score = column(self._score, self._sure, gap=2)
        self._inside = column(head, score, self._laps, gap=12, margins=(20, 16, 20, 16))
        self.setLayout(self._inside)

    def begin(self, curve: Sequence[Probe] = ()) -> None:
        """Shows the puzzles without answers; `curve` is the figure measured on many more puzzles."""
        self._curve = curve
        self._running, self._complaint, self.result = True, "", Result()
        self._about.say(counted("{n} new puzzle, one try each", "{n} new puzzles, one try each", PUZZLES))
        before, self._laps = self._laps, QWidget()
        self._inside.replaceWidget(before, self._laps)
        before.deleteLater()
        self._table = QGridLayout()
        self._table.setContentsMargins(0, 0, 0, 0)
        self._table.setHorizontalSpacing(24)
        for at, wide in enumerate((4, 3, 3)):
            self._table.setColumnStretch(at, wide)
        self._after = Label(tr("After"), "faint")
        self._table.addWidget(Label(tr("Before"), "faint"), 0, 1)
        self._table.addWidget(self._after, 0, 2)
        self._laps.setLayout(self._table)
        self._say()

    def lap(self, lap: Lap) -> None:
        """Both models have answered one more puzzle."""
        self._after.say(counted("After {n} round", "After {n} rounds", lap.learned))
        self.result = self.result.plus(lap.before.solved, lap.after.solved)
        puzzle = Elided("")
        puzzle.say(f"{tr(lap.title)}: {safe_line(lap.text)}")
        sides = (Side(self._theme, tr("Before"), lap.before), Side(self._theme, tr("After"), lap.after))
        for at, part in enumerate((puzzle, *sides)):
            self._table.addWidget(part, self.result.puzzles, at)
        self._say()

    def done(self, sentence: str = "") -> None:
        """The race is over; `sentence` says why if it ended early."""
        self._running, self._complaint = False, sentence
        self._say()

    def _say(self) -> None:
        result = self.result
        over = not self._running and bool(result.puzzles)
        self._again.setVisible(not self._running)
        so_far = tr(
            "Solved so far: {before} before, {after} after, of {n}.",
            before=result.before,
            after=result.after,
            n=result.puzzles,
        )
        self._score.say(self._complaint or (score(result) if over else so_far))
        self._sure.tell(" ".join(filter(None, (sure(result), measured(self._curve)))) if over else "")
        self.setAccessibleName(f"{self._score.text()} {self._sure.text()}".strip())


class Side(QWidget):
    """One model's answer to a puzzle."""

    def __init__(self, theme: Theme, name: str, tried: Try) -> None:
        super().__init__()
        self._theme, self._solved = theme, tried.solved
        self._sign, self._verdict = Label(""), Label("", "good")
        text, said = Elided(""), safe_line(safe(tried.text)) or tr("(empty)")
        text.say(said)
        self.setLayout(row(self._sign, text, self._verdict, gap=8, fill=1))
        theme.changed.connect(self._draw)  # not a lambda: that would outlive the card
        self._draw()
        self.setAccessibleName(f"{name}: {said}, {self._verdict.text()}")

    def _draw(self) -> None:
        show_verdict(self._theme, self._sign, self._verdict, self._solved)


def score(result: Result) -> str:
    return tr(
        "Your model solves {after} of {n} now, {before} before.",
        after=result.after,
        before=result.before,
        n=result.puzzles,
    )


def sure(result: Result) -> str:
    """What the result means, by the exact sign test on the puzzles that only one of both solved."""
    if result.sure and result.lead > 0:
        return tr("Chance hardly explains that: it really learned.")
    if result.sure:
        return tr("Chance hardly explains that. Its newest rounds made it worse on these.")
    if not result.lead:
        return tr("No difference on these.")
    return tr("{n} puzzles are too few to be sure.", n=result.puzzles)


def measured(curve: Sequence[Probe]) -> str:
    """The first and the latest measurement on the same held-out puzzles; empty before there are two."""
    if len(curve) < 2 or not curve[-1].questions:
        return ""
    first, last = curve[0], curve[-1]
    said = tr(
        "On all {n} puzzles it is measured with: {before} of 100 at the start, {after} now.",
        n=number(last.questions),
        before=number(100 * first.share),
        after=number(100 * last.share),
    )
    apart = abs(last.share - first.share) >= 2 * (first.stderr**2 + last.stderr**2) ** 0.5
    return said if apart else f"{said} {tr('Too early to tell.')}"
