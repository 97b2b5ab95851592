"""A new version of Shoal, its release notes and the way to its page: a card of the settings, and one line on
the overview."""

from __future__ import annotations

import time

from PySide6.QtCore import QLocale, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.install.signed import is_address
from app.install.updates.asking import UpdateOffer, notes_in
from app.ui.language.texts import ago, tr, translated
from app.ui.process.updates import UpdateControl
from app.ui.view.view import UpdateStage, UpdateView
from app.ui.widgets.exchange import breakable
from app.ui.widgets.pieces import Card, Label, button, column, row, rule


class UpdateCard(QWidget):
    """The card about new versions in the settings, below the switch for checking."""

    def __init__(self, ask: UpdateControl) -> None:
        super().__init__()
        self._title, self._about = Label("", "strong", wrap=True), Label("", "soft", wrap=True)
        self._news, self._failed = Label("", wrap=True), Label("", "bad", wrap=True)
        self._check, self._cancel = button(tr("Check now"), ask.check), button(tr("Cancel"), ask.cancel_check)
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
    """A line on the overview that announces a new version or, once, asks whether to check for updates."""

    def __init__(self, ask: UpdateControl, look: object) -> None:
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
