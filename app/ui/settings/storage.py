"""The card about the data folder: its place, its size by kind, choosing another one, and removing all."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app.node.data import contents, removal
from app.node.data.home import FORMAT_FILE
from app.node.record.errors import NodeError
from app.ui.frame.frame import Actions
from app.ui.language.texts import mark, size, tr, translated
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Elided, Label, button, column, confirm, open_path, row, rule

_LABELS = {
    "learned": mark("What your model learned, and its history"),
    "models": mark("Downloaded models"),
    "cache": mark("Files Shoal can make again"),
    "swarm": mark("What the swarm needs"),
    "logs": mark("Logs"),
    "own": mark("Settings and this computer's name"),
}


class Storage(QWidget):
    """The card about the space that the data folder uses, measured in the background because a large one takes
    a moment."""

    _counted = Signal(object)

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        self._ask, self._home = actions, Path()
        self._where = Elided("", "soft")
        self._total = Label("", "strong")
        self._sizes = column(gap=6)
        self._lines: list[tuple[QWidget, Label, Label]] = []
        self._counted.connect(self._show)
        head = row(self._where, self._total, gap=16, fill=0)
        buttons = Bend(
            button(tr("Open folder"), lambda: open_path(self._home)),
            button(tr("Use another folder …"), self._use),
            1,
            button(tr("Delete everything …"), self._remove, "danger"),
            gap=8,
        )
        self.setLayout(column(head, self._sizes, rule(), buttons, gap=12))

    def show_home(self, home: Path) -> None:
        if home != self._home:
            self._home = home
            self._where.say(str(home))
            if self.isVisible():
                self._count()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._count()

    def _count(self) -> None:
        home = self._home

        def work() -> None:
            found = contents.sizes(home)
            with suppress(RuntimeError):  # the window is gone
                self._counted.emit(found)

        threading.Thread(target=work, daemon=True).start()

    def _show(self, sizes: Sequence[contents.DataSize]) -> None:
        self._total.say(size(sum(one.bytes for one in sizes)))
        while len(self._lines) < len(sizes):
            name, much, line = Label("", "soft"), Label("", "soft"), QWidget()
            line.setLayout(row(name, 1, much))
            self._sizes.addWidget(line)
            self._lines.append((line, name, much))
        for at, (line, name, much) in enumerate(self._lines):
            line.setVisible(at < len(sizes))
            if at < len(sizes):
                name.say(tr(_LABELS.get(sizes[at].kind, sizes[at].label)))
                much.say(size(sizes[at].bytes))

    def _use(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, tr("Use another data folder"), str(self._home.parent))
        if not chosen:
            return
        to = target(Path(chosen))
        what = tr(
            "Shoal reopens with that folder; nothing is copied or deleted. To take everything along, quit "
            "Shoal and copy {home} there first.",
            home=self._home,
        )
        if confirm(self, tr("Use {folder} from now on?", folder=to), what, tr("Use it")):
            try:
                self._ask.use_folder(to)
            except NodeError as error:
                QMessageBox.warning(self, tr("Use another data folder"), translated(str(error)))

    def _remove(self) -> None:
        plan = removal.plan(self._home)
        question = tr("Delete everything Shoal keeps, {size}?", size=size(plan.bytes))
        if confirm(self, question, removal_text(plan), tr("Delete everything"), danger=True):
            self._ask.remove_all()


def target(chosen: Path) -> Path:
    """Returns the data folder that is meant: the chosen folder if it is empty or one of Shoal's, else its
    subfolder Shoal."""
    with suppress(OSError):
        if not any(chosen.iterdir()) or (chosen / FORMAT_FILE).exists():
            return chosen
    return chosen / "Shoal"


def removal_text(plan: removal.RemovalPlan) -> str:
    """Returns sentences for the confirmation: what is removed and what stays."""
    goes = [plan.folder, *(f"    {tr(_LABELS[one.kind])}: {size(one.bytes)}" for one in plan.sizes)]
    if plan.key:
        goes.append(tr("the key of {name} in the keyring", name=plan.key))
    if plan.login:
        goes.append(tr("the entry that starts Shoal at login"))
    goes.append(tr("the access token for models in the keyring, if there is one"))
    if plan.engine:
        goes.append(tr("the engine in {folder}: {size}", folder=plan.engine, size=size(plan.engine_bytes)))
    if plan.unpacked:
        goes.append(
            tr(
                "what the single file unpacked in {folder}: {size}",
                folder=plan.unpacked,
                size=size(plan.unpacked_bytes),
            )
        )
    if plan.links:
        goes.append(tr("the entry that lets links and menus find Shoal"))
    stays = [tr("{name} (not created by Shoal; it stays)", name=name) for name in plan.stays]
    stays.append(_program(plan))
    stays.append(tr("models and exports in other folders"))
    deleted, stay = tr("This will be deleted for good:"), tr("This stays:")
    return "\n".join([deleted, *goes, "", stay, *stays, "", tr("Then Shoal quits.")])


def _program(plan: removal.RemovalPlan) -> str:
    """Returns a sentence that the program itself stays, and how to remove it."""
    match plan.form:
        case "deb":
            return tr("the program itself; the package manager removes it: {command}", command=plan.removal)
        case "nsis":
            return tr("the program itself; Windows removes it, under Settings, Apps, Shoal")
        case "dmg":
            return tr("the program itself; move it to the Trash: {path}", path=plan.program)
        case _:
            return tr("the program itself; delete it here: {path}", path=plan.program)
