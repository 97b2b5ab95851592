"""The preview of a table before anything of it is kept: its first rows, which columns are text and answer, how
answers are checked, what is left out and why. Each guess can be changed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from random import Random

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QWidget

from app.node.data import question_sets
from app.sapo.sets import checks, tables
from app.sapo.sets.amending import amended
from app.sapo.sets.bounds import MAX_INSTRUCTION, MAX_NAME
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.columns import Chosen, Reading
from app.sapo.sets.encodings import ENCODINGS
from app.sapo.sets.question_set import (
    ROUGH_CURVE_QUESTIONS,
    QuestionSet,
    SetError,
    family,
)
from app.sapo.sets.tables import Preview
from app.ui.language.texts import counted, mark, number, tr, translated
from app.ui.theme import Theme
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Elided, Label, boxed, button, clear_layout, column, field, row, rule
from app.ui.widgets.selecting import Picker

_ROWS, _LEFT_OUT, _COLUMNS = 5, 4, 6
_KINDS = {
    Check.TEXT: mark("Text"),
    Check.ONE_OF: mark("One of several answers"),
    Check.NUMBER: mark("Number"),
    Check.CHOICE: mark("Choice"),
    Check.LIST: mark("List, in order"),
    Check.SET: mark("List, in any order"),
    Check.DATE: mark("Date"),
    Check.TRUE_FALSE: mark("True or false"),
    Check.JSON: mark("JSON fields"),
}


@dataclass(frozen=True)
class ReadTable:
    """A table that was read, and the sentence of why it can't be used, if so. `aside`: how many rows are kept
    aside; `notes`: sentences to read before it is added."""

    found: Preview | None
    wrong: str
    aside: str = ""
    notes: str = ""


class TablePreview(QWidget):
    """Hidden without a table. Tables are read in a thread, because large ones take seconds."""

    taken = Signal(object)
    """The QuestionSet as it is shown, when its owner takes it."""
    shown = Signal()
    """A table is shown."""
    told = Signal(str)
    """Why the table can't be used; empty if it can."""
    _read = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._found: Preview | None = None
        self._into: QuestionSet | None = None
        self._source: tuple[bytes, str] = b"", ""
        self._chosen: Chosen | None = None
        self._reading = 0
        self._read.connect(self._show_read)
        self._build()
        self.hide()

    def _build(self) -> None:
        self._name = field(tr("Name"))
        self._name.setMaxLength(MAX_NAME)
        self._check = Picker(self._theme, tr("How answers are checked"))
        for check in Check:
            self._check.addItem(tr(_KINDS[check]), check.value)
        self._check.activated.connect(lambda _: self._check_otherwise())
        self._instruction = field(tr("The line that every question is asked with"))
        self._instruction.setMaxLength(MAX_INSTRUCTION)
        self._facts, self._how = Label("", "strong", wrap=True), Label("", "soft", wrap=True)
        self._rows = [Elided("") for _ in range(_ROWS)]
        self._table = column(gap=4)
        self._notes = Label("", "soft", wrap=True)
        self._add = button(tr("Add and learn"), self._take, "primary")
        inside = column(
            rule(),
            self._facts,
            boxed(self._table),
            self._reading_choices(),
            *self._rows,
            row(Label(tr("Check answers as")), self._check, 1, gap=10),
            self._how,
            row(Label(tr("Asked with")), self._instruction, gap=10, fill=1),
            self._notes,
            row(self._name, button(tr("Cancel"), self.close_table), self._add, gap=8, fill=0),
            gap=7,
        )
        self.setLayout(inside)

    def _reading_choices(self) -> QWidget:
        """Builds the controls for how a table is read."""
        self._texts = QMenu(self)
        self._text_button = button(tr("Text"), lambda: None, hint=tr("The columns that make the text"))
        self._text_button.setMenu(self._texts)
        self._answers = Picker(self._theme, tr("The column with the answers"))
        self._heading = Picker(self._theme, tr("The first row"))
        self._heading.addItem(tr("First row: names"), True)
        self._heading.addItem(tr("First row: data"), False)
        self._encoding = Picker(self._theme, tr("Encoding"))
        for picker in (self._answers, self._heading, self._encoding):
            picker.activated.connect(lambda _: self._read_otherwise())
        labels = [Label(text) for text in (tr("Text"), tr("Answer"))]
        self._choices = boxed(
            Bend(
                boxed(row(labels[0], self._text_button, labels[1], self._answers, gap=8)),
                1,
                self._heading,
                self._encoding,
                gap=8,
            )
        )
        return self._choices

    def _show_reading(self, reading: Reading | None) -> None:
        """Shows the first rows of a table in columns, and which of them is what."""
        self._choices.setVisible(reading is not None)
        clear_layout(self._table)
        if reading is None:
            return
        named = [self._role(reading, at) for at in range(len(reading.columns))]
        shown = sorted({*reading.text[: _COLUMNS - 1], reading.answer, *range(_COLUMNS)})
        shown = [at for at in shown if at < len(named)][: max(_COLUMNS, reading.answer + 1)]
        for cells in (named, *reading.shown):
            labels = [Elided("", "strong" if cells is named else "") for _ in shown]
            for label, at in zip(labels, shown, strict=True):
                label.tell(" ".join(cells[at].split()) or " ")
            self._table.addWidget(boxed(row(*labels, gap=12, fill=range(len(labels)))))
        self._texts.clear()
        for at, name in enumerate(reading.columns):
            action = self._texts.addAction(name)
            action.setCheckable(True)
            action.setChecked(at in reading.text)
            action.triggered.connect(lambda _: self._read_otherwise())
        self._text_button.setText(" + ".join(reading.columns[at] for at in reading.text)[:60])
        self._answers.clear()
        self._answers.addItems(list(reading.columns))
        self._answers.setCurrentIndex(reading.answer)
        self._heading.setCurrentIndex(0 if reading.heading else 1)
        self._encoding.clear()
        self._encoding.addItems(list(dict.fromkeys([reading.encoding, *ENCODINGS])))
        self._encoding.setVisible(bool(reading.encoding))

    def _role(self, reading: Reading, at: int) -> str:
        name = reading.columns[at]
        if at == reading.answer:
            return tr("{column}: answer", column=name)
        return tr("{column}: text", column=name) if at in reading.text else name

    def _read_otherwise(self) -> None:
        """Reads the table again, as its owner wants it. Another heading or encoding finds other columns."""
        if self._found is None or (before := self._found.reading) is None:
            return
        texts = tuple(f"#{at}" for at, one in enumerate(self._texts.actions(), 1) if one.isChecked())
        chosen = Chosen(
            text=texts or tuple(f"#{at + 1}" for at in before.text),
            answer=f"#{self._answers.currentIndex() + 1}",
            heading=bool(self._heading.currentData()),
            encoding=self._encoding.currentText(),
        )
        if (chosen.heading, chosen.encoding) != (before.heading, before.encoding):
            chosen = msgspec.structs.replace(chosen, text=(), answer="")
        self._look(None, chosen)

    def look(self, content: bytes, name: str, into: QuestionSet | None = None) -> None:
        """Reads a table in a thread and shows it. `into`: the set that its rows are to be added to, which says
        how they are checked."""
        self._source, self._into = (content, name), into
        self._look(None, None)

    def close_table(self) -> None:
        """Forgets the table."""
        self._found = self._into = None
        self._reading += 1
        self.hide()
        self.told.emit("")

    def _look(self, rule: Rule | None, chosen: Chosen | None) -> None:
        """Starts reading in the thread, which then calls `_show_read`."""
        self._chosen, into = chosen, self._into
        self._reading += 1
        turn, source = self._reading, self._source
        self.told.emit("")

        def work() -> None:
            found = _read(*source, rule, chosen, into)
            self._read.emit((turn, found))

        threading.Thread(target=work, daemon=True).start()

    def _show_read(self, told: tuple[int, ReadTable]) -> None:
        turn, table = told
        if turn != self._reading:
            return
        self.told.emit(table.wrong)
        found = table.found
        if found is None or (table.wrong and found.reading is None):
            self.hide()
            return
        self._add.setEnabled(not table.wrong)
        self._found, made = found, found.made
        self._show_reading(found.reading)
        facts = tr(
            "{n} different rows. {aside} of them are kept aside to measure with.",
            n=number(made.distinct),
            aside=table.aside,
        )
        if self._into is not None:
            facts = counted("{n} row", "{n} rows", len(made.rows))
        self._facts.say(facts)
        pairs = [(one.question, one.answer) for one in made.rows] if found.reading is None else []
        drawn = (one.drawn(Random(seed)) for seed in range(_ROWS) for one in made.templates)
        pairs += [(one.question, one.answer) for one in drawn if one is not None]
        said = [f"{question}  →  {answer}" for question, answer in pairs]
        for label, text in zip(self._rows, said + [""] * _ROWS, strict=False):
            label.tell(" ".join(text.split()))
        self._check.setCurrentIndex(list(Check).index(made.rule.check))
        guessed = " " + tr("Shoal guessed this from the answers.") if found.guessed else ""
        self._how.say(tr(checks.DESCRIPTIONS[made.rule.check]) + guessed)
        self._notes.tell(table.notes)
        self._instruction.setText(made.asked_with)
        if not self.isVisible():
            self._name.setText(made.name)
        into = self._into
        for one in (self._name, self._check, self._instruction):
            one.setEnabled(into is None)  # the set that it is added to says these
        self._name.setVisible(into is None)
        self._add.setText(tr("Add to {name}", name=into.name) if into is not None else tr("Add and learn"))
        self.show()
        self.shown.emit()
        if not table.wrong and self._chosen is None:
            self._add.setFocus()

    def _check_otherwise(self) -> None:
        self._look(Rule(check=Check(str(self._check.currentData()))), self._chosen)

    def _take(self) -> None:
        if self._found is None:
            return
        made = self._found.made
        instruction = self._instruction.text().strip()
        self.taken.emit(
            msgspec.structs.replace(
                made,
                name=self._name.text().strip() or made.name,
                instruction="" if instruction == made.asked_with else instruction,
            )
        )


