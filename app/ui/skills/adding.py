"""A person's own tables: a card for each skill, and one to add another: drop, paste or type a table, look at
its preview, and learn it. All of it stays on this computer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFileDialog, QPlainTextEdit, QVBoxLayout, QWidget

from app.models.catalogue import STARTER
from app.node.data import question_sets
from app.node.data.question_sets import SET_SUFFIXES, KeptSet
from app.node.models.skills import known_skills
from app.node.record.errors import DiskFullError
from app.sapo.sets import templates
from app.sapo.sets.bounds import MAX_BYTES
from app.sapo.sets.question_set import QuestionSet, Row, SetError, encode
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, number, tr, translated
from app.ui.skills.card import SkillCard
from app.ui.skills.preview import TablePreview
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import (
    Label,
    boxed,
    button,
    card,
    clear_layout,
    column,
    confirm,
    row,
    rule,
)
from app.ui.widgets.selecting import Picker


class OwnQuestions(QWidget):
    """The user's own question sets on the Skills page: a card each, and one to add more."""

    changed = Signal()
    """There are other sets now."""

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._theme, self._ask, self._home = theme, actions, Path()
        self.preview = TablePreview(theme)
        self.preview.taken.connect(self._keep)
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
        self._private = False
        self._state: tuple[Path, bool, int, float] | None = None
        self._cards: dict[str, SkillCard] = {}
        self.kept: dict[str, KeptSet] = {}
        self._target: KeptSet | None = None
        """The set that the rows shown are added to; None for a new one."""
        reads = tr("The starter only knows puzzles. To learn your own table, pick a model that reads.")
        models = button(tr("See the models"), lambda: actions.go("models"), "primary")
        reader = row(Label(reads, "strong", wrap=True), models, gap=8, fill=0)
        self._reader = boxed(column(rule(), reader, gap=8))
        self._about = Label(about, "soft", wrap=True)
        self.preview.told.connect(self._problem.tell)
        self.preview.shown.connect(lambda: self._typing.hide())
        parts = (head, self._about, self._problem, self._editor(), self.preview, self._reader)
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
        if not self._reader.isHidden() and not self._waits:  # a model was chosen that reads
            self._reader.hide()
            self._added.tell(tr("Added. Your model learns them now."))

    def offer(self, path: str, target: KeptSet | None = None) -> None:
        """Shows a preview of the set that a chosen or dropped file would become, or of the rows that it would
        add to `target`."""
        self._close()
        self._target = target
        try:
            with Path(path).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            self._problem.tell(tr("{path} can't be read ({why}).", path=path, why=error.strerror or str(error)))
            return
        self.preview.look(content, Path(path).stem, target.made if target is not None else None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and not (self._typing.isHidden() and self.preview.isHidden()):
            self._close()
        else:
            super().keyPressEvent(event)

    def _choose(self, target: KeptSet | None = None) -> None:
        kinds = " ".join(f"*{ending}" for ending in SET_SUFFIXES)
        path, _ = QFileDialog.getOpenFileName(
            self, tr("Open a file"), str(Path.home()), f"{tr('Tables and text')} ({kinds})"
        )
        if path:
            self.offer(path, target)

    def _type(self) -> None:
        self._close()
        self._typing.show()
        self._text.setFocus()

    def _take_example(self) -> None:
        title = str(self._examples.currentData())
        if title:
            self._close()
            self.preview.look(templates.EXAMPLES[title].encode(), tr(title))
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
        self.preview.look(self._text.toPlainText().encode("utf-8", "replace"), tr("My questions"))

    def _close(self) -> None:
        self._target = None
        self._typing.hide()
        self.preview.close_table()

    def _keep(self, made: QuestionSet) -> None:
        if self._target is not None:
            self._added.tell(self._teach(self._target, made.rows))
            self._close()
            return
        try:
            self._home.mkdir(parents=True, exist_ok=True)
            question_sets.add(self._home, made)
        except (SetError, DiskFullError, OSError) as error:
            self._problem.tell(translated(str(error)))
            return
        self._close()
        self._text.clear()
        self._begin_with((*self._on(), made.mark))
        self._cards[made.mark].switch.setFocus()

    def _begin_with(self, marks: tuple[str, ...]) -> None:
        """Learns these sets, at once or as soon as a model is chosen that reads."""
        reads = self._ask.choices["model"] != STARTER
        if reads:
            self._learn(marks)
        else:
            self._wait_with(marks)
        self._show_sets()
        self._reader.setVisible(not reads)
        pick, learns = tr("Added. Pick a model to learn it with."), tr("Added. Your model learns them now.")
        self._added.tell(learns if reads else pick)

    @property
    def _waits(self) -> tuple[str, ...]:
        """The sets to learn as soon as a model is chosen that reads."""
        return self._ask.choices.memory.waits

    def _wait_with(self, marks: tuple[str, ...]) -> None:
        with suppress(OSError):  # it holds until the window closes
            self._ask.choices.remember_window(waits=marks)

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

        def show() -> None:
            self._close()
            self.preview.look(encode(made), made.name)

        look = button(tr("Look at it"), show)
        no = button(tr("No, thanks"), decline, "flat")
        return boxed(column(rule(), row(Label(said, "strong", wrap=True), no, look, gap=8, fill=0), gap=10))

    def _card(self, one: KeptSet) -> SkillCard:
        mark = one.made.mark

        def learn(on: bool) -> None:
            others = tuple(other for other in self._on() if other != mark)
            if on:
                self._begin_with((*others, mark))
            else:
                self._wait_with(tuple(other for other in self._waits if other != mark))
                self._learn(others)

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
