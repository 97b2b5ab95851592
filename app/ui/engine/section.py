"""The engines of an installed app in the settings: what is installed, and what can be done with it."""

from __future__ import annotations

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app.install.packs.events import Offered, Pack
from app.ui.frame.actions import EngineActions
from app.ui.language.texts import number, size, tr
from app.ui.view import engine_words as words
from app.ui.view.parts import EnginePack
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Label, boxed, button, column, progress_bar, row, rule


class EngineSection(QWidget):
    """Shows one EnginePack; asks before anything is downloaded or removed."""

    def __init__(self, ask: EngineActions) -> None:
        super().__init__()
        self._ask = ask
        self._pack = EnginePack(there=False)
        self._title, self._facts = Label("", "strong"), Label("", "soft", wrap=True)
        self._before = Label("", "soft", wrap=True)
        self._trouble = Label("", "bad", wrap=True)
        self._bar, self._far = progress_bar(tr("Work on the engine"), 100), Label("", "soft", wrap=True)
        self._progress = boxed(column(self._bar, self._far, gap=6))
        self._repair = button(
            tr("Repair"), ask.repair, hint=tr("Checks every file and sets the engine up again")
        )
        self._back = button(tr("Go back to the previous one"), ask.rollback)
        self._retry = button(tr("Retry"), ask.retry, "primary")
        self._cancel = button(tr("Cancel"), ask.cancel)
        self._folder = button(tr("From a folder …"), self._choose_folder)
        self._remove = button(tr("Remove …"), self._ask_removal, "danger")
        self._others = column(gap=8)
        self._rows: list[QWidget] = []
        self._shown: list[tuple[Offered, int]] = []
        doing = Bend(self._retry, self._cancel, self._repair, self._back, self._folder, 1, self._remove, gap=8)
        self.setLayout(
            column(
                Label(tr("Engine"), "heading"),
                column(self._title, self._facts, self._before, gap=3),
                self._trouble,
                self._progress,
                self._others,
                rule(),
                doing,
                gap=12,
            )
        )

    def show_pack(self, pack: EnginePack) -> None:
        self._pack = pack
        current, previous, doing = pack.current, pack.previous, pack.doing
        self._title.say(_title(pack, current))
        used = current if pack.there else None
        self._facts.say(words.installed(used) if used is not None else "")
        self._facts.setVisible(used is not None)
        self._before.say(
            tr("Previous engine, kept: {title}", title=f"{previous.title}, {words.installed(previous)}")
            if previous is not None
            else ""
        )
        self._before.setVisible(previous is not None)
        self._trouble.say(pack.failed or pack.broken)
        self._trouble.setVisible(bool(pack.failed or pack.broken) and doing is None)
        self._progress.setVisible(doing is not None)
        if doing is not None:
            self._bar.setValue(doing.percent)
            line = doing.note or words.progress(doing)
            self._far.say(tr("{n} %  ·  {line}", n=number(doing.percent), line=line))
        idle = doing is None
        self._retry.setVisible(idle and bool(pack.failed))
        self._repair.setVisible(used is not None)
        self._back.setVisible(previous is not None)
        self._remove.setVisible(bool(pack.packs))
        self._cancel.setVisible(doing is not None and doing.verb in ("install", "repair"))
        for one in (self._repair, self._back, self._folder, self._remove):
            one.setEnabled(idle)
        self._show_offers(pack)

    def _show_offers(self, pack: EnginePack) -> None:
        """The engines other than the one in use, each with its cost."""
        free = pack.standing.free // 10**8 if pack.standing is not None else 0
        wanted = [(offer, free) for offer in pack.offers if not _in_use(offer, pack.current) or not pack.there]
        if wanted != self._shown:
            self._shown = wanted
            for old in self._rows:
                old.hide()
                old.deleteLater()
            self._rows = [self._row(offer, free * 10**8) for offer, free in wanted]
            for one in self._rows:
                self._others.addWidget(one)
        for one in self._rows:
            one.setEnabled(pack.doing is None)

    def _row(self, offer: Offered, free: int) -> QWidget:
        title = f"{words.title(offer)} {offer.version}".strip()
        go = button(tr("Install"), lambda: self._ask.install(offer.name, offer.carried))
        go.setAccessibleName(tr("Install: {title}", title=title))
        said = column(Label(title, "strong"), Label(words.cost(offer, free), "soft", wrap=True), gap=3)
        inside = row(said, go, gap=24, fill=0)
        return boxed(column(rule(), inside, gap=10))

    def _choose_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, tr("The folder with the engine's files"))
        if chosen:
            self._ask.install("", chosen)

    def _ask_removal(self) -> None:
        packs = self._pack.packs
        box = QMessageBox(self)
        box.setWindowTitle("Shoal")
        box.setText(tr("Remove the engine? That frees {size}.", size=size(sum(one.bytes for one in packs))))
        box.setInformativeText(
            tr("Learning stops until you download an engine again. What your model learned stays.")
        )
        previous = self._pack.previous
        one = tr("Only the one before") if previous is not None and len(packs) > 1 else ""
        only = box.addButton(one, QMessageBox.ButtonRole.ActionRole) if one else None
        really = box.addButton(tr("Remove the engine"), QMessageBox.ButtonRole.DestructiveRole)
        cancel = box.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(cancel)
        box.exec()
        if box.clickedButton() is really:
            self._ask.remove("")
        elif only is not None and previous is not None and box.clickedButton() is only:
            self._ask.remove(previous.pack)


def _title(pack: EnginePack, current: Pack | None) -> str:
    if current is None or not pack.there:
        return tr("No engine is installed. Learning needs one.")
    return current.title


def _in_use(offer: Offered, current: Pack | None) -> bool:
    return current is not None and current.name == offer.name and offer.version in ("", current.version)
