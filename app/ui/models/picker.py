"""A compact list of models, as in the first run: one row each with size and fit. A model that is not installed
is downloaded after a question, and chosen when it has arrived."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QWidget

from app.node.data.library import ModelEntry
from app.ui.frame.frame import ModelActions
from app.ui.language.texts import size, tr
from app.ui.models.row import RowPanel, can_download
from app.ui.theme import Theme
from app.ui.view import model_words as words
from app.ui.view.view import Holdings
from app.ui.widgets.pieces import Elided, Label, button, column, progress_bar, row
from app.ui.widgets.selecting import Radio


class ModelPicker(QWidget):
    """Lists every model but the starter. `picked` emits the name of an installed model that was chosen through
    `ModelActions.choose`. Pass each View's Holdings to `show_holdings`; the picker requests the first
    itself."""

    picked = Signal(str)

    def __init__(self, theme: Theme, ask: ModelActions) -> None:
        super().__init__()
        self._theme, self._ask = theme, ask
        self._wanted = ""
        self._asked = False
        self._holdings = Holdings(chosen="")
        self._group = QButtonGroup(self)
        self._rows: dict[str, PickRow] = {}
        self._list = column(gap=6)
        self._note = Label(tr("Looking at what fits."), "soft", wrap=True)
        self._bar = progress_bar(tr("Download"))
        self._cancel = button(tr("Cancel"), self._end)
        self._failed = Label("", "bad", wrap=True)
        self._panel = RowPanel(self._close)
        self._panel.hide()
        far = row(self._note, self._cancel, gap=8, fill=0)
        self.setLayout(column(self._list, self._bar, far, self._failed, self._panel, 1, gap=8))
        for part in (self._bar, self._cancel, self._failed):
            part.hide()

    def show_holdings(self, holdings: Holdings | None) -> None:
        """Shows the models; None means that they are not known yet."""
        if holdings is None or holdings.library is None:
            if not self._asked:
                self._asked = True
                self._ask.refresh()
            if holdings is not None and holdings.problem:
                self._note.say(holdings.problem)
            return
        self._holdings = holdings
        for model in sorted(holdings.library.models, key=lambda one: not (one.installed or one.program)):
            if words.is_starter(model):
                continue
            if model.name not in self._rows:
                self._add(model)
            self._rows[model.name].show_model(model, holdings)
        self._say_download(holdings)
        wanted = holdings.library.find(self._wanted)
        if wanted is not None and wanted.installed and holdings.fetch is None:
            self._wanted = ""
            self._ask.choose(wanted.name)
            self.picked.emit(wanted.name)

    @property
    def coming(self) -> bool:
        """Whether the picked model is being downloaded."""
        return bool(self._wanted) and self._wanted not in self._holdings.failed

    def _add(self, model: ModelEntry) -> None:
        made = PickRow(self._theme, model.title)
        self._rows[model.name] = made
        self._group.addButton(made.radio)
        self._list.addWidget(made)
        made.radio.clicked.connect(lambda: self._clicked(model.name))

    def _say_download(self, holdings: Holdings) -> None:
        fetch = holdings.fetch
        self._bar.setVisible(fetch is not None)
        self._note.setVisible(fetch is not None)
        self._cancel.setVisible(fetch is not None)
        if fetch is not None:
            self._bar.setValue(round(1000 * fetch.have / fetch.total) if fetch.total else 0)
            coming = holdings.library.find(fetch.name) if holdings.library is not None else None
            self._note.say(words.progress(fetch, coming.bytes if coming is not None else 0))
        sentence = next(iter(holdings.failed.values()), "")
        self._failed.tell(sentence)

    def _clicked(self, name: str) -> None:
        library = self._holdings.library
        model = library.find(name) if library is not None else None
        if model is None or library is None:
            return
        if model.installed:
            self._close()
            self._ask.choose(name)
            self.picked.emit(name)
            return
        if model.program:  # nothing is fetched, and nothing of the program's is changed
            self._close()
            self._get(name)
            return
        self._panel.ask_download(model, library, self._ask, lambda: self._get(name))

    def _get(self, name: str) -> None:
        self._wanted = name
        self._ask.get(name)

    def _end(self) -> None:
        """Stops the download; the partial download is kept."""
        self._wanted = ""
        if self._holdings.fetch is not None:
            self._ask.cancel(self._holdings.fetch.name)

    def _close(self) -> None:
        if (chosen := self._group.checkedButton()) is not None and self._panel.isVisible():
            chosen.setFocus()  # Qt would move it to the next button
        self._panel.hide()


class PickRow(QFrame):
    """A radio button with the model's name, its size and whether it fits."""

    def __init__(self, theme: Theme, title: str) -> None:
        super().__init__()
        self.radio = Radio(theme, title)
        self._title, self._size, self._fit = Elided(title, "strong"), Label("", "faint"), Label("", "good")
        self._begins = Label("", "faint", wrap=True)
        self._about = Elided("", "faint")
        line = row(self.radio, self._title, self._about, self._size, self._fit, gap=10, fill=2)
        self.setLayout(column(line, self._begins, gap=2))
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.radio.click()

    def show_model(self, model: ModelEntry, holdings: Holdings) -> None:
        assert holdings.library is not None
        look, word, why = words.fit(model, holdings.library)
        here = tr("downloaded") if model.installed else model.program or size(words.bytes_to_download(model))
        self._about.say(words.about(model))
        self._size.say(tr("{size}, licence", size=here) if model.gated and not model.installed else here)
        self._fit.look(look or "good")
        self._fit.say(word)
        more = " ".join(part for part in (why, words.pace(model)) if part)
        self.setToolTip(more)
        self.radio.setAccessibleDescription(f"{here}. {word}. {more}")
        self.radio.setChecked(holdings.chosen == model.name or self.radio.isChecked())
        self._begins.tell(words.begins(model) or (words.pace(model) if self.radio.isChecked() else ""))
        self.radio.setEnabled(model.installed or can_download(model))
