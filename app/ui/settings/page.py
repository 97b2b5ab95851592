"""The page Settings: every declared setting with its help, searchable; below them storage and diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from app.desktop.login import AutostartError
from app.models.catalogue import title
from app.node.rules.preferences import EXTRAS
from app.node.rules.preferences import SETTINGS as RULES
from app.node.rules.setting import Setting
from app.ui.frame.frame import Actions, Page
from app.ui.install.engine import EnginePanel
from app.ui.install.updates import UpdateCard
from app.ui.language.texts import tr, translated
from app.ui.pages.manual import ABOUT
from app.ui.settings.bundle_dialog import BundleDialog
from app.ui.settings.editors import Editor, chosen_elsewhere, editor
from app.ui.settings.identity import IdentitySection
from app.ui.settings.storage import Storage
from app.ui.theme import Theme
from app.ui.view.settings import SETTINGS
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Empty, Label, boxed, button, card, column, open_path, rule, search
from engines import remedy

SHOWN_KEYS = {setting.key for setting in SETTINGS if not setting.elsewhere}
AT_LOGIN = "start_at_login"
"""Key of a setting that the system stores; it is read only while the page is visible."""
LOGIN_MS = 500
_LEAST = 400
"""Width in pixels below which a setting's control stands below its name."""


class SettingsPage(Page):
    lasting = False

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Settings"))
        self._view = View()
        self._find = search(tr("Search settings"), lambda _: self._search(), width=240)
        self.header.addWidget(self._find)
        self._rows: dict[str, SettingRow] = {}
        self._found: list[tuple[QWidget, QWidget, str]] = []
        """Each card, a part of it, and the words by which that is found."""
        declared: list[Setting] = [*RULES, *SETTINGS]
        self._updates = UpdateCard(actions.updates)
        self._panel = EnginePanel(theme, actions.engine, manage=True)
        self._engine = boxed(column(rule(), self._panel, Bend(*self._panel.buttons, 1, gap=8), gap=12))
        self._engine.hide()
        self._identity = IdentitySection(actions.identity)
        identity = card(column(self._identity), padding=24)
        for group in sorted(dict.fromkeys(setting.group for setting in declared), key=EXTRAS.__eq__):
            inside: QVBoxLayout = column(Label(tr(group), "heading"), gap=14)
            frame = card(inside, padding=24)
            for setting in (setting for setting in declared if setting.group == group):
                line = self._rows[setting.key] = self._row(setting)
                inside.addWidget(line)
                self._found.append((frame, line, line.words))
                if setting.key == "updates":
                    inside.addWidget(self._updates)
                    inside.addWidget(self._engine)
                    words = tr("engine pack install repair remove pytorch")
                    self._found.append((frame, self._engine, words))
            self.add(frame)
        words = tr("your identity name key recovery words restore new keyring")
        self._found.append((identity, self._identity, words))
        self._nothing = Empty(
            theme, "search", tr("No such setting"), tr("Try another word, for example colours or tray.")
        )
        self._nothing.hide()
        self.add(self._nothing)
        self.add(identity)
        self._help = self._kept_and_help()
        self.add(self._help)
        self.body.addStretch(1)
        self._login = QTimer(self, interval=LOGIN_MS)
        self._login.timeout.connect(self._look_at_login)

    def show_view(self, view: View) -> None:
        self._view = view
        self._storage.show_home(Path(view.home))
        self._updates.show_update(view.update_view)
        self._identity.show_persona(view.persona)
        if view.pack is not None:
            self._panel.show_pack(view.pack)
        self._search()
        for key, line in self._rows.items():
            if key in view.rules:
                line.show_value(view.rules[key])
            elif key == "updates":
                line.show_value(view.update_view.wanted)
            elif key in SHOWN_KEYS:
                line.show_value(self.ask.choices[key])

    def show_setting(self, key: str) -> None:
        """Scrolls to a setting, and gives it the keyboard focus."""
        self._find.clear()
        line = self._rows[key]
        QTimer.singleShot(0, lambda: self.ensureWidgetVisible(line, 0, 80))  # when everything has its place
        line.control.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _row(self, setting: Setting) -> SettingRow:
        if setting in RULES:
            return SettingRow(self.theme, setting, setting.default, self.ask.node.set_rule)
        if setting.elsewhere:
            return SettingRow(self.theme, setting, self.ask.starts_at_login(), self.ask.set_choice)
        value, by = self.ask.choices[setting.key], None
        if setting.key == "model":
            by = chosen_elsewhere(
                tr(setting.label), value, lambda model: tr(title(model)), lambda: self.ask.go("models")
            )
        reopen = self.ask.reopen if setting.reopens else None
        made = SettingRow(self.theme, setting, value, self.ask.set_choice, reopen, by)
        made.opened_with(self.ask.choices.opened_with[setting.key])
        return made

    def _search(self) -> None:
        """Shows what has all the words that are searched, in cards with something to show."""
        words = self._find.text().casefold().split()
        seen: set[QWidget] = set()
        for frame, part, known in self._found:
            there = part is not self._engine or self._view.pack is not None
            part.setVisible(there and all(word in known for word in words))
            if not part.isHidden():
                seen.add(frame)
        for frame, _, _ in self._found:
            frame.setVisible(frame in seen)
        self._nothing.setVisible(not seen)
        self._help.setVisible(not words)

    def enter(self) -> None:
        self._look_at_login()
        self._login.start()
        if self._view.pack is not None:
            self.ask.engine.refresh()
        self.ask.identity.refresh()

    def leave(self) -> None:
        self._login.stop()
        self._identity.hide_words()

    def _look_at_login(self) -> None:
        self._rows[AT_LOGIN].show_value(self.ask.starts_at_login())

    def close_down(self) -> None:
        self._login.stop()

    def _kept_and_help(self) -> QFrame:
        self._storage = Storage(self.ask)
        logs = button(tr("Open the folder of the logs"), lambda: open_path(Path(self._view.home) / "logs"))
        kept = column(Label(tr("Where everything is kept"), "heading"), self._storage, gap=10)
        bundle = tr(
            "Versions, settings, events and logs, to help find a fault. You see all of it before you "
            "save it. Nothing is sent."
        )
        diagnostics = button(tr("Diagnostics …"), lambda: BundleDialog(self.window(), self._view).exec())
        keys = button(tr("About Shoal and its keys"), lambda: self.ask.show_help(ABOUT))
        help_ = column(
            Label(tr("Help"), "heading"),
            Label(bundle, "soft", wrap=True),
            Bend(logs, diagnostics, keys, 1),
            gap=12,
        )
        below = QFrame()
        below.setLayout(column(card(kept, padding=24), card(help_, padding=24), gap=16))
        return below


