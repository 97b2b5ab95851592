"""The card for a person's own questions: drop, paste or type a table, check the preview, and learn it. The
questions stay on this computer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFileDialog, QMenu, QPlainTextEdit, QVBoxLayout, QWidget

from app.models.catalogue import STARTER
from app.node.data import question_sets
from app.node.data.question_sets import SET_SUFFIXES, KeptSet
from app.node.models.skills import known_skills
from app.node.record.errors import DiskFullError
from app.sapo.sets import checks, tables, templates
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.columns import Chosen, Reading
from app.sapo.sets.encodings import ENCODINGS, MAX_BYTES
from app.sapo.sets.question_set import MAX_INSTRUCTION, MAX_NAME, ROUGH, Row, SetError, encode, family
from app.sapo.sets.tables import Preview
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, mark, number, tr, translated
from app.ui.models.picker import ModelPicker
from app.ui.skills.card import SkillCard
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import (
    Elided,
    Label,
    boxed,
    button,
    card,
    clear_layout,
    column,
    confirm,
    field,
    row,
    rule,
)
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


class OwnQuestions(QWidget):
    """The user's own question sets on the Skills page: a card each, and one to add more. It reads files in a
    thread, because large ones take seconds."""

    changed = Signal()
    """There are other sets now."""
    _read = Signal(object)

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._theme, self._ask, self._home = theme, actions, Path()
        self._found: Preview | None = None
        self._source: tuple[bytes, str] = b"", ""
        self._chosen: Chosen | None = None
        self._reading = 0
        self._read.connect(self._show_read)
        self._examples = Picker(theme, tr("Examples"))
        self._examples.addItem(tr("Examples"), "")
        for title in templates.EXAMPLES:
            self._examples.addItem(tr(title), title)
        self._examples.activated.connect(lambda _: self._take_example())
        drop = tr("Excel, CSV, JSON or text. You can also drop it here.")
        opens = button(tr("Open a file"), lambda: self._choose(), "primary", drop)
        types = button(tr("Paste or type"), self._type)
        self._title = Label(tr("Your own questions"), "heading")
        head = Bend(self._title, 1, self._examples, types, opens, gap=8)
        about = tr(
            "Bring a table of texts and answers, and your model learns it. Then ask it. All of it stays here."
        )
        self._problem, self._added = Label("", "bad", wrap=True), Label("", "good", wrap=True)
        self._sets: QVBoxLayout = column(gap=10)
        self._offers: QVBoxLayout = column(gap=10)
        self._private, self._view = False, View()
        self._waits: tuple[str, ...] = ()
        """The sets to learn as soon as a model is chosen that reads."""
        self._state: tuple[Path, bool, int, float] | None = None
        self._cards: dict[str, SkillCard] = {}
        self.kept: dict[str, KeptSet] = {}
        self._target: KeptSet | None = None
        """The set that the rows shown are added to; None for a new one."""
        self._models = ModelPicker(theme, actions.models)
        self._models.picked.connect(lambda _: self._begin())
        reads = tr("The starter only knows puzzles. To learn your own table, pick a model that reads.")
        self._reader = boxed(column(rule(), Label(reads, "strong", wrap=True), self._models, gap=8))
        self._about = Label(about, "soft", wrap=True)
        parts = (head, self._about, self._problem, self._editor(), self._preview(), self._reader)
        self._list, self._class = boxed(self._sets), boxed(self._offers)
        adding = card(column(*parts, self._class, self._added, gap=12), "card")
        self.setLayout(column(self._list, adding, gap=16))
        self._reader.hide()
        self._problem.hide()
        self._added.hide()
        self._close()

    def show_view(self, view: View) -> None:
        if not view.home:
            return
        home, private, offered_at = Path(view.home), bool(view.words), offers_mtime_ns(Path(view.home))
        measured = view.curve[-1].at if view.curve and view.skill else 0.0
        shown = (home, private, offered_at, measured)
        if shown != self._state:
            self._state, self._home, self._private = shown, home, private
            self._show_sets()
        for one in self._cards.values():
            one.show_view(view)
        self._view = view
        if not self._reader.isHidden():
            self._models.show_holdings(view.models)

    def offer(self, path: str) -> None:
        """Shows a preview of the set that a chosen or dropped file would become."""
        self._close()
        try:
            with Path(path).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            self._complain(tr("{path} can't be read ({why}).", path=path, why=error.strerror or str(error)))
            return
        self._look(content, Path(path).stem)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and not (self._typing.isHidden() and self._shown.isHidden()):
            self._close()
        else:
            super().keyPressEvent(event)

    def _choose(self, target: KeptSet | None = None) -> None:
        kinds = " ".join(f"*{ending}" for ending in SET_SUFFIXES)
        path, _ = QFileDialog.getOpenFileName(
            self, tr("Open a file"), str(Path.home()), f"{tr('Tables and text')} ({kinds})"
        )
        if path:
            self.offer(path)
            self._target = target

    def _type(self) -> None:
        self._close()
        self._typing.show()
        self._text.setFocus()

    def _take_example(self) -> None:
        title = str(self._examples.currentData())
        if title:
            self._close()
            self._look(templates.EXAMPLES[title].encode(), tr(title))
        self._examples.setCurrentIndex(0)

    def _editor(self) -> QWidget:
        self._text = QPlainTextEdit()
        self._text.setAccessibleName(tr("Questions and answers"))
        like = tr(
            "question, answer\nCapital of France?, Paris\n\nCalculate {a} * {b}.\na: 2-12\nb: 2-12\nanswer: a*b"
        )
        self._text.setPlaceholderText(like)
        self._text.setTabChangesFocus(True)
        self._text.setFixedHeight(170)
        done = button(tr("Show me"), self._take_text, "primary")
        self._typing = boxed(column(self._text, row(1, button(tr("Cancel"), self._close), done), gap=8))
        return self._typing

    def _take_text(self) -> None:
        self._look(self._text.toPlainText().encode("utf-8", "replace"), tr("My questions"))

    def _preview(self) -> QWidget:
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
        self._add = button(tr("Add and learn"), self._keep, "primary")
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
            row(self._name, button(tr("Cancel"), self._close), self._add, gap=8, fill=0),
            gap=7,
        )
        self._shown = boxed(inside)
        return self._shown

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
        texts = tuple(str(at) for at, one in enumerate(self._texts.actions(), 1) if one.isChecked())
        chosen = Chosen(
            text=texts or tuple(str(at + 1) for at in before.text),
            answer=str(self._answers.currentIndex() + 1),
            heading=bool(self._heading.currentData()),
            encoding=self._encoding.currentText(),
        )
        if (chosen.heading, chosen.encoding) != (before.heading, before.encoding):
            chosen = msgspec.structs.replace(chosen, text=(), answer="")
        self._look(*self._source, chosen=chosen)

    def _close(self) -> None:
        self._found = self._target = None
        self._typing.hide()
        self._shown.hide()
        self._problem.tell("")

    def _complain(self, sentence: str) -> None:
        self._shown.hide()
        self._problem.tell(sentence)

    def _look(self, content: bytes, name: str, rule: Rule | None = None, chosen: Chosen | None = None) -> None:
        """Starts reading in the thread, which then calls `_show_read`."""
        self._source, self._chosen = (content, name), chosen
        self._reading += 1
        turn = self._reading
        self._problem.tell("")

        def work() -> None:
            try:
                found = tables.read(content, name, rule, chosen)
            except SetError as error:
                self._read.emit((turn, None, translated(str(error))))
                return
            self._read.emit((turn, found, problem(found)))

        threading.Thread(target=work, daemon=True).start()

    def _show_read(self, told: tuple[int, Preview | None, str]) -> None:
        turn, found, wrong = told
        if turn != self._reading:
            return
        if found is None or (wrong and found.reading is None):
            self._complain(wrong)
            return
        self._problem.tell(wrong)
        self._add.setEnabled(not wrong)
        self._found, made = found, found.made
        self._show_reading(found.reading)
        held = family(made).held_out
        aside = number(len(held)) if held is not None else tr("A fifth")
        facts = tr(
            "{n} different rows. {aside} of them are kept aside to measure with.",
            n=number(made.distinct),
            aside=aside,
        )
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
        self._notes.tell("\n".join(notes(found)))
        self._instruction.setText(made.asked_with)
        if not self._shown.isVisible():
            self._name.setText(made.name)
        self._typing.hide()
        target = self._target
        self._name.setVisible(target is None)
        self._add.setText(tr("Add to {name}", name=target.made.name) if target else tr("Add and learn"))
        self._shown.show()
        if not wrong and self._chosen is None:
            self._add.setFocus()

    def _check_otherwise(self) -> None:
        self._look(*self._source, Rule(check=Check(str(self._check.currentData()))), self._chosen)

    def _keep(self) -> None:
        if self._found is None:
            return
        made = self._found.made
        if self._target is not None:
            self._added.tell(self._teach(self._target, made.rows))
            self._close()
            return
        instruction = self._instruction.text().strip()
        made = msgspec.structs.replace(
            made,
            name=self._name.text().strip() or made.name,
            instruction="" if instruction == made.asked_with else instruction,
        )
        try:
            self._home.mkdir(parents=True, exist_ok=True)
            question_sets.add(self._home, made)
        except (SetError, DiskFullError, OSError) as error:
            self._problem.tell(translated(str(error)))
            return
        self._close()
        self._text.clear()
        self._waits = (*self._on(), made.mark)
        self._show_sets()
        self._reader.setVisible(self._ask.choices["model"] == STARTER)
        if self._reader.isHidden():
            self._begin()
        else:
            self._added.tell(tr("Added. Pick a model to learn it with."))
            self._models.show_holdings(self._view.models)
        self._cards[made.mark].switch.setFocus()

    def _begin(self) -> None:
        """Learns the added sets, now that a model is chosen that reads."""
        self._reader.hide()
        marks, self._waits = self._waits, ()
        self._learn(marks)
        self._show_sets()
        self._added.tell(tr("Added. Your model learns them now."))

    def _on(self) -> tuple[str, ...]:
        return tuple(self._ask.choices.memory.questions)

    def _learn(self, marks: tuple[str, ...]) -> None:
        self._ask.learn_questions(tuple(dict.fromkeys(marks)))

    def _show_sets(self) -> None:
        clear_layout(self._offers)
        offers, sets = question_sets.pending_class_sets(self._home), question_sets.register_sets(self._home)
        for one in offers:
            self._offers.addWidget(self._offer_row(one))
        self._class.setVisible(bool(offers))
        known = {one.made.mark: one for one in reversed(known_skills(self._home))}
        self.kept = {one.made.mark: one for one in sets}
        for gone in self._cards.keys() - self.kept.keys():
            self._cards.pop(gone).deleteLater()
        for key, one in self.kept.items():
            if key not in self._cards:
                self._cards[key] = self._card(one)
                self._sets.addWidget(self._cards[key])
            on = key in (*self._on(), *self._waits)
            self._cards[key].show_skill(one, known.get(key), on, self._private)
        self._list.setVisible(bool(sets))
        self._title.say(tr("Another table") if sets else tr("Your own questions"))
        self._about.setVisible(not sets)
        self.changed.emit()

    def _offer_row(self, one: KeptSet) -> QWidget:
        """Builds the row of a set that a class hands out, previewed like any other file."""
        made = one.made
        said = counted(
            "Your class offers {name}, {n} question.",
            "Your class offers {name}, {n} questions.",
            made.distinct,
            name=made.name,
        )

        def decline() -> None:
            with suppress(OSError):
                question_sets.decline(one)
            self._show_sets()

        look = button(tr("Look at it"), lambda: self._look(encode(made), made.name))
        no = button(tr("No, thanks"), decline, "flat")
        return boxed(column(rule(), row(Label(said, "strong", wrap=True), no, look, gap=8, fill=0), gap=10))

    def _card(self, one: KeptSet) -> SkillCard:
        mark = one.made.mark

        def learn(on: bool) -> None:
            others = tuple(other for other in self._on() if other != mark)
            self._learn((*others, mark) if on else others)

        return SkillCard(
            self._theme,
            self._ask,
            one,
            learn=learn,
            remove=lambda: self._remove(self.kept[mark]),
            changed=self._show_sets,
            teach=lambda rows: self._teach(self.kept[mark], rows),
            read=lambda: self._choose(self.kept[mark]),
        )

    def _teach(self, one: KeptSet, rows: Sequence[Row]) -> str:
        """Adds rows to a set and learns it on; returns a sentence on what was done."""
        try:
            done = question_sets.amend(self._home, one.made.mark, rows)
        except (SetError, DiskFullError, OSError) as error:
            return translated(str(error))
        if not done.new + done.corrected:
            return tr("Your table has this already.")
        self._learn((*self._on(), one.made.mark))
        self._show_sets()
        new, corrected = number(done.new), number(done.corrected)
        return tr("New rows: {new}. Corrected: {corrected}. It learns on.", new=new, corrected=corrected)

    def _remove(self, one: KeptSet) -> None:
        about = tr("{name} and what your model learned from it will be deleted.", name=one.made.name)
        if not confirm(self, tr("Delete these questions?"), about, tr("Delete"), danger=True):
            return
        try:
            question_sets.remove(self._home, one)
        except OSError as error:
            why = error.strerror or ""
            self._problem.tell(tr("{path} can't be deleted ({why}).", path=str(one.file), why=why))
            return
        self._learn(tuple(mark for mark in self._on() if mark != one.made.mark))
        self._show_sets()


def offers_mtime_ns(home: Path) -> int:
    """Returns when the folder of offered sets last changed (nanoseconds; 0 if it is missing). It changes
    whenever a class offers a set."""
    try:
        return (home / question_sets.FOLDER / question_sets.OFFERED_FOLDER).stat().st_mtime_ns
    except OSError:
        return 0


def problem(found: Preview) -> str:
    """Returns the sentence of why a set can't be used; empty if it can."""
    if not found.usable:
        return translated(tables.reasons(found))
    try:
        question_sets.check(found.made)
    except SetError as error:
        return translated(str(error))
    return ""


def notes(found: Preview) -> list[str]:
    """Returns sentences that the person should read before adding a set."""
    said = [translated(note) for note in found.notes]
    share, answer = found.made.constant_share()
    if share >= 0.2:
        percent = number(round(100 * share))
        said.append(tr("“{answer}” alone would be right in {n} of 100.", answer=answer, n=percent))
    if found.usable and found.made.distinct < ROUGH:
        said.append(tr("With fewer than {n} questions the curve will be rough.", n=number(ROUGH)))
    for one in found.skipped[:_LEFT_OUT]:
        said.append(tr("Row {n} is left out: {reason}.", n=number(one.row), reason=tr(one.reason.value)))
    if (left := sum(found.counts.values())) > _LEFT_OUT:
        why = ", ".join(f"{tr(reason.value)} ({number(count)})" for reason, count in found.counts.items())
        said.append(tr("{n} rows are left out: {reasons}.", n=number(left), reasons=why))
    return said
