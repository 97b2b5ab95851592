"""The panel that labels a whole table by a skill: choose or drop a file, look at what will be asked, and get a
new file with the answers. The work is a child process (./shoal ask --file), which ends with the window and goes
on where it was when it is started again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QWidget

from app.chat.whole_table import (
    PARTIAL_SUFFIX,
    RowsDone,
    TableDone,
    TableError,
    TableFailed,
    read_table,
    text_columns,
)
from app.node.models.skills import KnownSkill, left_blank
from app.sapo.sets.columns import join_cells
from app.sapo.sets.grid import Grid
from app.sapo.sets.written import FILE_KINDS
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, mark, number, span, tr, translated
from app.ui.process.job import Job, MakeJob, decoded
from app.ui.skills.panels import SkillPanel
from app.ui.theme import Theme
from app.ui.widgets.pieces import Elided, Label, boxed, button, column, open_path, progress_bar, row, rule
from app.ui.widgets.selecting import Picker, Switch

READS = (".csv", ".tsv", ".txt", ".xlsx", ".xls", ".ods", ".jsonl", ".json")
"""Endings of files that can be labelled."""
AT_LEAST = (0, 60, 80, 90, 95)
"""Shares in percent below which answers can be left blank."""
_WORDS = (mark("answer"), mark("how sure"), mark("empty"), mark("too long"), mark("no answer"))
_FIRST = 3
_Event: Any = RowsDone | TableDone | TableFailed


class LabelPanel(SkillPanel):
    """Labels tables with the skill `known`. `make` creates the job that runs the command."""

    _read = Signal(object)

    def __init__(self, theme: Theme, actions: Actions, known: KnownSkill, make: MakeJob = Job) -> None:
        super().__init__()
        self.setAcceptDrops(True)
        self._theme, self._ask, self._known = theme, actions, known
        self._source, self._to = Path(), Path()
        self._grid: Grid | None = None
        self._turn = 0
        self._read.connect(self._show_read)
        self._job = make()
        self._job.line.connect(self._heard)
        self._job.ended.connect(self._ended)
        self._told: TableDone | TableFailed | None = None
        hint = tr("Excel, LibreOffice, CSV or JSON lines. You can also drop it here.")
        self._opens = button(tr("Label a table …"), self._choose, hint=hint)
        self._said, self._problem = Label("", "good", wrap=True), Label("", "bad", wrap=True)
        self._again = button(tr("Start over"), lambda: self._start(restart=True))
        self._show_file = button(tr("Open it"), lambda: open_path(self._to))
        self._show_folder = button(tr("Open the folder"), lambda: open_path(self._to.parent), "flat")
        ends = row(self._show_file, self._show_folder, self._again, 1, gap=8)
        parts = (
            rule(),
            row(self._opens, 1),
            self._preview(),
            self._progress(),
            self._problem,
            self._said,
            ends,
        )
        self.setLayout(column(*parts, gap=8))
        self._show(self._opens)

    def show_skill(self, known: KnownSkill) -> None:
        self._known = known

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.toLocalFile().lower().endswith(READS) for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.offer(Path(event.mimeData().urls()[0].toLocalFile()))

    def offer(self, source: Path) -> None:
        """Shows what of this file would be asked, before anything is. It is read in a thread."""
        if not self._job.running:
            self._look(source, None)

    def _choose(self) -> None:
        kinds = " ".join(f"*{ending}" for ending in READS)
        path, _ = QFileDialog.getOpenFileName(
            self, tr("Label a table"), str(Path.home()), f"{tr('Tables and text')} ({kinds})"
        )
        if path:
            self.offer(Path(path))

    def _preview(self) -> QWidget:
        self._facts, self._notes = Label("", "strong", wrap=True), Label("", "soft", wrap=True)
        self._named = Switch(self._theme, tr("The first row names the columns"))
        self._named.toggled.connect(lambda on: self._look(self._source, on))
        self._columns = Picker(self._theme, tr("Column with the text"))
        self._also = Picker(self._theme, tr("Second column with text"))
        self._more: list[int] = []
        """Further columns that make the text, as in the skill's own table, until its owner picks others."""
        for one in (self._columns, self._also):
            one.activated.connect(lambda _: self._pick())
        self._first = [Elided("") for _ in range(_FIRST)]
        self._least = Picker(self._theme, tr("Leave blank below"))
        for share in AT_LEAST:
            self._least.addItem(tr("{n} % sure", n=share) if share else tr("Never"), share)
        self._least.activated.connect(lambda _: self._show_cost())
        self._cost, self._place = Label("", "soft", wrap=True), Label("", "soft", wrap=True)
        inside = column(
            self._facts,
            self._notes,
            row(Label(tr("The first row names the columns")), self._named, 1, gap=10),
            row(Label(tr("The text is in")), self._columns, self._also, 1, gap=10),
            *self._first,
            row(Label(tr("Leave blank below")), self._least, 1, gap=10),
            self._cost,
            self._place,
            row(1, button(tr("Cancel"), self._close), button(tr("Label"), self._start, "primary"), gap=8),
            gap=7,
        )
        self._shown = boxed(inside)
        return self._shown

    def _progress(self) -> QWidget:
        self._bar, self._rows = progress_bar(tr("Labelled rows")), Label("", "soft")
        cancel = button(tr("Cancel"), self._cancel, hint=tr("What's done is kept. Label again to continue."))
        self._running = boxed(column(self._bar, row(self._rows, 1, cancel, gap=8), gap=6))
        return self._running

    def _show(self, *parts: QWidget) -> None:
        """Shows these parts and hides the others."""
        ends = (self._again, self._show_file, self._show_folder)
        for one in (self._opens, self._shown, self._running, *ends):
            one.setVisible(one in parts)

    def _close(self) -> None:
        self._problem.tell("")
        self._said.tell("")
        self._show(self._opens)

    def _look(self, source: Path, heading: bool | None) -> None:
        self._source, self._turn = source, self._turn + 1
        turn = self._turn
        self._problem.tell("")
        self._said.tell("")

        def work() -> None:
            try:
                _, grid = read_table(source, self._known.made.columns, heading)
                text_columns(grid, (), ())
                found: Grid | TableError = grid
            except TableError as error:
                found = error
            self._read.emit((turn, found))

        threading.Thread(target=work, daemon=True).start()

    def _show_read(self, told: tuple[int, Grid | TableError]) -> None:
        turn, found = told
        if turn != self._turn:
            return
        if isinstance(found, TableError):
            self._problem.tell(translated(str(found)))
            self._show(self._opens)
            return
        self._grid, self._to = found, new_name(self._source)
        self._facts.say(f"{self._source.name}: {counted('{n} row', '{n} rows', len(found.rows))}")
        self._notes.tell("\n".join(map(translated, found.notes)))
        self._named.show_on(found.heading)
        for one in (self._columns, self._also):
            one.clear()
        self._also.addItem(tr("and no other"), -1)
        for place, name in enumerate(found.columns):
            self._columns.addItem(name, place)
            self._also.addItem(tr("and {column}", column=name), place)
        first, *more = text_columns(found, (), self._known.made.columns)
        self._columns.setCurrentIndex(first)
        self._also.setCurrentIndex(more[0] + 1 if more else 0)
        self._more = more[1:]
        self._place.say(tr("The answers go into a new file beside it: {name}", name=self._to.name))
        self._show_first()
        self._show_cost()
        self._show(self._shown)

    def _places(self) -> list[int]:
        chosen = (int(self._columns.currentData()), int(self._also.currentData()))
        return list(dict.fromkeys([*(place for place in chosen if place >= 0), *self._more]))

    def _pick(self) -> None:
        self._more = []
        self._show_first()

    def _show_first(self) -> None:
        assert self._grid is not None
        columns, places = self._grid.columns, self._places()
        texts = [join_cells(columns, places, cells) for cells in self._grid.rows[:_FIRST]]
        for label, text in zip(self._first, [*texts, *[""] * _FIRST], strict=False):
            label.tell(" ".join(text.split()))

    def _show_cost(self) -> None:
        share = int(self._least.currentData())
        blank = left_blank(self._known.measured, share / 100) if share else None
        if blank is None:
            self._cost.tell("")
            return
        counts = {"of": blank.of, "n": blank.answered, "right": blank.right, "all": blank.right_of_all}
        said = tr(
            "Of {of} rows kept aside, {n} keep their answer, and {right} of those are right. "
            "With every answer kept, {all} are right.",
            **{name: number(count) for name, count in counts.items()},
        )
        self._cost.tell(said)

    def _start(self, restart: bool = False) -> None:
        assert self._grid is not None
        self._told = None
        self._problem.tell("")
        self._said.tell("")
        self._bar.setValue(0)
        self._rows.say(tr("It reads …"))
        home = self._known.folder.parents[3]
        words = ["ask", self._known.made.mark, "--file", str(self._source), "--out", str(self._to)]
        words += ["--text", ",".join(f"#{place + 1}" for place in self._places())]
        words += ["--heading", "yes" if self._grid.heading else "no"]
        words += ["--at-least", str(self._least.currentData()), "--words", ",".join(map(tr, _WORDS))]
        words += ["--engine", str(self._ask.choices["engine"]), "--json", "--attached", "--home", str(home)]
        self._job.start([*words, *["--restart"] * restart], home / "logs" / "ask.log")
        self._show(self._running)

    def _cancel(self) -> None:
        self._job.end()
        self._said.tell(tr("Stopped. What's done is kept: label it again to continue."))
        self._show(self._shown)

    def _heard(self, line: bytes) -> None:
        match decoded(line, _Event):
            case RowsDone() as now:
                self._bar.setValue(round(1000 * now.share))
                said = tr("{n} of {total} rows", n=number(now.have), total=number(now.total))
                left = tr(", about {span}", span=span(now.left_s)) if now.left_s and now.left_s >= 1 else ""
                self._rows.say(said + left)
            case TableDone() | TableFailed() as told:
                self._told = told

    def _ended(self, code: int) -> None:
        told = self._told
        if isinstance(told, TableDone):
            self._said.tell("\n".join(result(told)))
            self._show(self._opens, self._show_file, self._show_folder)
            return
        why = translated(told.sentence) if told is not None else translated(self._job.complaint)
        self._problem.tell(why or tr("It stopped. What's done is kept: label it again to continue."))
        begun = self._to.with_name(self._to.name + PARTIAL_SUFFIX).exists()
        self._show(self._shown, *([self._again] if begun else []))


