"""The page Models: installed and available models, whether they fit, their size, and which one learns."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QFileDialog, QFrame, QVBoxLayout

from app.node.data.library import Library, ModelEntry
from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import counted, size, tr
from app.ui.models.door import DoorCard
from app.ui.models.row import ModelRow
from app.ui.theme import Theme
from app.ui.view import model_words as words
from app.ui.view.view import Holdings, NodeStatus, View
from app.ui.view.words import contributes
from app.ui.widgets.bend import Stat, stats_row
from app.ui.widgets.pieces import CopyButton, IconButton, Label, boxed, card, column, row

RELEASED_MS = 60


class Models(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Models"))
        add = IconButton(theme, "folder", tr("Use a model folder of your own"), tr("Add a folder"))
        add.clicked.connect(self._add)
        drop = tr("Use a .gguf file, or drop it onto the window")
        open_ = IconButton(theme, "models", drop, tr("Open a file"))
        open_.clicked.connect(self._open)
        for one in (open_, add):
            self.header.addWidget(one)
        self._stats = [Stat() for _ in range(4)]
        self._stat_row = boxed(stats_row(*self._stats))
        self._problem = Label("", "bad", wrap=True)
        self._said = Label("", "good", wrap=True)
        self._copy = CopyButton(theme, tr("Copy the command"), self._command)
        self._copy.hide()
        self._reading = Label(tr("Looking at what you have."), "soft")
        self._here, self._there = ModelSection(tr("On this computer")), ModelSection(tr("Available"))
        self._others = ModelSection(tr("Downloaded by other apps"))
        for section in (self._here, self._others, self._there):
            section.hide()  # until it has rows; shown for a moment, it would push those below away
        self._rows: dict[str, ModelRow] = {}
        self._door = DoorCard(theme, actions)
        self._left = Label("", "soft", wrap=True)
        self._left_card = card(
            column(Label(tr("Training without its model"), "heading"), self._left, gap=6), padding=20
        )
        source = tr(
            "Shoal checks every download and only opens weights that can't run code: .safetensors and .gguf."
        )
        self._source = Label(source, "faint", wrap=True)
        for part in (
            self._stat_row,
            self._problem,
            boxed(row(self._said, self._copy, gap=12, fill=0)),
            self._reading,
            self._here,
            self._door,
            self._others,
            self._there,
            self._left_card,
            self._source,
        ):
            self.add(part)
        self.body.addStretch(1)
        self._view = View()
        self._released = QTimer(self, singleShot=True, interval=RELEASED_MS)
        self._released.timeout.connect(lambda: self.show_view(self._view))
        self._settled = QTimer(self, singleShot=True)
        self._settled.timeout.connect(self._draw_again)

    def _command(self) -> str:
        return self._view.models.command if self._view.models is not None else ""

    def enter(self) -> None:
        self.ask.models.refresh()

    def show_view(self, view: View) -> None:
        self._view = view
        if QApplication.mouseButtons() and self.underMouse():  # nothing moves away under a click
            self._released.start()
            return
        holdings = view.models
        library = holdings.library if holdings is not None else None
        for part in (self._stat_row, self._source, self._door):
            part.setVisible(library is not None)
        self._problem.tell(holdings.problem if holdings is not None else "")
        self._said.tell(holdings.said if holdings is not None else "")
        self._copy.setVisible(holdings is not None and bool(holdings.command))
        self._reading.setVisible(library is None and not self._problem.text())
        if holdings is None or library is None:
            self._left_card.hide()
            return
        self._door.show_holdings(holdings)
        self._say_stats(library)
        self._show_rows(holdings, library)
        self._left_card.setVisible(bool(library.orphans))
        left = counted(
            "What {n} model learned is still here ({size}). Download the model again to continue.",
            "What {n} models learned is still here ({size}). Download a model again to continue with it.",
            len(library.orphans),
            size=size(sum(training.bytes for training in library.orphans)),
        )
        self._left.say(left)

    def _say_stats(self, library: Library) -> None:
        models, training, disk, memory = self._stats
        fetched = sum(model.installed and not model.local for model in library.models)
        models.say(
            tr("Models"),
            size(library.hub_bytes + sum(model.bytes for model in library.models if words.is_starter(model))),
            counted("{n} on this computer", "{n} on this computer", fetched),
        )
        training.say(tr("Learned"), size(library.training_bytes), tr("with each model's history"))
        disk.say(tr("Free on disk"), size(library.disk_free), tr("where your data is"))
        most = tr("free now, of {most}", most=size(library.memory.most))
        memory.say(tr("Memory for a model"), size(library.memory.free), most)

    def _show_rows(self, holdings: Holdings, library: Library) -> None:
        running, learning = contributes(self._view), self._view.state is NodeStatus.LEARNING
        names = {model.name for model in library.models}
        for name in [name for name in self._rows if name not in names]:
            self._rows.pop(name).deleteLater()
        if not names <= self._rows.keys():
            self.setUpdatesEnabled(False)
            self._settled.start()
        focused = next((row for row in self._rows.values() if row.focused()), None)
        here = [model for model in library.models if model.installed]
        here.sort(key=lambda model: model.name != holdings.chosen)
        for group, models in (
            (self._here, here),
            (self._others, [m for m in library.models if not m.installed and m.program]),
            (self._there, [m for m in library.models if not m.installed and not m.program]),
        ):
            group.place([self._row(model) for model in models])
            group.setVisible(bool(models))
            for model in models:
                self._rows[model.name].show_model(model, holdings, running, learning)
        if focused is not None and not focused.focused():
            focused.show()  # in another section it would be shown a moment later, and have no focus yet
            focused.keep_focus()

    def _draw_again(self) -> None:
        """Draws new rows once they have their heights: layouts follow one another over several turns of the
        event loop, and until then rows are squeezed into the old height."""
        rows = [row for row in self._rows.values() if row.isVisible()]
        if all(row.height() >= row.heightForWidth(row.width()) for row in rows):
            self.setUpdatesEnabled(True)
        else:
            self._settled.start()

    def _row(self, model: ModelEntry) -> ModelRow:
        if model.name not in self._rows:
            self._rows[model.name] = ModelRow(self.theme, self.ask, model.name)
        return self._rows[model.name]

    def _add(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("A folder with config.json"), str(Path.home()))
        if folder:
            self.ask.models.add_folder(folder)

    def _open(self) -> None:
        kind = tr("Models ({pattern})", pattern="*.gguf")
        file, _ = QFileDialog.getOpenFileName(self, tr("A GGUF file"), str(Path.home()), kind)
        if file:
            self.ask.models.get(file)


class ModelSection(QFrame):
    """A heading with rows under it."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._list: QVBoxLayout = column(gap=10)
        self.setLayout(column(Label(title, "heading"), self._list, gap=10))

    def place(self, rows: list[ModelRow]) -> None:
        """Shows these rows in this order; rows that keep their place are not touched."""
        places = [self._list.itemAt(at) for at in range(self._list.count())]
        there = [place.widget() for place in places if place is not None]
        if there != rows:
            for at, one in enumerate(rows):
                self._list.insertWidget(at, one)
