"""The versions of a model in its row: a name, back to a round, what was put by, start
over. Everything that deletes asks first and says what goes and what stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QFrame, QMenu, QPushButton

from app.node.data.library import LONGEST_NAME, ModelEntry, Point, Version
from app.ui.frame.model_actions import ModelActions
from app.ui.language.texts import number, size, tr
from app.ui.view.words import moment
from app.ui.widgets.pieces import button, column, field, row

Ask = Callable[..., None]


class VersionsButton(QPushButton):
    """A button with a menu, made anew whenever it opens. `ask` is a row's `Panel.ask`."""

    def __init__(self, actions: ModelActions, ask: Ask, naming: Naming) -> None:
        super().__init__(tr("More"))
        self.setProperty("look", "flat")
        self._actions, self._ask, self._naming = actions, ask, naming
        self._model = ModelEntry(name="", title="")
        self._menu = QMenu(self)
        self._menu.aboutToShow.connect(self._fill)
        self.setMenu(self._menu)

    def show_model(self, model: ModelEntry) -> None:
        self._model = model
        learned = model.training is not None and model.training.rounds > 0
        self.setVisible(model.installed and (learned or bool(model.versions)))

    def _fill(self) -> None:
        self._menu.clear()
        model, training = self._model, self._model.training
        if training is not None and training.rounds:
            called = training.called
            self._add(tr("Rename") if called else tr("Give it a name"), lambda: self._naming.open(called))
            earlier = [point for point in training.points if point.round < training.rounds]
            back = self._menu.addMenu(tr("Back to an earlier round"))
            back.setEnabled(bool(earlier))
            for point in reversed(earlier):
                self._add(_point(point), partial(self._back, point), back)
        if model.versions:
            kept = self._menu.addMenu(tr("Kept versions"))
            for version in model.versions:
                one = kept.addMenu(_version(version))
                self._add(tr("Learn with this one again"), partial(self._bring, version), one)
                self._add(tr("Delete it"), partial(self._forget, version), one)
        if training is not None and training.rounds:
            self._menu.addSeparator()
            self._add(tr("Start over"), self._start_over)

    def _add(self, text: str, act: Callable[[], None], menu: QMenu | None = None) -> None:
        (menu or self._menu).addAction(text).triggered.connect(lambda _=False: act())

    def _back(self, point: Point) -> None:
        name, training = self._model.name, self._model.training
        assert training is not None
        n = number(point.round)
        self._ask(
            tr(
                "Go back to round {n}? Keep what it is now, after round {now}, and you can return to it. Or "
                "delete the later rounds for good.",
                n=n,
                now=number(training.rounds),
            ),
            tr("Keep both, go back"),
            lambda: self._actions.back(name, str(point.round), True),
            other=(tr("Delete later rounds"), lambda: self._actions.back(name, str(point.round), False)),
        )

    def _bring(self, version: Version) -> None:
        self._ask(
            tr(
                "{version} learns again. What learns now is kept and can return too.", version=_version(version)
            ),
            tr("Learn with this one again"),
            lambda: self._actions.back(self._model.name, version.id, True),
        )

    def _forget(self, version: Version) -> None:
        self._ask(
            tr(
                "This will be deleted for good: {version} ({size}). What learns now stays.",
                version=_version(version),
                size=size(version.bytes),
            ),
            tr("Delete for good"),
            lambda: self._actions.forget(self._model.name, version.id),
            danger=True,
        )

    def _start_over(self) -> None:
        name, training = self._model.name, self._model.training
        assert training is not None
        self._ask(
            tr(
                "Start over with round 1? Keep what {title} learned in {rounds} rounds, and you can return to "
                "it. Or delete that and its history for good. The model itself and your other models stay.",
                title=self._model.title,
                rounds=number(training.rounds),
            ),
            tr("Keep it, start over"),
            lambda: self._actions.start_over(name, True),
            other=(tr("Delete it, start over"), lambda: self._actions.start_over(name, False)),
        )


class Naming(QFrame):
    """Asks for a name; `act` gets it, an empty one to take it away."""

    def __init__(self, act: Callable[[str], None]) -> None:
        super().__init__()
        self.setProperty("look", "quiet")
        self._act = act
        self._field = field(tr("A name for your model"), width=260)
        self._field.setMaxLength(LONGEST_NAME)
        self._field.returnPressed.connect(self._save)
        save = button(tr("Save name"), self._save, "primary")
        line = row(self._field, save, button(tr("Not now"), self.hide, "flat"), 1, gap=8)
        self.setLayout(column(line, margins=(16, 14, 16, 14)))
        self.hide()

    def open(self, name: str) -> None:
        self._field.setText(name)
        self.show()
        self._field.setFocus()
        self._field.selectAll()

    def _save(self) -> None:
        self.hide()
        self._act(" ".join(self._field.text().split()))


def _point(point: Point) -> str:
    """One line of the menu: which round, how good it was, when."""
    return _line(tr("Round {n}", n=number(point.round)), point.solved, point.at)


def _version(version: Version) -> str:
    rounds = tr("{n} rounds", n=number(version.rounds))
    return _line(f"{version.called}, {rounds}" if version.called else rounds, version.solved, version.at)


def _line(lead: str, solved: float | None, at: float) -> str:
    solves = tr("solves {n} of 100", n=number(100 * solved)) if solved is not None else ""
    return ", ".join(part for part in (lead, solves, moment(at, time.time()) if at else "") if part)
