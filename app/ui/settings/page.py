"""The page Settings: every declared setting with its help, searchable; below them storage and diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices
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
from app.ui.widgets.pieces import Empty, Label, boxed, button, card, column, rule, search
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
        self._find = search(tr("Search settings"), self._search, width=240)
        self.header.addWidget(self._find)
        self._lines: list[tuple[QFrame, SettingRow]] = []
        declared: list[Setting] = [*RULES, *SETTINGS]
        self._updates = UpdateCard(actions.updates)
        self._panel = EnginePanel(theme, actions.engine, manage=True)
        self._engine = boxed(column(rule(), self._panel, Bend(*self._panel.buttons, 1, gap=8), gap=12))
        self._engine.hide()
        self._identity = IdentitySection(actions.identity)
        self._identity_card = card(column(self._identity), padding=24)
        for group in sorted(dict.fromkeys(setting.group for setting in declared), key=EXTRAS.__eq__):
            settings = [setting for setting in declared if setting.group == group]
            inside = self._add_group(group, settings)
            if any(setting.key == "updates" for setting in settings):
                inside.addWidget(self._updates)
                inside.addWidget(self._engine)
                self._install_card, _ = self._lines[-1]
        self._nothing = Empty(
            theme, "search", tr("No such setting"), tr("Try another word, for example colours or tray.")
        )
        self._nothing.hide()
        self.add(self._nothing)
        self.add(self._identity_card)
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
        self._show_other_cards()
        for _, line in self._lines:
            if line.key in view.rules:
                line.show_value(view.rules[line.key])
            elif line.key == "updates":
                line.show_value(view.update_view.wanted)
            elif line.key in SHOWN_KEYS:
                line.show_value(self.ask.choices[line.key])

    def show_setting(self, key: str) -> None:
        """Scrolls to a setting, and gives it the keyboard focus."""
        self._find.clear()
        line = next(line for _, line in self._lines if line.key == key)
        QTimer.singleShot(0, lambda: self.ensureWidgetVisible(line, 0, 80))  # when everything has its place
        line.focus()

    def _add_group(self, group: str, settings: list[Setting]) -> QVBoxLayout:
        inside: QVBoxLayout = column(Label(tr(group), "heading"), gap=14)
        frame = card(inside, padding=24)
        for setting in settings:
            line = self._line(setting)
            inside.addWidget(line)
            self._lines.append((frame, line))
        self.add(frame)
        return inside

    def _line(self, setting: Setting) -> SettingRow:
        if setting in RULES:
            return SettingRow(self.theme, setting, setting.default, self.ask.set_rule)
        if setting.elsewhere:
            return SettingRow(self.theme, setting, self.ask.starts_at_login(), self.ask.set_choice)
        reopen = self.ask.reopen if setting.reopens else None
        made = SettingRow(
            self.theme,
            setting,
            self.ask.choices[setting.key],
            self.ask.set_choice,
            reopen,
            self._model_editor(setting) if setting.key == "model" else None,
        )
        made.opened_with(self.ask.choices.opened_with[setting.key])
        return made

    def _model_editor(self, setting: Setting) -> Editor:
        def write(model: str) -> str:
            return tr(title(model))

        value = self.ask.choices[setting.key]
        return chosen_elsewhere(tr(setting.label), value, write, lambda: self.ask.go("models"))

    def _search(self, text: str) -> None:
        words = text.casefold().split()
        seen: set[QFrame] = set()
        for frame, line in self._lines:
            found = all(word in line.words for word in words)
            line.setVisible(found)
            if found:
                seen.add(frame)
        for frame, _ in self._lines:
            frame.setVisible(frame in seen)
        self._nothing.setVisible(not seen)
        self._help.setVisible(not words)
        self._show_other_cards()

    def _show_other_cards(self) -> None:
        """Shows the cards of identity and, in an installed app, of the engine, if they match the search."""
        engine = self._found(tr("engine pack install repair remove pytorch"))
        self._engine.setVisible(self._view.pack is not None and engine)
        if not self._engine.isHidden():
            self._install_card.show()
        self._identity_card.setVisible(
            self._found(tr("your identity name key recovery words restore new keyring"))
        )
        if not self._engine.isHidden() or not self._identity_card.isHidden():
            self._nothing.hide()

    def _found(self, known: str) -> bool:
        return all(word in known.casefold() for word in self._find.text().casefold().split())

    def enter(self) -> None:
        self._look_at_login()
        self._login.start()
        self.ask.engine.refresh()
        self.ask.identity.refresh()

    def leave(self) -> None:
        self._login.stop()
        self._identity.hide_words()

    def _look_at_login(self) -> None:
        next(line for _, line in self._lines if line.key == AT_LOGIN).show_value(self.ask.starts_at_login())

    def close_down(self) -> None:
        self._login.stop()

    def _kept_and_help(self) -> QFrame:
        self._storage = Storage(self.ask)
        logs = button(tr("Open the folder of the logs"), self._open_logs)
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

    def _open_logs(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(self._view.home) / "logs")))


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
        made = self._editor.widget
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

    def focus(self) -> None:
        self._editor.widget.setFocus(Qt.FocusReason.ShortcutFocusReason)

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
