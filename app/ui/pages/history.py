"""History: every run, round and sentence, searchable and exportable."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from app.node.record.records import LogEntry, Round, Run
from app.ui.charts.table import Column, Table, TableRows
from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import counted, family_titles, number, percent, span, tr, translated
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.pieces import Empty, IconButton, Label, boxed, card, column, search, stack
from app.ui.widgets.saving import as_csv, place_to_save, save_text
from app.ui.widgets.selecting import Segments

ROUNDS, RUNS, EVENTS = "rounds", "runs", "events"
_KINDS: dict[str, type[msgspec.Struct]] = {ROUNDS: Round, RUNS: Run, EVENTS: LogEntry}


class HistoryPage(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("History"))
        self._view = View()
        self._which = Segments(
            [(ROUNDS, tr("Rounds")), (RUNS, tr("Runs")), (EVENTS, tr("Events"))],
            tr("What to show"),
        )
        self._which.chosen.connect(self._choose)
        self._find = search(tr("Search"), self._search, tr("Search the history"), 200)
        export = IconButton(theme, "export", tr("Export this list as CSV"), tr("Export"))
        export.clicked.connect(self._save)
        self._tools = (self._which, self._find, export)
        for part in self._tools:
            self.header.addWidget(part)
        self._tables = {ROUNDS: _rounds(), RUNS: _runs(), EVENTS: _events()}
        self._tables[ROUNDS].opened.connect(lambda one: actions.show_round(one.round))
        self._tables[RUNS].opened.connect(self._open_run)
        self._tables[EVENTS].opened.connect(lambda one: actions.show_round(one.round))
        hints = {
            ROUNDS: tr("Click a round to see its answers."),
            RUNS: tr("Click a run to see its rounds."),
            EVENTS: tr("Click an event to see the answers of its round."),
        }
        for kind, table in self._tables.items():
            table.setAccessibleDescription(hints[kind])
        self._count = Label("", "faint")
        self._lists = stack(*self._tables.values())
        box = card(column(self._lists, margins=(2, 6, 2, 10), fill=0), padding=None)
        self._stack = stack(
            Empty(theme, "history", tr("Nothing has happened yet"), tr("Finished rounds appear here.")),
            boxed(column(box, self._count, gap=8, fill=0)),
        )
        self.add(self._stack, 1)

    def show_view(self, view: View) -> None:
        same = view is self._view
        self._view = view
        there = bool(view.rounds or view.runs or view.happenings)
        self._stack.setCurrentIndex(1 if there else 0)
        for part in self._tools:
            part.setVisible(there)
        self._tables[ROUNDS].show_rows(view.rounds)
        self._tables[RUNS].show_rows(view.runs)
        self._tables[EVENTS].show_rows(view.happenings)
        if not same:
            self._say_count()

    def _open_run(self, run: Run) -> None:
        """Shows a run's latest round in the list of rounds."""
        self._find.clear()
        self._which.choose(ROUNDS)
        self._choose(ROUNDS)
        self._table.show_row(lambda one: one.run == run.run)

    def _choose(self, which: object) -> None:
        self._lists.setCurrentWidget(self._tables[str(which)])
        self._say_count()

    def _search(self, text: str) -> None:
        for table in self._tables.values():
            table.rows.search(text)
        self._say_count()

    def _say_count(self) -> None:
        rows = self._table.rows
        if self._table is self._tables[ROUNDS] and not self._view.rounds:
            self._count.say(tr("Finished rounds appear here."))
            return
        count = counted("{n} row", "{n} rows", rows.rowCount())
        self._count.say(f"{count}  ·  {self._table.accessibleDescription()}" if rows.rowCount() else count)

    @property
    def _table(self) -> Table:
        return self._tables[str(self._which.value)]

    def exported(self) -> str:
        """Returns the list shown, filtered and sorted, as CSV."""
        return as_csv(_KINDS[str(self._which.value)], self._table.rows.shown)

    def _save(self) -> None:
        path = place_to_save(self, tr("Save the history"), f"shoal-{self._which.value}.csv")
        if path is not None:
            self._count.say(save_text(path, self.exported())[1])


def _when(at: float) -> str:
    return words.moment(at, time.time())


def _number(title: str, value: Callable[[Any], float], tip: str = "") -> Column:
    return Column(title, lambda one: number(value(one)), value, right=True, tip=tip)


def _listed(names: Sequence[str], most: int) -> str:
    """Returns the first `most` names and how many more there are. Of a lesson's families, those that gained
    come first."""
    first, more = ", ".join(names[:most]), len(names) - most
    return tr("{names} and {n} more", names=first, n=number(more)) if more > 0 else first


def _rounds() -> Table:
    def right(one: Round) -> str:
        own = tr("{share} of {n}", share=percent(one.train_solved), n=number(one.answered))
        if one.lesson_from and not one.own_groups:  # as earlier versions had
            families, names = _listed(family_titles(one.lesson_families), 2), _listed(one.lesson_from, 1)
            return tr("{families}: lesson from {names}", families=families, names=names)
        return tr("first lesson: {n} of its own answers", n=number(one.lesson)) if one.lesson else own

    fewer = tr("Answers to its own puzzles. There are fewer in a round with puzzles from others.")
    taught = tr("Its own puzzles with right and wrong answers. If all answers are alike, they teach nothing.")
    others = tr("Puzzles and answers of others that it learned from.")
    columns = [
        Column(tr("Round"), lambda one: number(one.round), lambda one: one.round),
        Column(tr("When"), lambda one: _when(one.at), lambda one: one.at),
        Column(tr("Practice answers right"), right, lambda one: one.train_solved, wide=True, tip=fewer),
        _number(tr("Puzzles that taught it"), lambda one: one.informative_own, taught),
        _number(tr("From others"), lambda one: one.taken + one.imitated, others),
        Column(tr("Took"), lambda one: span(one.seconds), lambda one: one.seconds, right=True),
    ]
    table = Table(TableRows(columns), tr("Rounds"))
    table.set_widths(62, 146, 0, 130, 104, 90)
    return table


def _runs() -> Table:
    def outcome(run: Run) -> str:
        names = {
            "rounds": tr("all rounds done"),
            "stopped": tr("stopped"),
            "failed": tr("stopped by a problem"),
        }
        return names.get(run.outcome or "", run.outcome or "") or tr("crashed, or still running")

    def rounds(run: Run) -> str:
        return (
            f"{number(run.first_round)} – {number(run.last_round)}" if run.last_round else tr("none finished")
        )

    columns = [
        Column(tr("Run"), lambda run: number(run.run), lambda run: run.run),
        Column(tr("Started"), lambda run: _when(run.started), lambda run: run.started),
        Column(
            tr("Lasted"),
            lambda run: span(run.ended - run.started) if run.ended else "–",
            lambda run: (run.ended or run.started) - run.started,
            right=True,
        ),
        Column(tr("Rounds"), rounds, lambda run: run.first_round),
        Column(tr("Engine"), lambda run: run.engine),
        Column(tr("How it ended"), outcome, wide=True),
    ]
    table = Table(TableRows(columns), tr("Runs"))
    table.set_widths(70, 160, 90, 120, 120, 0)
    return table


def _events() -> Table:
    columns = [
        Column(tr("When"), lambda one: _when(one.at), lambda one: one.at),
        _number(tr("Round"), lambda one: one.round),
        Column(tr("What happened"), lambda one: translated(one.sentence), wide=True),
    ]
    table = Table(TableRows(columns), tr("Events"))
    table.set_widths(170, 80, 0)
    return table
