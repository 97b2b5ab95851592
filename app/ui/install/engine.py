"""The panel that installs or repairs the engine of an installed app: cost, one button, progress, and a sentence
after a failure. The first run shows it as a step, the overview as a card."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QPushButton, QSizePolicy, QWidget

from app.install.packs.place import Offered
from app.ui.frame.frame import EngineActions
from app.ui.language.texts import number, tr
from app.ui.theme import Theme
from app.ui.view import engine_words as words
from app.ui.view.view import EnginePack, View
from app.ui.widgets.pieces import (
    Card,
    Label,
    boxed,
    button,
    card,
    clear_layout,
    column,
    progress_bar,
    row,
)
from app.ui.widgets.selecting import Option, OptionGroup


class EnginePanel(QWidget):
    """Shows one EnginePack and requests actions only through `ask`. The caller places its `buttons`, of which
    the applicable ones are visible."""

    def __init__(self, theme: Theme, ask: EngineActions, large: bool = False) -> None:
        super().__init__()
        self._theme, self._ask = theme, ask
        self._pack = EnginePack(there=False)
        self._names: list[str] = []
        self._room_column = column()
        self._room = boxed(self._room_column)
        self._options: OptionGroup | None = None
        self._cost, self._crowded = Label("", "soft", wrap=True), Label("", "warn", wrap=True)
        self._percent = Label("", "figure")
        self._bar = progress_bar(tr("Installation of the engine"), 100)
        self._far = Label("", "soft", wrap=True)
        self._note = Label("", "warn", wrap=True)
        kept = Label(tr("Cancel any time: it resumes where it stopped."), "faint", True)
        told = column(self._percent, self._bar, self._far, self._note, kept, gap=8)
        self._progress = card(told, "quiet", 20)
        self._failed = Label("", "bad", wrap=True)
        self._trouble = card(column(self._failed), "problem", 18)
        first, second = ("large", "second") if large else ("primary", "")
        self._go = button("", self._install, first)
        self._repair = button(tr("Repair"), ask.repair, first)
        self._retry = button(tr("Retry"), ask.retry, first)
        self._cancel = button(tr("Cancel"), ask.cancel, second, tr("Nothing is lost"))
        offline = tr("For computers without internet: the files of an offline pack")
        self._folder = button(tr("From a folder …"), lambda: install_from_folder(self, ask), hint=offline)
        self.buttons = [self._retry, self._repair, self._go, self._cancel]
        inside = column(self._trouble, self._room, self._cost, self._crowded, self._progress, gap=12)
        if large:  # beside buttons of that size there is no room for it
            inside.addLayout(row(self._folder, 1, gap=8))
        else:
            self.buttons.append(self._folder)
        self.setLayout(inside)
        for one in self.buttons:
            one.setParent(self)  # until it is placed: else it would be shown as a window of its own
        self.show_pack(self._pack)

    def show_pack(self, pack: EnginePack) -> None:
        self._pack = pack
        self._offer_names(pack)
        doing = pack.doing
        offer = self._offer()
        idle = doing is None
        self._room.setVisible(idle and len(self._names) > 1 and not pack.broken)
        free = pack.standing.free if pack.standing is not None else 0
        said = ""
        if pack.standing is None:
            said = tr("Looking for the right engine.")
        elif offer is None:
            said = pack.standing.problem or tr(
                "There's no engine for this computer to download. Pick a folder that has one."
            )
        elif not pack.broken:
            said = words.cost(offer, free)
        self._cost.tell(said if idle else "")
        crowded = (
            words.disk_space_problem(offer, free) if offer is not None and idle and not pack.broken else ""
        )
        self._crowded.tell(crowded)
        self._failed.say(pack.failed)
        self._trouble.setVisible(idle and bool(pack.failed))
        self._progress.setVisible(not idle)
        if doing is not None:
            self._percent.say(tr("{n} %", n=number(doing.percent)))
            self._bar.setValue(doing.percent)
            self._far.say(words.progress(doing))
            self._note.tell(doing.note)
            self._bar.setAccessibleDescription(self._far.text())
        again = bool(pack.failed) and not pack.failed_offline  # from a folder: another one, or the network
        self._retry.setVisible(idle and again)
        self._repair.setVisible(idle and bool(pack.broken) and not again)
        self._go.setVisible(idle and not pack.broken and not again and offer is not None)
        self._go.setText(words.install_label(pack, offer))
        self._cancel.setVisible(not idle and doing is not None and doing.verb in ("install", "repair"))
        self._folder.setVisible(idle)

    def focus(self) -> None:
        """Gives the keyboard focus to the button that continues."""
        for one in self.shown[:1]:
            one.setFocus()

    @property
    def shown(self) -> list[QPushButton]:
        return [one for one in self.buttons if not one.isHidden()]

    def _offer_names(self, pack: EnginePack) -> None:
        """Rebuilds the options if they have changed."""
        names = [offer.name for offer in pack.offers]
        if names == self._names:
            return
        self._names = names
        clear_layout(self._room_column)
        self._options = OptionGroup(tr("Engine"))
        for offer in pack.offers:
            self._options.add(offer.name, Option(self._theme, words.title(offer), words.about(offer)))
        self._options.chosen.connect(lambda _: self.show_pack(self._pack))
        self._room_column.addWidget(self._options)

    def _offer(self) -> Offered | None:
        chosen = self._options.value if self._options is not None else None
        return self._pack.offer(str(chosen)) if chosen is not None else None

    def _install(self) -> None:
        offer = self._offer()
        if offer is not None:
            self._ask.install(offer.name, offer.carried)


def install_from_folder(parent: QWidget, ask: EngineActions) -> None:
    """Asks for the folder of an offline pack, and installs the engine from it."""
    if chosen := QFileDialog.getExistingDirectory(parent, tr("The folder with the engine's files")):
        ask.install("", chosen)


class EngineCard(Card):
    """A card on the overview, in place of the card with the current activity."""

    def __init__(self, theme: Theme, ask: EngineActions) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._title, self._why = Label("", "heading"), Label("", "soft", wrap=True)
        self._panel = EnginePanel(theme, ask)
        buttons = row(*self._panel.buttons, 1, gap=10)
        self.setLayout(column(self._title, self._why, self._panel, buttons, gap=10, margins=(24, 20, 24, 20)))

    def show_view(self, view: View) -> None:
        """Shows the engine if this is an installed app."""
        assert view.pack is not None
        self._title.say(words.heading(view.pack))
        self._why.say(words.reason(view.pack))
        self._why.setVisible(view.pack.doing is None)
        self._panel.show_pack(view.pack)
        self.setAccessibleName(f"{self._title.text()}. {self._why.text()}")


class NewerEngine(Card):
    """A line on the overview that offers the engine of this version of Shoal."""

    def __init__(self, ask: EngineActions) -> None:
        super().__init__("news")
        self._ask, self._pack = ask, EnginePack(there=True)
        self._text = Label("", wrap=True)
        self._go = button(tr("Install it"), self._install, "primary")
        self._later = button(tr("Not now"), self._not_now, "flat")
        self._cancel = button(tr("Cancel"), ask.cancel)
        inside = row(self._text, self._later, self._cancel, self._go, gap=10, margins=(20, 12, 14, 12), fill=0)
        inside.setAlignment(self._text, Qt.AlignmentFlag.AlignVCenter)
        self.setLayout(inside)

    def show_pack(self, pack: EnginePack) -> None:
        self._pack = pack
        offer, doing = pack.newer, pack.doing
        if doing is not None:
            self._text.say(
                tr("{what}: {line}", what=words.heading(pack), line=doing.note or words.short(doing))
            )
        elif pack.failed:
            self._text.say(pack.failed)
        elif offer is not None:
            free = pack.standing.free if pack.standing is not None else 0
            said = tr("A newer engine is available: {version}.", version=offer.version)
            self._text.say(f"{said} {words.cost(offer, free)}")
        for one in (self._go, self._later):
            one.setVisible(doing is None)
        self._go.setText(tr("Retry") if pack.failed else tr("Install it"))
        self._cancel.setVisible(doing is not None)

    def _install(self) -> None:
        offer = self._pack.newer
        if self._pack.failed:
            self._ask.retry()
        elif offer is not None:
            self._ask.install(offer.name, offer.carried)

    def _not_now(self) -> None:
        offer = self._pack.newer
        if offer is not None:
            self._ask.not_now(offer.version)
