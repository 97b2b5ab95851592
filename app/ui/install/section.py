"""The section "Engine and updates" of the settings: the installed engine and the actions on it; a new version
of Shoal, its release notes and download. The overview shows one line of it."""

from __future__ import annotations

import time

from PySide6.QtCore import QLocale, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

from app.install.packs.place import Offered, Pack
from app.install.updates.asking import UpdateOffer, notes_in
from app.ui.frame.frame import EngineActions, UpdateActions
from app.ui.install.engine import install_from_folder
from app.ui.language.texts import ago, number, size, tr, translated
from app.ui.view import engine_words as words
from app.ui.view.model_words import progress
from app.ui.view.view import EnginePack, Fetch, UpdateStage, UpdateView
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
        self._folder = button(tr("From a folder …"), lambda: install_from_folder(self, ask))
        self._remove = button(tr("Remove …"), self._ask_removal, "danger")
        self._others = column(gap=8)
        self._rows: list[QWidget] = []
        self._shown: list[tuple[Offered, int]] = []
        doing = Bend(self._retry, self._cancel, self._repair, self._back, self._folder, 1, self._remove, gap=8)
        said = column(self._title, self._facts, self._before, gap=3)
        parts = (rule(), said, self._trouble, self._progress, self._others, rule(), doing)
        self.setLayout(column(*parts, gap=12))

    def show_pack(self, pack: EnginePack) -> None:
        self._pack = pack
        current, previous, doing = pack.current, pack.previous, pack.doing
        used = current if pack.there else None
        self._title.say(used.title if used else tr("No engine is installed. Learning needs one."))
        self._facts.tell(words.installed(used) if used is not None else "")
        before = f"{previous.title}, {words.installed(previous)}" if previous is not None else ""
        self._before.tell(tr("Previous engine, kept: {title}", title=before) if before else "")
        self._trouble.tell("" if doing is not None else pack.failed or pack.broken)
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


def _in_use(offer: Offered, current: Pack | None) -> bool:
    return current is not None and current.name == offer.name and offer.version in ("", current.version)


_STEPS = 1000


class UpdateCard(QWidget):
    """The card about new versions in the settings, below the switch for checking."""

    def __init__(self, ask: UpdateActions) -> None:
        super().__init__()
        self._ask, self._update_view = ask, UpdateView()
        self._title, self._about = Label("", "strong", wrap=True), Label("", "soft", wrap=True)
        self._news = Label("", wrap=True)
        self._bar = progress_bar(tr("Progress of the download"), _STEPS)
        self._far = Label("", "soft", wrap=True)
        self._said = Label("", wrap=True)
        self._command = Label("", "strong", wrap=True)
        self._command.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._failed = Label("", "bad", wrap=True)
        self._check = button(tr("Check now"), ask.check)
        self._fetch = button("", ask.fetch, "primary")
        self._install = button("", ask.install, "primary")
        self._cancel = button(tr("Cancel"), ask.cancel)
        self._copy = button(
            tr("Copy the command"), lambda: QGuiApplication.clipboard().setText(self._update_view.command)
        )
        self._show = button(tr("Show the file"), ask.show)
        self._page = button(tr("Open its page"), self._open)
        buttons = row(
            self._install, self._fetch, self._page, self._copy, self._show, self._cancel, self._check, 1, gap=8
        )
        said = column(self._title, self._about, self._news, gap=5)
        self._progress = boxed(column(self._bar, self._far, gap=6))
        rest = (self._progress, self._said, self._command, self._failed)
        self.setLayout(column(rule(), said, *rest, buttons, gap=12))
        self.show_update(UpdateView())

    def show_update(self, now: UpdateView) -> None:
        self._update_view = now
        offer, stage = now.offer, now.stage
        idle = stage is UpdateStage.IDLE
        self._title.say(update_title(now))
        for label, text in (
            (self._about, update_about(now)),
            (self._news, update_news(offer)),
            (self._said, now.said),
            (self._command, now.command),
            (self._failed, breakable(translated(now.sentence or (offer.obstacle if offer else "")))),
        ):
            label.tell(text)
        self._progress.setVisible(stage in (UpdateStage.FETCHING, UpdateStage.INSTALLING))
        self._far.say(update_progress(now))
        fetching = stage is UpdateStage.FETCHING and offer is not None and offer.size > 0
        self._bar.setRange(0, _STEPS if fetching else 0)
        if fetching and offer is not None:
            self._bar.setValue(int(_STEPS * now.have / offer.size))
        can = idle and offer is not None and not offer.obstacle
        self._fetch.setVisible(can and not now.fetched)
        self._fetch.setText(tr("Download") if not now.sentence else tr("Try again"))
        self._install.setVisible(can and now.fetched and not now.command)
        self._install.setText(tr("Install") if now.form in ("nsis", "dmg") else tr("Install and restart"))
        self._cancel.setVisible(stage in (UpdateStage.ASKING, UpdateStage.FETCHING))
        self._check.setVisible(idle)
        self._check.setToolTip(tr("Asks {host} once.", host=now.host))
        self._copy.setVisible(bool(now.command))
        self._show.setVisible(idle and bool(now.command))
        self._page.setVisible(idle and offer is not None and bool(offer.obstacle) and bool(offer.page))

    def _open(self) -> None:
        offer = self._update_view.offer
        if offer is not None and offer.page.startswith(("https://", "http://")):
            QDesktopServices.openUrl(QUrl(offer.page))


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
            self._text.say(tr("It installs when you say so. What your model learned stays."))
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
    if now.fetched and now.stage is UpdateStage.IDLE and not now.command:
        return {
            "deb": tr(
                "Downloaded and checked. Learning stops, the system asks for your password and installs "
                "it, and Shoal reopens."
            ),
            "nsis": tr("Downloaded and checked. Its installer opens, and Shoal quits."),
            "dmg": tr("Downloaded and checked. It opens and Shoal quits: drag it into Applications."),
        }.get(
            now.form,
            tr("Downloaded and checked. It replaces this version, which is kept beside it, and Shoal reopens."),
        )
    facts = [tr("of {day}", day=now.offer.date)] if now.offer.date else []
    facts += [size(now.offer.size)] if now.offer.size else []
    facts.append(tr("you have {version}", version=now.version))
    return ", ".join(facts)


def update_news(offer: UpdateOffer | None) -> str:
    """Returns the release notes in the person's language."""
    if offer is None:
        return ""
    lines = notes_in(offer.notes, [QLocale().name().split("_")[0]])
    return "\n".join(f"•  {breakable(line)}" for line in lines)


def update_progress(now: UpdateView) -> str:
    """Returns the progress of the download, or what the installer does."""
    if now.note or now.offer is None:
        return now.note
    if now.stage is UpdateStage.INSTALLING:
        return tr("The system is installing it …")
    total, rate = now.offer.size, now.per_second
    left_s = (total - now.have) / rate if rate else None
    return progress(Fetch(name="", have=now.have, total=total, per_second=rate, left_s=left_s))
