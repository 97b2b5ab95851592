"""A new version of Shoal: that it exists, what is new, the progress of its download, and what can be done."""

from __future__ import annotations

import re
import time

from PySide6.QtCore import QLocale, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFrame, QWidget

from app.install.updates.asking import UpdateOffer, notes_in
from app.ui.frame.actions import UpdateActions
from app.ui.language.spoken import spoken
from app.ui.language.texts import ago, size, tr
from app.ui.view.model_words import progress
from app.ui.view.parts import Fetch, UpdateStage, UpdateView
from app.ui.widgets.pieces import Label, boxed, button, column, progress_bar, row, rule

_STEPS = 1000


class UpdateCard(QWidget):
    """Under Settings, below the switch."""

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
        self._copy = button(tr("Copy the command"), self._take)
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
        self._title.say(title(now))
        for label, text in (
            (self._about, about(now)),
            (self._news, news(offer)),
            (self._said, now.said),
            (self._command, now.command),
            (self._failed, breakable(spoken(now.sentence or (offer.obstacle if offer else "")))),
        ):
            label.tell(text)
        self._progress.setVisible(stage in (UpdateStage.FETCHING, UpdateStage.INSTALLING))
        self._far.say(far(now))
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

    def _take(self) -> None:
        QGuiApplication.clipboard().setText(self._update_view.command)

    def _open(self) -> None:
        offer = self._update_view.offer
        if offer is not None and offer.page.startswith(("https://", "http://")):
            QDesktopServices.openUrl(QUrl(offer.page))


class UpdateLine(QFrame):
    """On the overview: one quiet line, either that a new version is there, or, once, whether to look for
    them."""

    def __init__(self, ask: UpdateActions, look: object) -> None:
        super().__init__()
        self.setProperty("look", "news")
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
        """`question`: whether this is a good moment to ask something."""
        self._update_view = now
        there = now.offer is not None and now.offer.version != now.hidden
        asks = question and now.undecided and now.stage is not UpdateStage.CHECKOUT and not there
        for part in (self._see, self._hide):
            part.setVisible(there)
        for part in (self._yes, self._no):
            part.setVisible(asks)
        if there:
            self._title.say(title(now))
            self._text.say(tr("It installs when you say so. What your model learned stays."))
        elif asks:
            self._title.say(tr("Check for updates once a day?"))
            self._text.say(
                tr(
                    "Shoal asks {host} while this window is open. The request says nothing about you or this "
                    "computer. Change it any time in Settings.",
                    host=now.host,
                )
            )
        self.setVisible(there or asks)

    def _no_more(self) -> None:
        if self._update_view.offer is not None:
            self._ask.hide(self._update_view.offer.version)


def title(now: UpdateView) -> str:
    if now.stage is UpdateStage.ASKING:
        return tr("Checking for updates …")
    if now.offer is not None:
        return tr("Version {version} is available", version=now.offer.version)
    return tr("This is version {version}", version=now.version or "–")


def about(now: UpdateView) -> str:
    """Details that the title leaves out."""
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


def news(offer: UpdateOffer | None) -> str:
    """The release notes, in the person's language."""
    if offer is None:
        return ""
    lines = notes_in(offer.notes, [QLocale().name().split("_")[0]])
    return "\n".join(f"•  {breakable(line)}" for line in lines)


def breakable(text: str) -> str:
    """Makes long words breakable, because a word longer than a line would make the page as wide as itself."""
    return re.sub(r"(\S{60})(?=\S)", "\\1\u200b", text)


def far(now: UpdateView) -> str:
    """The progress of the download, or what the installer does."""
    if now.note or now.offer is None:
        return now.note
    if now.stage is UpdateStage.INSTALLING:
        return tr("The system is installing it …")
    left = now.offer.size - now.have
    return progress(
        Fetch(
            name="",
            have=now.have,
            total=now.offer.size,
            per_second=now.per_second,
            left_s=left / now.per_second if now.per_second else None,
        )
    )
