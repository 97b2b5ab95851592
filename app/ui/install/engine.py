"""The panel that installs, repairs and removes the engine of an installed app: what is in use, the cost of
another one, progress, and a sentence after a failure. The overview shows it as a card while an engine is
missing or a newer one is there, the settings always."""

from __future__ import annotations

from contextlib import suppress

from PySide6.QtWidgets import QFileDialog, QSizePolicy, QWidget

from app.install.packs.place import Offered
from app.ui.frame.frame import Actions
from app.ui.language.texts import number, size, tr
from app.ui.process.engine import EngineControl
from app.ui.theme import Theme
from app.ui.view import engine_words as words
from app.ui.view.view import EnginePack
from app.ui.widgets.pieces import (
    Card,
    Label,
    boxed,
    button,
    card,
    clear_layout,
    column,
    confirm,
    progress_bar,
    row,
)
from app.ui.widgets.selecting import Option, OptionGroup


class EnginePanel(QWidget):
    """Shows one EnginePack and requests actions only through `ask`. The caller places its `buttons`, of which
    the applicable ones are visible. `manage`: also shows an engine that works, and removes it."""

    def __init__(self, theme: Theme, ask: EngineControl, manage: bool = False) -> None:
        super().__init__()
        self._theme, self._ask, self._manage = theme, ask, manage
        self._pack = EnginePack(there=False)
        self._shown_offers: list[Offered] = []
        self._title, self._facts = Label("", "strong"), Label("", "soft", wrap=True)
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
        self._go = button("", self._install, "primary")
        hint = tr("Downloads the engine again and replaces it")
        self._repair = button(tr("Repair"), ask.repair, "" if manage else "primary", hint)
        self._retry = button(tr("Retry"), ask.retry, "primary")
        self._cancel = button(tr("Cancel"), ask.cancel, "", tr("Nothing is lost"))
        offline = tr("For computers without internet: the files of an offline pack")
        self._folder = button(tr("From a folder …"), self._install_from_folder, hint=offline)
        self._remove = button(tr("Remove …"), self._ask_removal, "danger")
        self.buttons = [self._retry, self._go, self._repair, self._cancel, self._folder, self._remove]
        inside = column(
            column(self._title, self._facts, gap=3),
            self._trouble,
            self._room,
            self._cost,
            self._crowded,
            gap=12,
        )
        inside.addWidget(self._progress)
        self.setLayout(inside)
        for one in self.buttons:
            one.setParent(self)  # until it is placed: else it would be shown as a window of its own
        self.show_pack(self._pack)

    def show_pack(self, pack: EnginePack) -> None:
        self._pack = pack
        doing, used = pack.doing, pack.current if pack.there else None
        idle = doing is None
        self._show_offers(words.offers(pack, self._manage))
        offer = self._offer()
        missing = tr("No engine is installed. Learning needs one.")
        self._title.tell((used.title if used else missing) if self._manage else "")
        self._facts.tell(words.installed(used) if self._manage and used else "")
        choosing = idle and not pack.broken
        self._room.setVisible(choosing and len(self._shown_offers) > 1)
        self._cost.tell(words.cost_of(pack, offer) if choosing and (offer or not pack.usable) else "")
        free = pack.standing.free if pack.standing is not None else 0
        self._crowded.tell(words.disk_space_problem(offer, free) if choosing and offer else "")
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
        self._repair.setVisible(idle and bool(pack.broken or (self._manage and used)) and not again)
        self._go.setVisible(choosing and not again and offer is not None)
        self._go.setText(words.install_label(pack, offer))
        self._cancel.setVisible(not idle and doing is not None and doing.verb in ("install", "repair"))
        self._folder.setVisible(idle)
        self._remove.setVisible(idle and self._manage and pack.current is not None)

    def _show_offers(self, offers: list[Offered]) -> None:
        """Rebuilds the options if they have changed."""
        if [one.name for one in offers] != [one.name for one in self._shown_offers]:
            clear_layout(self._room_column)
            self._options = OptionGroup(tr("Engine"))
            for offer in offers:
                self._options.add(offer.name, Option(self._theme, words.title(offer), words.about(offer)))
            self._options.chosen.connect(lambda _: self.show_pack(self._pack))
            self._room_column.addWidget(self._options)
        self._shown_offers = offers

    def _offer(self) -> Offered | None:
        chosen = self._options.value if self._options is not None else None
        return next((one for one in self._shown_offers if one.name == chosen), None)

    def _install(self) -> None:
        offer = self._offer()
        if offer is not None:
            self._ask.install(offer.name, offer.carried)

    def _install_from_folder(self) -> None:
        if chosen := QFileDialog.getExistingDirectory(self, tr("The folder with the engine's files")):
            self._ask.install("", chosen)

    def _ask_removal(self) -> None:
        used = self._pack.current
        question = tr("Remove the engine? That frees {size}.", size=size(used.bytes if used else 0))
        stays = tr("Learning stops until you download an engine again. What your model learned stays.")
        if confirm(self, question, stays, tr("Remove the engine"), danger=True):
            self._ask.remove()


class EngineCard(Card):
    """A card on the overview: in place of the one with the current activity while there is no engine, and above
    it when this version of Shoal has a newer one."""

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._choices = actions.choices
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._title, self._why = Label("", "heading"), Label("", "soft", wrap=True)
        self._panel = EnginePanel(theme, actions.engine)
        self._newer = ""
        self._later = button(tr("Not now"), self._not_now, "flat")
        buttons = row(*self._panel.buttons, self._later, 1, gap=10)
        self.setLayout(column(self._title, self._why, self._panel, buttons, gap=10, margins=(24, 20, 24, 20)))

    def show_pack(self, pack: EnginePack) -> None:
        self._title.say(words.heading(pack))
        self._why.tell("" if pack.doing is not None or pack.usable else words.reason(pack))
        self._panel.show_pack(pack)
        self._newer = pack.newer.version if pack.usable and pack.newer is not None else ""
        self._later.setVisible(bool(self._newer) and pack.doing is None)
        self.setAccessibleName(f"{self._title.text()}. {self._why.text()}")

    def _not_now(self) -> None:
        """Stops offering this version unasked."""
        self.hide()
        with suppress(OSError):  # it is offered again then
            self._choices.remember_window(engine_not_now=self._newer)
