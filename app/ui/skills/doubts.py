"""The rows of a table without answers that a skill is least sure of, for the owner to answer: those teach it
most. Which they are is found by a child process (./shoal ask --least-sure)."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from app.node.models.skills import KnownSkill
from app.sapo.sets.question_set import Row
from app.skills.answering import LeastSure
from app.ui.frame.frame import Actions
from app.ui.language.texts import tr, translated
from app.ui.process.job import Job, MakeJob, decoded
from app.ui.skills.answering import RightAnswer, Teach
from app.ui.theme import Theme
from app.ui.widgets.pieces import Elided, Label, boxed, button, clear_layout, column, row

ROWS = 10


class DoubtList(QWidget):
    """A button that asks for a table, and then the rows to answer. `teach` adds them to the skill's set."""

    def __init__(
        self, theme: Theme, ask: Actions, known: KnownSkill, teach: Teach, make: MakeJob = Job
    ) -> None:
        super().__init__()
        self._theme, self._ask, self._known, self._teach = theme, ask, known, teach
        self._job = make()
        self._job.line.connect(self._heard)
        self._job.ended.connect(self._ended)
        self._answers: list[tuple[str, RightAnswer]] = []
        self._list = column(gap=6)
        hint = tr("From a table without answers: those that it is least sure of")
        self._open = button(tr("Ask me about ten rows"), self._choose, hint=hint)
        self._keep = button(tr("Teach it these"), self._take, "primary")
        self._none = button(tr("Cancel"), self._close)
        self._said = Label("", "soft", wrap=True)
        self._ends = boxed(row(1, self._none, self._keep, gap=8))
        self.setLayout(column(row(self._open, 1), self._said, boxed(self._list), self._ends, gap=8))
        self._close()

    def _choose(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, tr("A table without answers"), str(Path.home()))
        if path:
            self.look(Path(path))

    def look(self, table: Path) -> None:
        """Finds the rows of this table to ask about."""
        self._close()
        home = self._known.folder.parents[3]
        words = ["ask", self._known.made.mark, "--file", str(table), "--least-sure", str(ROWS)]
        words += ["--engine", str(self._ask.choices["engine"]), "--json", "--attached", "--home", str(home)]
        self._open.setEnabled(False)
        self._said.tell(tr("It reads …"))
        self._job.start(words, home / "logs" / "ask.log")

    def _heard(self, line: bytes) -> None:
        if (one := decoded(line, LeastSure)) is None:
            return
        right = RightAnswer(self._theme, self._known, one.answer)
        self._answers.append((one.text, right))
        self._list.addWidget(boxed(row(Elided(" ".join(one.text.split())), right.field, gap=12, fill=0)))

    def _ended(self, code: int) -> None:
        self._open.setEnabled(True)
        if code or not self._answers:
            self._said.tell(translated(self._job.complaint) or tr("No row was found to ask about."))
            return
        self._said.tell(tr("It is least sure of these. Pick what is right."))
        self._ends.show()

    def _take(self) -> None:
        rows = [(text, right.text) for text, right in self._answers]
        said = self._teach(
            [Row(question=text, answer=answer, held_out=False) for text, answer in rows if answer]
        )
        self._close()
        self._said.tell(said)

    def _close(self) -> None:
        self._answers = []
        clear_layout(self._list)
        self._ends.hide()
        self._said.tell("")
