"""What a skill's card opens: a box to ask it in, how other programs use it, and rows that teach it more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.models.catalogue import full_name, title
from app.node.models.skills import KnownSkill
from app.sapo.sets.question_set import Row
from app.skills.answering import AskedAnswer
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, number, tr
from app.ui.models.export_menu import ExportMenu
from app.ui.skills.answering import RightAnswer, Teach
from app.ui.skills.doubts import DoubtList
from app.ui.theme import Theme
from app.ui.view.view import Holdings, ServedDoor
from app.ui.widgets.pieces import CopyButton, Label, boxed, button, clear_layout, column, field, row, rule

_LABELS = 12
"""Maximum labels whose numbers of rows are listed."""


class SkillPanel(QWidget):
    """A panel below a skill's card."""

    def show_skill(self, known: KnownSkill) -> None:
        """Shows another state of the skill."""


class AskPanel(SkillPanel):
    """A box to ask a skill in: the answer, how sure it is, every label with its share, and a way to correct
    it."""

    def __init__(self, theme: Theme, ask: Actions, known: KnownSkill, teach: Teach) -> None:
        super().__init__()
        self._theme, self._ask, self._known, self._teach = theme, ask, known, teach
        self._asked = ""
        self._text = field(tr("A text as in your table"))
        self._text.returnPressed.connect(self._go)
        self.setFocusProxy(self._text)
        self._button = button(tr("Ask"), self._go, "primary")
        self._answer, self._sure = Label("", "heading", wrap=True), Label("", "soft", wrap=True)
        self._right = RightAnswer(theme, known)
        keep = button(tr("Teach it this"), self._correct, hint=tr("Adds the row to your table"))
        right = Label(tr("Right would be"), "soft")
        self._correction = boxed(row(right, self._right.field, keep, 1, gap=8))
        self._kept = Label("", "good", wrap=True)
        asks = row(self._text, self._button, gap=8, fill=0)
        self.setLayout(column(rule(), asks, self._answer, self._sure, self._correction, self._kept, gap=8))
        for one in (self._answer, self._sure, self._kept):
            one.tell("")
        self._correction.hide()

    def show_skill(self, known: KnownSkill) -> None:
        self._known = known

    def _go(self) -> None:
        self._asked = self._text.text().strip()
        if not self._asked:
            return
        self._button.setEnabled(False)
        self._correction.hide()
        self._answer.tell("")
        self._kept.tell("")
        self._sure.tell(tr("It reads …"))
        self._ask.ask_skill(self._known.made.mark, self._asked, self._hear)

    def _hear(self, said: AskedAnswer | str) -> None:
        self._button.setEnabled(True)
        self._correction.setVisible(not isinstance(said, str))
        if isinstance(said, str):
            self._sure.tell(said)
            return
        self._answer.tell(said.answer or tr("No answer"))
        sure = [tr("{n} % sure.", n=number(round(100 * said.sure)))]
        if said.of:
            counts = {"of": number(said.of), "n": number(said.right)}
            sure.append(tr("Of {of} rows kept aside that were about as sure, {n} were right.", **counts))
        ranked = sorted(said.labels.items(), key=lambda one: -one[1])
        shares = " · ".join(f"{label} {number(round(100 * share))} %" for label, share in ranked)
        self._sure.tell("\n".join(filter(None, [" ".join(sure), shares])))
        self._right.show_answer(said.answer)

    def _correct(self) -> None:
        if self._right.text:
            taught = Row(question=self._asked, answer=self._right.text, held_out=False)
            self._kept.tell(self._teach([taught]))
            self._correction.hide()


class ElsewherePanel(SkillPanel):
    """How other programs ask a skill, and files of it to take away."""

    def __init__(self, theme: Theme, ask: Actions, known: KnownSkill) -> None:
        super().__init__()
        self._ask, self._known = ask, known
        self._door: ServedDoor | None = None
        self._how = Label("", "soft", wrap=True)
        self._copy = CopyButton(theme, tr("Copy a command that asks it"), self._command)
        models = button(tr("See the models"), lambda: ask.go("models"))
        asks = row(self._how, self._copy, models, gap=12, fill=0)
        self._takes = False
        """Whether a file was asked for here, so that what became of it is told here."""
        take = button(tr("Take it away"), lambda: None)
        ExportMenu(take, lambda: self._known.slug, self._take)
        files = tr("Files for other programs. They answer as it does here.")
        self._said = Label("", "soft", wrap=True)
        below = row(Label(files, "soft", wrap=True), take, gap=12, fill=0)
        self.setLayout(column(rule(), asks, rule(), below, self._said, gap=12))
        self._said.tell("")
        self.show_holdings(Holdings(chosen=""))

    def show_skill(self, known: KnownSkill) -> None:
        self._known = known

    def show_holdings(self, holdings: Holdings) -> None:
        model = self._known.model_name
        door = holdings.door
        self._door = door if door is not None and full_name(door.chosen) == full_name(model) else None
        names = {"model": title(model), "name": self._known.slug}
        self._how.say(
            tr("Programs ask it as “{name}”. Their address and token are on the page Models.", **names)
            if self._door is not None
            else tr(
                "On the page Models, choose {model} and turn on “Use it in other programs”. Programs ask it as "
                "“{name}”.",
                **names,
            )
        )
        self._copy.setVisible(self._door is not None)
        if self._takes:
            self._said.tell(holdings.problem or holdings.said)

    def _command(self) -> str:
        """Returns a command that asks the skill one text, for a terminal of any system."""
        assert self._door is not None
        text = f'"messages": [{{"role": "user", "content": "{tr("A text")}"}}]'
        body = f'{{"model": "{self._known.slug}", {text}}}'.replace('"', '\\"')
        head = f'-H "Authorization: Bearer {self._door.token}" -H Content-Type:application/json'
        return f'curl {self._door.url}/chat/completions {head} -d "{body}"'

    def _take(self, form: str, to: str) -> None:
        self._takes = True
        self._ask.models.export(self._known.model_name, form, to, self._known.made.name)


class TeachPanel(SkillPanel):
    """The rows that a skill has of each answer, and more rows from a file."""

    def __init__(
        self, theme: Theme, ask: Actions, known: KnownSkill, teach: Teach, read: Callable[[], None]
    ) -> None:
        super().__init__()
        self._counts, doubts = column(gap=4), DoubtList(theme, ask, known, teach)
        more = button(
            tr("Add rows from a file"), read, hint=tr("A row that is there already gets the new answer")
        )
        self.setFocusProxy(more)
        about = Label(
            tr("More rows help most. Correct wrong answers in “Ask it”, or add a table with more of them."),
            "soft",
            wrap=True,
        )
        self.setLayout(column(rule(), boxed(self._counts), row(about, more, gap=12, fill=0), doubts, gap=10))
        self.show_skill(known)

    def show_skill(self, known: KnownSkill) -> None:
        clear_layout(self._counts)
        counts = Counter(one.answer for one in known.made.rows)
        if known.skill.labels and len(counts) <= _LABELS:
            said = " · ".join(
                f"{known.made.shown_answer(label)} {number(n)}" for label, n in counts.most_common()
            )
            self._counts.addWidget(Label(tr("Rows of each answer: {counts}", counts=said), wrap=True))
        else:
            self._counts.addWidget(Label(counted("{n} row", "{n} rows", known.made.distinct)))
