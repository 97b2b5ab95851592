"""The rows that a skill is least sure of are answered by the owner, and taught."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.node.models.skills import KnownSkill
from app.sapo.sets import tables
from app.sapo.sets.question_set import Row
from app.skills.answering import LeastSure
from app.ui.frame.frame import Actions
from app.ui.process.job import Job
from app.ui.skills.doubts import DoubtList
from app.ui.theme import Theme

TABLE = "text,answer\n" + "".join(f"Mail {n},{'spam' if n % 3 else 'ham'}\n" for n in range(12))


class Said(Job):
    """A job that is told what its command says."""

    def __init__(self) -> None:
        super().__init__()
        self.words: Sequence[str] = ()

    def start(self, arguments: Sequence[str], log: Path | None = None) -> None:
        self.words = arguments


def test_the_owner_answers_what_it_is_least_sure_of(
    qtbot: QtBot, light: Theme, actions: Actions, tmp_path: Path
) -> None:
    made = tables.read(TABLE.encode(), "Mails").made
    folder = tmp_path / "models" / "tiny" / "skills" / "mails"
    known = KnownSkill(made=made, slug="mails", folder=folder, model=tmp_path, model_name="tiny")
    job, taught = Said(), []

    def teach(rows: Sequence[Row]) -> str:
        taught.extend(rows)
        return "New rows: 2."

    doubts = DoubtList(light, actions, known, teach, lambda: job)
    qtbot.addWidget(doubts)
    doubts.show()
    doubts.look(tmp_path / "new.csv")
    assert job.words[:2] == ["ask", made.mark] and str(tmp_path) in job.words
    for text in ("Free prize", "Lunch?"):
        job.line.emit(msgspec.json.encode(LeastSure(text=text, answer="spam", sure=0.51)))
    job.ended.emit(0)
    doubts._answers[1][1].show_answer("ham")
    doubts._keep.click()
    assert [(row.question, row.answer, row.held_out) for row in taught] == [
        ("Free prize", "spam", False),
        ("Lunch?", "ham", False),
    ]
    assert doubts._said.text() == "New rows: 2." and not doubts._ends.isVisible()
    assert not [
        label for label in doubts.findChildren(QLabel) if label.text() == "Lunch?" and label.isVisible()
    ]
    doubts.look(tmp_path / "new.csv")
    job.ended.emit(1)
    assert "No row" in doubts._said.text()
