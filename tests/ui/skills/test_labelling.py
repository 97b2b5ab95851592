"""The panel that labels a table: what will be asked is shown first, and a child process does the work."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.node.history.measured import AnsweredQuestion, MeasuredAnswers
from app.node.models.skills import KnownSkill
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.question_set import QuestionSet, Row
from app.ui.frame.frame import Actions
from app.ui.process.job import Job
from app.ui.skills.labelling import LabelPanel, new_name
from app.ui.theme import Theme

CHILD = """
import json, sys, time
from pathlib import Path
words = dict(zip(sys.argv[1:], sys.argv[2:]))
out = Path(words["--out"])
(out.parent / "words.json").write_text(json.dumps(sys.argv[1:]))
print(json.dumps({"event": "table", "rows": 2, "have": 0}))
print(json.dumps({"event": "progress", "have": 1, "total": 2, "share": 0.5, "left_s": 90.0}), flush=True)
if "--restart" not in sys.argv:
    Path(str(out) + ".part").write_text("")
    print(json.dumps({"event": "refused", "sentence": "The table has changed."}), flush=True)
    sys.exit(1)
done = {"event": "labelled", "file": str(out), "rows": 3, "answered": 1, "blank": 1, "empty": 1}
print(json.dumps(done), flush=True)
"""


def panel(qtbot: QtBot, light: Theme, actions: Actions, tmp_path: Path) -> LabelPanel:
    rows = tuple(Row(question=f"Mail {n}?", answer="spam" if n % 2 else "ham") for n in range(10))
    answers = tuple(
        AnsweredQuestion(question="", answer="", solved=n > 3, content=n, sure=n / 10) for n in range(10)
    )
    known = KnownSkill(
        made=QuestionSet(name="mails", rule=Rule(check=Check.CHOICE, labels=("ham", "spam")), rows=rows),
        slug="mails",
        folder=tmp_path / "models" / "m" / "skills" / "s",
        model=tmp_path,
        model_name="starter",
        measured=MeasuredAnswers(round=1, answers=answers),
    )
    made = LabelPanel(light, actions, known, lambda: Job(command=("-c", CHILD)))
    qtbot.addWidget(made)
    made.show()
    return made


def press(made: LabelPanel, text: str) -> None:
    next(one for one in made.findChildren(QPushButton) if one.text() == text and one.isVisible()).click()


def test_a_table_is_looked_at_then_labelled_and_a_refusal_offers_to_start_over(
    qtbot: QtBot, light: Theme, actions: Actions, tmp_path: Path
) -> None:
    made = panel(qtbot, light, actions, tmp_path)
    source = tmp_path / "may.csv"
    source.write_text("Nr;Subject;Body\n1;Hello;How are you today, my friend?\n2;Re;Fine\n")
    made.offer(source)
    qtbot.waitUntil(lambda: made._shown.isVisible(), timeout=20000)
    assert made._facts.text() == "may.csv: 2 rows" and made._columns.currentText() == "Body"
    made._also.setCurrentIndex(2)
    made._also.activated.emit(2)
    assert made._first[0].text().startswith("How are you today, my friend? Hello")
    made._least.setCurrentIndex(3)
    made._least.activated.emit(3)
    assert made._cost.text().startswith("Of 10 rows kept aside, 1 keep")
    press(made, "Label")
    qtbot.waitUntil(lambda: made._problem.isVisible(), timeout=20000)
    assert made._problem.text() == "The table has changed."
    press(made, "Start over")
    qtbot.waitUntil(lambda: made._show_file.isVisible(), timeout=20000)
    words = json.loads((tmp_path / "words.json").read_text())
    given = dict(itertools.pairwise(words))
    assert given["--out"] == str(tmp_path / "may labelled.csv") and given["--text"] == "#3,#2"
    assert (given["--heading"], given["--at-least"]) == ("yes", "90")
    assert given["--words"] == "answer,how sure,empty,too long,no answer"
    assert made._said.text().split("\n")[1:] == ["1 row is left blank.", "1 row is empty."]


def test_what_is_no_table_is_one_sentence(qtbot: QtBot, light: Theme, actions: Actions, tmp_path: Path) -> None:
    made = panel(qtbot, light, actions, tmp_path)
    (tmp_path / "empty.csv").write_text("")
    made.offer(tmp_path / "empty.csv")
    qtbot.waitUntil(lambda: made._problem.isVisible(), timeout=20000)
    assert "empty" in made._problem.text() and not made._shown.isVisible()


def test_the_new_file_is_of_the_same_kind_and_none_that_exists(tmp_path: Path) -> None:
    (tmp_path / "a labelled.xlsx").touch()
    names = [new_name(tmp_path / name).name for name in ("a.XLSX", "b.xls", "b.json", "b.txt", "b.ods")]
    assert names == [
        "a labelled 2.xlsx",
        "b labelled.xlsx",
        "b labelled.jsonl",
        "b labelled.csv",
        "b labelled.ods",
    ]
