"""The curve with its controls: the current value, held-out or training, smoothing, export."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QMenu, QSizePolicy, QSlider, QWidget

from app.learning.evidence import SURE, odds_above
from app.node.record.records import Probe, Round
from app.sapo.probe import wilson
from app.ui.charts.chart import Chart
from app.ui.language.texts import number, percent, tr
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Card, Empty, IconButton, Label, boxed, column, row, stack
from app.ui.widgets.saving import as_csv, place_to_save, save_text
from app.ui.widgets.selecting import Segments

SAID_MS = 5000
PROBE, TRAINING = "probe", "training"
_SMOOTH = (0, 1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200, 500, 1000, 3000)
"""Points averaged on either side, by step of the slider."""


class Curve(Card):
    """Shows a View's curve. Export writes the measured points, not the smoothed ones."""

    def __init__(
        self, theme: Theme, save_result: Callable[[Path, Callable[[str, bool], None]], None] | None = None
    ) -> None:
        super().__init__()
        self._save_result = save_result
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._view = View()
        self._theme = theme
        self._what = PROBE
        self.chart = Chart(theme)
        self._name, self._figure = Label("", "caption"), Label("", "hero")
        self._error, self._change = Label("", "lead"), Label("", "chip")
        self._segments = Segments([(PROBE, tr("Measured")), (TRAINING, tr("Practice"))], tr("Which curve"))
        self._segments.chosen.connect(self._choose)
        self._place = row(gap=12)
        soon = tr("Before it learns, your model tries questions it will never train on.")
        none = Empty(theme, "overview", tr("The curve begins with the first measurement"), soon)
        self._stack = stack(none, self.chart)
        figures = Bend(row(self._figure, self._error, gap=10), self._change, 1, gap=10)
        self._error.setAlignment(Qt.AlignmentFlag.AlignBottom)
        self._error.setContentsMargins(0, 0, 0, 6)
        top = Bend(column(self._name, figures, gap=0), 1, self._place, self._segments, gap=12)
        top.setAlignment(self._segments, Qt.AlignmentFlag.AlignTop)
        parts = (top, self._stack, self._tools(theme))
        self.setLayout(column(*parts, gap=8, margins=(22, 15, 22, 8), fill=1))
        self.chart.view_changed.connect(lambda: self._all.setVisible(self.chart.zoomed))
        self._all.hide()

    def put_beside(self, widget: QWidget) -> None:
        self._place.addWidget(widget)

    def _tools(self, theme: Theme) -> QWidget:
        self._slider = QSlider(Qt.Orientation.Horizontal)
        self._slider.setRange(0, len(_SMOOTH) - 1)
        self._slider.setFixedWidth(110)
        self._slider.setAccessibleName(tr("Smoothing"))
        self._slider.valueChanged.connect(lambda at: self.chart.set_smooth(_SMOOTH[at]))
        self._all = IconButton(theme, "reset", tr("Show the whole curve"), tr("Show all"))
        self._all.clicked.connect(self.chart.show_all)
        self._export = IconButton(theme, "export", tr("Export the curve"), tr("Export"))
        menu = QMenu(self._export)
        menu.addAction(tr("Values as CSV …"), self._save_csv)
        if self._save_result is not None:
            menu.addAction(tr("Signed result …"), self._save_signed)
        self._export.setMenu(menu)
        self._export.setPopupMode(IconButton.ToolButtonPopupMode.InstantPopup)
        caption = Label(tr("Smoothing"), "faint")
        self._saved = Label("", "faint")
        self._saved.hide()
        self._letters = Label("", "faint")
        self._letters.hide()
        self._bar = boxed(
            Bend(
                row(caption, self._slider, self._letters, gap=6),
                1,
                row(self._saved, self._all, self._export, gap=6),
            )
        )
        return self._bar

    def show_view(self, view: View) -> None:
        self._view = view
        points = self._points()
        self._stack.setCurrentIndex(1 if points else 0)
        self._bar.setVisible(bool(points))
        self._segments.setVisible(bool(view.rounds or view.curve))
        self.chart.show_series(points, "own" if self._what == PROBE else "peer")
        letters = view.curve[-1].letters if view.curve and self._what == PROBE else None
        self.chart.show_beside(letters)
        self._letters.tell(tr("Dashed: counting letters, {share}", share=percent(letters)) if letters else "")
        if self._what == PROBE:
            self._say_probe(view.curve)
        else:
            self._say_training(view.rounds)
        self.chart.setAccessibleName(self.summary())

    def summary(self) -> str:
        """Returns the curve in words, for screen readers."""
        points = self._points()
        if not points:
            return tr("The curve has no points yet.")
        first, last = points[0], points[-1]
        best = max(points, key=lambda point: point[1])
        return tr(
            "{name}: {now} at round {last}, {then} at round {first}, the highest was {best} at round {at}; "
            "{n} points. "
            "Arrow keys read single points.",
            name=self._name.text(),
            now=percent(last[1], 1),
            last=last[0],
            then=percent(first[1], 1),
            first=first[0],
            best=percent(best[1], 1),
            at=best[0],
            n=len(points),
        )

    def _points(self) -> Sequence[tuple[float, float, float]]:
        if self._what == PROBE:
            return [(point.round, point.share, point.stderr) for point in self._view.curve]
        return [(row_.round, row_.train_solved, 0.0) for row_ in self._view.rounds if not row_.lesson]

    def _say_probe(self, curve: Sequence[Probe]) -> None:
        own = bool(self._view.skill)
        self._name.say(tr("Rows kept aside that are right") if own else tr("New puzzles solved"))
        self._error.setVisible(bool(curve))
        self._figure.say(percent(curve[-1].share, 1) if curve else "–")
        self._error.say(_doubt(curve[-1]) if curve else "")
        self._error.setToolTip(
            tr("Rows it never trains on. ± says how far chance alone may shift the figure.")
            if own
            else tr(
                "Puzzles no one trains on (held-out). ± is one standard error: right two times out of three."
            )
        )
        self._change.setVisible(len(curve) > 1)
        if len(curve) > 1:
            change = abs(curve[-1].share - curve[0].share)
            if odds_above(change, math.hypot(curve[-1].stderr, curve[0].stderr)) < SURE:
                self._change.say(tr("too early to tell"))
            else:
                first, last = (number(100 * point.share) for point in (curve[0], curve[-1]))
                self._change.say(tr("{first} → {last} of 100 since it started", first=first, last=last))

    def _say_training(self, rounds: Sequence[Round]) -> None:
        self._name.say(tr("Practice answers right, latest round"))
        self._figure.say(percent(rounds[-1].train_solved, 1) if rounds else "–")
        self._error.hide()
        self._change.setVisible(bool(rounds) and not self._view.skill)
        self._change.say(tr("puzzles get harder as it learns"))

    def _choose(self, what: object) -> None:
        self._what = str(what)
        self.chart.show_all()
        self.show_view(self._view)

    # ---- export

    def csv(self) -> str:
        """Returns every measured point of the curve shown as CSV, one row each."""
        return as_csv(Probe, self._view.curve) if self._what == PROBE else as_csv(Round, self._view.rounds)

    def _save_csv(self) -> None:
        if path := place_to_save(self, tr("Save the values"), f"shoal-{self._what}.csv"):
            done, said = save_text(path, self.csv())
            self._say(said, done)

    def _save_signed(self) -> None:
        to = place_to_save(self, tr("Save a result"), "shoal-result.json")
        if to is not None and self._save_result is not None:
            self._save_result(to, self._say)

    def _say(self, said: str, done: bool) -> None:
        self._saved.tell(said)
        self._saved.look("faint" if done else "bad")
        QTimer.singleShot(SAID_MS, self._saved, lambda: self._saved.tell(""))


def _doubt(probe: Probe) -> str:
    """Returns the standard error as text; if none or all of the puzzles were solved, the 95 % bound instead."""
    if probe.stderr or not probe.questions:
        return f"± {number(100 * probe.stderr, 1)}"
    low, high = wilson(probe.share, probe.questions, z=1.96)
    if probe.share:
        return tr("at least {share}", share=percent(low))
    return tr("at most {share}", share=percent(high))