def result(done: TableDone) -> list[str]:
    """Returns the sentences on a labelled table: how many rows have an answer, and why the others have none."""
    said = [tr("{n} of {total} rows have an answer.", n=number(done.answered), total=number(done.rows))]
    if done.blank:
        said.append(counted("{n} row is left blank.", "{n} rows are left blank.", done.blank))
    if done.empty:
        said.append(counted("{n} row is empty.", "{n} rows are empty.", done.empty))
    if done.too_long:
        said.append(counted("{n} row is too long.", "{n} rows are too long.", done.too_long))
    if done.no_answer:
        said.append(counted("{n} row has no answer.", "{n} rows have no answer.", done.no_answer))
    if done.changed:
        said.append(tr("The table changed meanwhile: the rows are as they were at the start."))
    return said


def new_name(source: Path) -> Path:
    """Returns the name of the new file beside `source`, of the same kind where that can be written: one that an
    earlier run has begun, else one that doesn't exist."""
    ending = source.suffix.lower()
    kind = ending if ending[1:] in FILE_KINDS else {".json": ".jsonl", ".txt": ".csv"}.get(ending, ".xlsx")
    stem, count = tr("{name} labelled", name=source.stem), 1
    while (found := source.with_name(f"{stem}{f' {count}' if count > 1 else ''}{kind}")).exists():
        count += 1
    return found
