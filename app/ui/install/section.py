"""The section "Engine and updates" of the settings: the installed engine and the actions on it; a new version
of Shoal, its release notes and the way to its page. The overview shows one line of it."""

from __future__ import annotations

import time

from PySide6.QtCore import QLocale, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox, QWidget

from app.install.packs.place import Offered, Pack
from app.install.signed import is_address
from app.install.updates.asking import UpdateOffer, notes_in
from app.ui.frame.frame import EngineActions, UpdateActions
from app.ui.install.engine import install_from_folder
from app.ui.language.texts import ago, number, size, tr, translated
from app.ui.view import engine_words as words
from app.ui.view.view import EnginePack, UpdateStage, UpdateView
from app.ui.widgets.bend import Bend
from app.ui.widgets.exchange import breakable
from app.ui.widgets.pieces import Card, Label, boxed, button, column, progress_bar, row, rule


class EngineSection(QWidget):
    """Shows one EnginePack; asks before anything is downloaded or removed."""

    def __init__(self, ask: EngineActions) -> None:
        super().__init__()
        self._ask = ask
        self._pack = EnginePack(there=False)
        self._title, self._facts = Label("", "strong"), Label("", "soft", wrap=True)
        self._trouble = Label("", "bad", wrap=True)
        self._bar, self._far = progress_bar(tr("Work on the engine"), 100), Label("", "soft", wrap=True)
        self._progress = boxed(column(self._bar, self._far, gap=6))
        self._repair = button(
            tr("Repair"), ask.repair, hint=tr("Downloads the engine again and sets it up from the start")
        )
        self._retry = button(tr("Retry"), ask.retry, "primary")
        self._cancel = button(tr("Cancel"), ask.cancel)
        self._folder = button(tr("From a folder …"), lambda: install_from_folder(self, ask))
        self._remove = button(tr("Remove …"), self._ask_removal, "danger")
        self._others = column(gap=8)
        self._rows: list[QWidget] = []
        self._shown: list[tuple[Offered, int]] = []
        doing = Bend(self._retry, self._cancel, self._repair, self._folder, 1, self._remove, gap=8)
        said = column(self._title, self._facts, gap=3)
        parts = (rule(), said, self._trouble, self._progress, self._others, rule(), doing)
        self.setLayout(column(*parts, gap=12))

    def show_pack(self, pack: EnginePack) -> None:
        self._pack = pack
        doing = pack.doing
        used = pack.current if pack.there else None
        self._title.say(used.title if used else tr("No engine is installed. Learning needs one."))
        self._facts.tell(words.installed(used) if used is not None else "")
        self._trouble.tell("" if doing is not None else pack.failed or pack.broken)
        self._progress.setVisible(doing is not None)
        if doing is not None:
            self._bar.setValue(doing.percent)
            line = doing.note or words.progress(doing)
            self._far.say(tr("{n} %  ·  {line}", n=number(doing.percent), line=line))
        idle = doing is None
        self._retry.setVisible(idle and bool(pack.failed))
        self._repair.setVisible(used is not None)
        self._remove.setVisible(pack.current is not None)
        self._cancel.setVisible(doing is not None and doing.verb in ("install", "repair"))
        for one in (self._repair, self._folder, self._remove):
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

    def _ask_removal(self) -> None:
        used = self._pack.current
        box = QMessageBox(self)
        box.setWindowTitle("Shoal")
        box.setText(tr("Remove the engine? That frees {size}.", size=size(used.bytes if used else 0)))
        box.setInformativeText(
            tr("Learning stops until you download an engine again. What your model learned stays.")
        )
        really = box.addButton(tr("Remove the engine"), QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole))
        box.exec()
        if box.clickedButton() is really:
            self._ask.remove()


def _in_use(offer: Offered, current: Pack | None) -> bool:
    return current is not None and current.name == offer.name and offer.version in ("", current.version)


