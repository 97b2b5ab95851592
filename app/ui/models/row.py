"""The row of one model on the page Models: its description, whether it fits, its download, and the actions on
it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu

from app.models.fit import FitVerdict
from app.models.gguf_shelf import is_gguf
from app.node.data.library import Library, ModelEntry
from app.ui.frame.frame import Actions
from app.ui.language.texts import number, tr, translated
from app.ui.models.export_menu import ExportMenu
from app.ui.process.models import ModelControl
from app.ui.theme import Theme
from app.ui.view import model_words as words
from app.ui.view.view import Fetch, Holdings
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import (
    Card,
    Elided,
    Label,
    boxed,
    bring_into_sight,
    button,
    column,
    field,
    progress_bar,
    relook,
    row,
)

_STEPS = 1000


class ModelRow(Card):
    """Shows one ModelEntry and requests actions only through `ask`."""

    def __init__(self, theme: Theme, ask: Actions, name: str) -> None:
        super().__init__()
        self.name, self._models, self._learn_with = name, ask.models, ask.learn_with
        self._model = ModelEntry(name=name, title=name)
        self._running = False
        self._holdings = Holdings(chosen="")
        self._title, self._chip = Elided("", "heading"), Label("", "chip")
        self._about, self._begins = Label("", "soft", wrap=True), Label("", "soft", wrap=True)
        self._facts = Label("", "faint", wrap=True)
        self._fit, self._why = Label("", "good"), Label("", "soft", wrap=True)
        self._bar, self._far = progress_bar("", _STEPS), Label("", "soft", wrap=True)
        self._failed = Label("", "bad", wrap=True)
        self._panel = RowPanel(self._close)
        self._use = button(tr("Learn with this"), self._ask_use, "primary")
        self._get = button(tr("Download"), self._ask_get)
        self._retry = button(tr("Retry"), self._try_again, "primary")
        self._cancel = button(tr("Cancel"), lambda: self._models.cancel(self.name))
        self._delete = button(tr("Delete"), self._ask_delete, "flat")
        self._again = button(tr("Retry now"), lambda: self._models.retry(self.name))
        self._past = button(tr("More"), lambda: None, "flat")
        past = QMenu(self._past)
        self._back = past.addAction("", self._ask_back)
        past.addAction(tr("Start over"), self._ask_start_over)
        self._past.setMenu(past)
        self._export = button(tr("Export"), lambda: None, "flat")
        ExportMenu(self._export, self._file_name, lambda form, to: self._models.export(self.name, form, to))
        head = row(self._title, self._chip, gap=10, fill=0)
        fit = row(self._fit, self._why, gap=8, fill=1)
        fit.setAlignment(self._fit, Qt.AlignmentFlag.AlignTop)
        self._fit_line = boxed(fit)
        said = column(head, self._about, self._facts, self._fit_line, self._begins, gap=4)
        self._buttons = (
            *(self._past, self._delete, self._export, self._cancel),
            *(self._again, self._get, self._retry, self._use),
        )
        doing = Bend(*self._buttons, gap=8)
        top = Bend(said, doing, gap=20, least=480)
        top.setStretch(0, 1)
        top.setAlignment(doing, Qt.AlignmentFlag.AlignTop)
        self._progress = boxed(column(self._bar, self._far, gap=6))
        below = (self._progress, self._failed, self._panel)
        self.setLayout(column(top, *below, gap=12, margins=(20, 16, 18, 16)))
        self._close()

    def show_model(self, model: ModelEntry, holdings: Holdings, running: bool, learning: bool) -> None:
        """Shows another state. `running`: a node learns with it, or will as soon as it may; `learning`: it
        learns right now."""
        assert holdings.library is not None
        focused = self.focused()
        self._model, self._holdings, self._running = model, holdings, running
        chosen = holdings.chosen == model.name
        fetch = holdings.fetch if holdings.fetch is not None and holdings.fetch.name == model.name else None
        waits = model.name in holdings.queue
        elsewhere = model.partial is not None and model.partial.running and fetch is None
        cut = (
            not model.installed and model.partial is not None and fetch is None and not waits and not elsewhere
        )
        self._title.say(tr(model.title))
        self._title.setToolTip(model.name)
        self._say_chip(chosen, learning)
        self._about.say(words.about(model))
        self._facts.say(words.facts(model))
        self._begins.tell(words.begins(model))
        look, word, why = words.fit(model, holdings.library)
        self._fit_line.setVisible(bool(word))
        self._fit.look(look or "good")
        self._fit.say(word)
        self._why.say(why)
        self._say_progress(fetch, waits, elsewhere)
        sentence = holdings.failed.get(model.name) or (
            translated(model.partial.sentence) if cut and model.partial else ""
        )
        if cut and not sentence:
            sentence = tr("Download interrupted. Nothing is lost: it resumes where it stopped.")
        self._failed.tell(sentence)
        busy = fetch is not None or waits
        training = model.training
        learned = training is not None and training.rounds > 0 and model.installed
        self._use.setVisible(model.installed and not chosen)
        self._get.setVisible(not model.installed and not busy and not cut and not elsewhere)
        self._get.setEnabled(can_download(model))
        self._get.setText(tr("Use this") if model.program else tr("Download"))
        self._retry.setVisible(cut)
        self._cancel.setVisible(busy)
        self._again.setVisible(fetch is not None and fetch.retry_at is not None)
        self._past.setVisible(learned)
        best = training.best if training is not None else None
        self._back.setVisible(best is not None)
        self._back.setText(tr("Back to its best, round {n}", n=number(best or 0)))
        deletable = model.installed or cut
        theirs = words.is_starter(model) or bool(model.program)
        self._delete.setVisible(deletable and not theirs and not busy)
        self._export.setVisible(learned)
        self._delete.setEnabled(not chosen)
        self._delete.setText(tr("Remove") if model.local else tr("Delete"))
        self._delete.setToolTip(tr("Choose another model to learn with first.") if chosen else "")
        for one in self._buttons:  # screen readers read it without the model's title
            one.setAccessibleName(f"{one.text()}: {self._model.title}")
        if focused and not self.focused():
            self.keep_focus()

    def focused(self) -> bool:
        has = QApplication.focusWidget()
        return has is not None and self.isAncestorOf(has)

    def keep_focus(self) -> None:
        """Keeps the keyboard focus on a usable button of this row: Qt would move it to the next model's."""
        for one in (self._use, self._cancel, self._get, self._retry, self._delete):
            if one.isVisible() and one.isEnabled():
                one.setFocus()
                return

    def _say_chip(self, chosen: bool, learning: bool) -> None:
        model = self._model
        text = ""
        if chosen:
            text = tr("Learning now") if learning else tr("Chosen")
        elif model.recommended:
            text = tr("Recommended")
        elif model.gated and not model.installed:
            text = tr("Licence to accept")
        elif model.program:
            text = model.program
        elif model.local:
            text = tr("Your file") if is_gguf(model.name) else tr("Your folder")
        self._chip.look("chip" if chosen else "chip-peer")
        self._chip.tell(text)

    def _say_progress(self, fetch: Fetch | None, waits: bool, elsewhere: bool) -> None:
        partial = self._model.partial
        shown = fetch
        if shown is None and partial is not None and partial.total and not self._model.installed:
            shown = Fetch(name=self.name, have=partial.have, total=partial.total)
        self._progress.setVisible(fetch is not None or waits or shown is not None)
        if waits:
            self._far.say(tr("Next in line."))
        elif fetch is not None:
            self._far.say(words.progress(fetch, self._model.bytes))
        elif elsewhere:
            self._far.say(tr("Another Shoal is downloading it."))
        elif shown is not None:
            self._far.say(words.progress(shown, self._model.bytes))
        share = shown.have / shown.total if shown is not None and shown.total else 0.0
        self._bar.setValue(round(_STEPS * share))
        self._bar.setAccessibleName(tr("Download of {title}", title=self._model.title))
        self._bar.setAccessibleDescription(self._far.text())

    def _try_again(self) -> None:
        """Repeats a download that was agreed to before, asking only for a missing access token."""
        if self._model.gated:
            self._ask_get()
        else:
            self._models.get(self.name)

    def _ask_get(self) -> None:
        if self._model.program:
            self._models.get(self.name)  # nothing is fetched, and nothing of the program's is changed
            return
        library = self._holdings.library
        assert library is not None
        self._panel.ask_download(self._model, library, self._models, lambda: self._models.get(self.name))

    def _ask_delete(self) -> None:
        yes = tr("Remove from the list") if self._model.local else tr("Delete for good")
        self._panel.ask(words.deleting(self._model), yes, lambda: self._models.remove(self.name), danger=True)

    def _file_name(self) -> str:
        training = self._model.training
        assert training is not None
        return f"{Path(self.name).name.removesuffix('.gguf')}-shoal-{training.rounds}"

    def _ask_back(self) -> None:
        training = self._model.training
        assert training is not None and training.best is not None
        back = tr(
            "Go back to round {n}, its best? What it learned in later rounds, up to {now}, is deleted "
            "for good.",
            n=number(training.best),
            now=number(training.rounds),
        )
        self._panel.ask(back, tr("Back to its best"), lambda: self._models.back(self.name), danger=True)

    def _ask_start_over(self) -> None:
        training = self._model.training
        assert training is not None
        over = tr(
            "Start over with round 1? What {title} learned up to round {n}, and its history, is deleted "
            "for good. The model itself and your other models stay.",
            title=self._model.title,
            n=number(training.rounds),
        )
        self._panel.ask(
            over, tr("Delete it, start over"), lambda: self._models.start_over(self.name), danger=True
        )

    def _ask_use(self) -> None:
        text = words.switching(self._model, self._running)
        self._panel.ask(text, tr("Learn with this"), lambda: self._learn_with(self.name))

    def _close(self) -> None:
        if self.focused():
            self.keep_focus()
        self._panel.hide()


