"""Pictures of every page in both themes, from the project's folder and with QT_QPA_PLATFORM=offscreen:
`python -m tests.ui.pictures FOLDER [WIDTH HEIGHT [HOME]]`. With HOME, a data folder, overview, skills and
history show what a real run left there; the swarm and the questions are made up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import msgspec
from PySide6.QtWidgets import QApplication

from app.node.rules.preferences import check
from app.ui.chat.page import TryIt
from app.ui.frame.frame import Actions
from app.ui.overview.page import Overview
from app.ui.settings.page import SettingsPage
from app.ui.shell.window import MainWindow
from app.ui.theme import Theme
from app.ui.view.settings import Choices
from app.ui.view.view import Holdings, View
from tests.ui import engine_views, views


class Noted:
    """In place of a control, or of a page's other actions: notes what is asked. `given` answers for itself."""

    def __init__(self, asked: list[object], **given: object) -> None:
        self._asked = asked
        vars(self).update(given)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *values: self._asked.append((name, *values) if values else name)


def actions(folder: Path, asked: list[object] | None = None) -> Actions:
    """What pages ask goes into `asked`, if it is given; settings are then changed."""
    kept = asked is not None
    asked, choices = [] if asked is None else asked, Choices(folder)

    def put(key: str, value: object) -> None:
        asked.append((key, value))
        if kept:
            choices.put(key, value)

    def rule(key: str, value: object) -> None:
        check(key, value)
        asked.append((key, value))

    noted = Noted(asked)
    made = {one.name: getattr(noted, one.name.removeprefix("show_")) for one in fields(Actions)}
    made |= dict.fromkeys(("engine", "updates", "identity"), noted)
    made |= {"node": Noted(asked, set_rule=rule), "models": Noted(asked, host=lambda: "huggingface.co")}
    made |= {"choices": choices, "set_choice": put, "starts_at_login": lambda: False, "go": asked.append}
    return Actions(**made | {"want_questions": lambda places: asked.append(("questions", *places))})


def unbroken(models: Holdings) -> Holdings:
    """Without the download that was cut short."""
    change = msgspec.structs.replace
    library = change(models.library, models=tuple(change(one, partial=None) for one in models.library.models))
    return change(models, library=library)


def scenes(home: Path | None) -> list[tuple[str, str, View]]:
    """(name, page, view)"""
    alone, together = views.learning(), views.together()
    if home is not None:
        alone = views.recorded(home)
    made = [
        (key, key, together if key in ("live", "swarm", "privacy") else alone)
        for key in ("overview", "live", "skills", "swarm", "history", "privacy", "settings", "help")
    ]
    made += [
        ("welcome", "overview", View(home="/home/ada/.local/share/shoal")),
        ("overview-together", "overview", together),
        ("overview-problem", "overview", views.failed()),
        ("overview-paused", "overview", views.odd()["paused"]),
        ("overview-in-use", "overview", views.odd()["in use"]),
        ("overview-busy", "overview", views.odd()["busy"]),
        ("overview-trial", "overview", views.odd()["trial"]),
        ("overview-first", "overview", views.odd()["first"]),
        ("models", "models", views.learning(models=unbroken(views.holdings()))),
        ("models-door", "models", views.learning(models=unbroken(views.holdings(door=views.DOOR)))),
        ("privacy-door", "privacy", views.learning(models=unbroken(views.holdings(door=views.DOOR)))),
        ("models-broken", "models", views.learning(models=views.holdings())),
        ("models-crammed", "models", views.odd()["crammed"]),
        ("swarm-alone", "swarm", alone),
        ("swarm-private", "swarm", msgspec.structs.replace(together, words=views.SIX)),
        ("privacy-alone", "privacy", alone),
        ("live-empty", "live", View(home="/tmp")),
        ("tryit-empty", "tryit", View(home="/tmp")),
        ("tryit", "tryit", View(home="/tmp")),
        ("welcome-model", "overview", View(home="/tmp", models=views.holdings())),
        ("welcome-company", "overview", View(home="/tmp")),
        ("welcome-invite", "overview", View(home="/tmp")),
    ]
    made += [
        (f"identity-{name}", "settings", views.learning(persona=persona))
        for name, persona in views.personas().items()
    ]
    return made + engine_views.scenes()


def prepare(scene: str, window: MainWindow) -> None:
    """What somebody would have done on the page. Its processes are made up."""
    page = window._pages[window.page]
    if scene == "tryit":
        assert isinstance(page, TryIt)
        views.conversation(page)
    elif scene.startswith("engine-settings"):
        assert isinstance(page, SettingsPage)
        QApplication.processEvents()
        page.ensureWidgetVisible(page._engine)
    elif scene.startswith("identity"):
        assert isinstance(page, SettingsPage)
        if scene == "identity-words":
            page._identity._take(views.WORDS)
        QApplication.processEvents()
        page.ensureWidgetVisible(page._identity)
    elif scene.startswith("welcome"):
        assert isinstance(page, Overview)
        welcome = page._welcome
        steps = {"welcome": welcome._what, "welcome-model": welcome._model}
        welcome._show(steps.get(scene, welcome._company))
        if scene == "welcome-invite":  # as much as can be said there
            company = welcome._company
            company._options._group.button(2).click()
            company._invite.setText("shoal://join/ws/192.168.1.20:8777?swarm=shoal&room=class")
            company._start.click()


def main(folder: Path, width: int, height: int, home: Path | None = None) -> None:
    application = QApplication.instance() or QApplication([])
    assert isinstance(application, QApplication)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("light", "dark"):
        theme = Theme(application, name)  # type: ignore[arg-type]
        window = MainWindow(theme, actions(folder))
        window.resize(width, height)
        window.show()
        for scene, page, view in scenes(home):
            window.show_view(view)
            window.go(page)
            prepare(scene, window)
            window.setFocus()
            for _ in range(3):  # what was added has its place only after it has its size
                application.processEvents()
            window.grab().save(str(folder / f"{scene}-{name}.png"))
        window.close()
        window.deleteLater()


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[2:4]] or [1180, 780]
    main(Path(sys.argv[1]), *numbers, *map(Path, sys.argv[4:5]))