class UpdateCard(QWidget):
    """The card about new versions in the settings, below the switch for checking."""

    def __init__(self, ask: UpdateActions) -> None:
        super().__init__()
        self._title, self._about = Label("", "strong", wrap=True), Label("", "soft", wrap=True)
        self._news, self._failed = Label("", wrap=True), Label("", "bad", wrap=True)
        self._check, self._cancel = button(tr("Check now"), ask.check), button(tr("Cancel"), ask.cancel)
        self._offer: UpdateOffer | None = None
        self._page = button(tr("Open its page"), self._open, "primary")
        buttons = row(self._page, self._cancel, self._check, 1, gap=8)
        said = column(self._title, self._about, self._news, gap=5)
        self.setLayout(column(rule(), said, self._failed, buttons, gap=12))
        self.show_update(UpdateView())

    def show_update(self, now: UpdateView) -> None:
        self._title.say(update_title(now))
        self._about.tell(update_about(now))
        self._news.tell(update_news(now.offer))
        self._failed.tell(breakable(translated(now.sentence)))
        self._cancel.setVisible(now.stage is UpdateStage.ASKING)
        self._check.setVisible(now.stage is UpdateStage.IDLE)
        self._check.setToolTip(tr("Asks {host} once.", host=now.host))
        self._offer = now.offer
        self._page.setVisible(now.offer is not None and is_address(now.offer.page))

    def _open(self) -> None:
        if self._offer is not None:
            QDesktopServices.openUrl(QUrl(self._offer.page))


class UpdateLine(Card):
    """A line on the overview: that a new version exists or, once, the question whether to check for any."""

    def __init__(self, ask: UpdateActions, look: object) -> None:
        super().__init__("news")
        self._ask, self._update_view = ask, UpdateView()
        self._title, self._text = Label("", "strong", wrap=True), Label("", "soft", wrap=True)
        self._see = button(tr("See what is new"), look)  # type: ignore[arg-type]
        self._hide = button(tr("Skip this one"), self._no_more, "flat")
        self._yes = button(tr("Yes, once a day"), lambda: ask.decide(True))
        self._no = button(tr("No"), lambda: ask.decide(False))
        inside = row(column(self._title, self._text, gap=3), gap=20, margins=(20, 14, 18, 14), fill=0)
        inside.addLayout(row(self._hide, self._see, self._no, self._yes, gap=8))
        self.setLayout(inside)
        self.hide()

    def show_update(self, now: UpdateView, question: bool) -> None:
        """Shows the state of updates. `question`: whether this is a good moment to ask something."""
        self._update_view = now
        there = now.offer is not None and now.offer.version != now.hidden
        asks = question and now.undecided and now.stage is not UpdateStage.CHECKOUT and not there
        for part in (self._see, self._hide, self._yes, self._no):
            part.setVisible(there if part in (self._see, self._hide) else asks)
        if there:
            self._title.say(update_title(now))
            self._text.say(tr("Download it from its page. What your model learned stays."))
        elif asks:
            self._title.say(tr("Check for updates once a day?"))
            about = tr(
                "Shoal asks {host} while this window is open. The request says nothing about you or this "
                "computer. Change it any time in Settings.",
                host=now.host,
            )
            self._text.say(about)
        self.setVisible(there or asks)

    def _no_more(self) -> None:
        if self._update_view.offer is not None:
            self._ask.hide(self._update_view.offer.version)


def update_title(now: UpdateView) -> str:
    if now.stage is UpdateStage.ASKING:
        return tr("Checking for updates …")
    if now.offer is not None:
        return tr("Version {version} is available", version=now.offer.version)
    return tr("This is version {version}", version=now.version or "–")


def update_about(now: UpdateView) -> str:
    """Returns the details below the title, or what happens next."""
    if now.stage is UpdateStage.CHECKOUT:
        return tr("Developer copy: updates come with git pull.")
    if now.stage is UpdateStage.ASKING:
        return tr("Asking {host}. The request says nothing about you or this computer.", host=now.host)
    if now.offer is None:
        if not now.answered:
            return tr("Shoal hasn't checked for updates yet.")
        return tr("You're up to date. Checked {ago}.", ago=ago(now.answered, time.time()))
    facts = [tr("of {day}", day=now.offer.date)] if now.offer.date else []
    facts.append(tr("you have {version}", version=now.version))
    return ", ".join(facts)


def update_news(offer: UpdateOffer | None) -> str:
    """Returns the release notes in the person's language."""
    if offer is None:
        return ""
    lines = notes_in(offer.notes, [QLocale().name().split("_")[0]])
    return "\n".join(f"•  {breakable(line)}" for line in lines)