class RowPanel(Card):
    """Asks for confirmation within the row: what will happen, yes, no, and an access token if needed."""

    def __init__(self, close: Callable[[], None]) -> None:
        super().__init__("quiet")
        self._text = Label("", wrap=True)
        self._token = field(tr("Access token, hf_…"), tr("Access token"), 260)
        self._token.setEchoMode(QLineEdit.EchoMode.Password)
        self._yes = button("", self._go, "primary")
        self._no = button(tr("Not now"), close, "flat")
        self._save = button(tr("Save the token"), self._keep)
        self._token_line = boxed(row(self._token, self._save, 1, gap=8))
        yes_or_no = row(self._yes, self._no, 1, gap=8)
        self.setLayout(column(self._text, self._token_line, yes_or_no, gap=12, margins=(16, 14, 16, 14)))
        self._act: Callable[[], None] = close
        self._keep_token: Callable[[str], None] | None = None
        self._close = close

    def ask(
        self,
        text: str,
        yes: str,
        act: Callable[[], None],
        token: Callable[[str], None] | None = None,
        danger: bool = False,
    ) -> None:
        self._act, self._keep_token = act, token
        self._text.say(text)
        self._yes.setText(yes)
        relook(self._yes, "danger" if danger else "primary")
        self._token.clear()
        self._token_line.setVisible(token is not None)
        self.show()
        (self._no if danger else self._yes).setFocus()
        QTimer.singleShot(0, self, lambda: bring_into_sight(self))

    def ask_download(
        self, model: ModelEntry, library: Library, ask: ModelControl, act: Callable[[], None]
    ) -> None:
        """Asks for consent to a download, and for the access token that a model with a licence needs."""
        begun = model.partial is not None and model.partial.have > 0
        text = words.consent(model, library, ask.host())
        self.ask(
            f"{tr(model.gated)}\n\n{text}" if model.gated else text,
            tr("Resume download") if begun else tr("Download"),
            act,
            token=ask.keep_token if model.gated else None,
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._close()
        else:
            super().keyPressEvent(event)

    def _keep(self) -> None:
        if self._keep_token is not None and self._token.text().strip():
            self._keep_token(self._token.text())
            self._token.clear()

    def _go(self) -> None:
        self._keep()
        self._close()
        self._act()


def can_download(model: ModelEntry) -> bool:
    """Whether a model can be downloaded: not if the disk has no room or the model cannot learn. One too large
    for the memory can: for another computer, or for later."""
    return not model.problem and (model.fit is None or model.fit.verdict is not FitVerdict.NO_DISK)