def _read(
    content: bytes, name: str, rule: Rule | None, chosen: Chosen | None, into: QuestionSet | None
) -> ReadTable:
    """Reads a table, for a set of its own or to be added to `into`, by whose check then."""
    try:
        found = tables.read(content, name, rule if into is None else into.rule, chosen)
    except SetError as error:
        return ReadTable(None, translated(str(error)))
    wrong = ""
    if not found.usable:
        wrong = translated(tables.skip_reasons(found))
    else:
        try:
            if into is None:
                question_sets.check(found.made)
            else:
                amended(into, found.made.rows)
        except SetError as error:
            wrong = translated(str(error))
    held = family(found.made).held_out
    aside = number(len(held)) if held is not None else tr("A fifth")
    return ReadTable(found, wrong, aside, "\n".join(notes(found, into is None)))


def notes(found: Preview, own: bool) -> list[str]:
    """Returns sentences to read before rows are added, as a set of their `own` or to another one."""
    said = [translated(note) for note in found.notes]
    share, answer = found.made.constant_share() if own and found.usable else (0.0, "")
    if share >= 0.2:
        percent = number(round(100 * share))
        said.append(tr("“{answer}” alone would be right in {n} of 100.", answer=answer, n=percent))
    if own and found.usable and found.made.distinct < ROUGH_CURVE_QUESTIONS:
        said.append(
            tr("With fewer than {n} questions the curve will be rough.", n=number(ROUGH_CURVE_QUESTIONS))
        )
    for one in found.skipped[:_LEFT_OUT]:
        said.append(tr("Row {n} is left out: {reason}.", n=number(one.row), reason=tr(one.reason.value)))
    if (left := sum(found.counts.values())) > _LEFT_OUT:
        why = ", ".join(f"{tr(reason.value)} ({number(count)})" for reason, count in found.counts.items())
        said.append(tr("{n} rows are left out: {reasons}.", n=number(left), reasons=why))
    return said