class SettingRow(QWidget):
    """One setting: its name, its help, and the control that changes it. `words` are its search words. `put` may
    refuse a value with a sentence, which is shown here."""

    def __init__(
        self,
        theme: Theme,
        setting: Setting,
        value: Any,
        put: Callable[[str, object], None],
        reopen: Callable[[], None] | None = None,
        by: Editor | None = None,
    ) -> None:
        """`reopen` reopens the window, for a setting that takes effect only then. `by` replaces the editor made
        from the declaration."""
        super().__init__()
        self.key = setting.key
        self._put, self._kept, self._first = put, value, value
        label, text = tr(setting.label), tr(setting.help, doctor=remedy.command("doctor"))
        if setting.restarts:
            text = tr("{help} Applies the next time it starts learning.", help=text)
        self.words = " ".join((label, text, tr(setting.group), tr(setting.words))).casefold()
        self._editor = by or editor(theme, setting, label, value, self._try)
        made = self.control = self._editor.widget
        made.setAccessibleDescription(text)
        self._complaint = Label("", "bad", wrap=True)
        self._complaint.hide()
        said = column(Label(label, "strong"), Label(text, "soft", wrap=True), gap=3)
        self._reopen: QPushButton | None = None
        said.addWidget(self._complaint)
        inside = Bend(said, made, gap=24, least=_LEAST)
        inside.setStretch(0, 1)
        inside.setAlignment(made, Qt.AlignmentFlag.AlignVCenter)
        if reopen is not None:
            self._reopen = button(tr("Reopen now"), reopen)
            self._reopen.hide()
            inside.insertWidget(1, self._reopen, 0, Qt.AlignmentFlag.AlignVCenter)
        self.setLayout(column(rule(), inside, gap=14))

    def opened_with(self, value: Any) -> None:
        """Sets the value that the window was opened with; the button to reopen it is shown while the current
        value differs."""
        self._first = value
        if self._reopen is not None:
            self._reopen.setVisible(self._kept != value)

    def show_value(self, value: Any) -> None:
        """Shows a value that was changed elsewhere."""
        if value != self._kept:
            self._kept = value
            self._editor.show(value)

    def _try(self, value: Any) -> None:
        if value == self._kept:
            self._complaint.hide()
            return
        try:
            self._put(self.key, value)
        except (ValueError, AutostartError, OSError) as error:
            self._complaint.tell(translated(str(error)))
            if isinstance(value, bool):
                self._editor.show(self._kept)
        else:
            self._kept = value
            self._complaint.hide()
            if self._reopen is not None:
                self._reopen.setVisible(value != self._first)
