"""The running window with its node, models, engine, tray and updates, and the order in which they end."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.desktop import links
from app.desktop.login import AutostartError
from app.install.packs import place as packs
from app.install.updates import installed
from app.models.catalogue import STARTER
from app.node.data import question_sets
from app.node.data.home import use_folder
from app.node.data.library import history_of
from app.node.history import history
from app.ui.chat.asking import SkillAsker
from app.ui.frame.frame import Actions
from app.ui.language.texts import tr
from app.ui.process.control import Control
from app.ui.process.engine import EngineControl
from app.ui.process.identity import IdentityControl
from app.ui.process.logs import close_window_log
from app.ui.process.models import ModelControl
from app.ui.process.node import NodeProcess
from app.ui.process.past import Questions
from app.ui.process.updates import UpdateControl
from app.ui.shell import data_folder
from app.ui.shell.login import AutostartSwitch, home_option
from app.ui.shell.tray import Tray
from app.ui.shell.window import MainWindow
from app.ui.theme import Theme
from app.ui.theme.theme import Choice
from app.ui.view.settings import Choices
from app.ui.view.view import NodeStatus, Problem, View
from app.ui.widgets.invite import ask_to_join, must_ask
from app.ui.widgets.pieces import PlainTips


def choose_last_trained_model(home: Path, choices: Choices) -> None:
    """Chooses the model that learned last, if no window ever started learning or chose a model, and the starter
    has no history. Every page then shows this model, and `Start learning` continues with it."""
    if choices.memory.asked or choices["model"] != STARTER:
        return
    starter, newest = history_of(home, STARTER), history.newest(home)
    if newest is None or (starter is not None and starter.is_dir()):
        return
    name = history.model_of(newest)
    if name and history_of(home, name) == newest:
        with contextlib.suppress(OSError, ValueError):
            choices.put("model", name)


_AT_REST = (NodeStatus.NEW, NodeStatus.PAUSED, NodeStatus.FAILED)
"""States in which closing the window ends nothing that the person wants to continue."""


class Desktop:
    """The running application. It holds everything that lives as long as the application, and nothing else."""

    window: MainWindow

    def __init__(
        self,
        application: QApplication,
        home: Path,
        theme: Choice | None,
        link: NodeProcess | None = None,
        updates: UpdateControl | None = None,
    ) -> None:
        self._application = application
        self._tips = PlainTips()
        application.installEventFilter(self._tips)
        self.choices = Choices(home)
        choose_last_trained_model(home, self.choices)
        self.theme = Theme(application, theme or self.choices["theme"])
        self._link = link or NodeProcess(home)
        self.engine, self._installed = EngineControl(home), packs.installed()
        """The engine of an installed app; a checkout brings its own."""
        obstacle = self.engine.obstacle if self._installed else lambda: None
        self.control = Control(home, self.choices, self._link, obstacle=obstacle)
        if self._installed:
            self._attend_engine(self.engine)
        self._home = home
        self.models = ModelControl(home, self.choices)
        self.models.changed.connect(partial(self.control.set_view_field, "models"))
        self.models.past_changed.connect(self.control.on_model_changed)
        self.updates = updates or UpdateControl(home, self.choices)
        self.updates.changed.connect(partial(self.control.set_view_field, "update_view"))
        self.identity = IdentityControl(home)
        self.identity.changed.connect(partial(self.control.set_view_field, "persona"))
        for one in (self.models, self.identity, self.engine):
            one.resting.connect(self.control.suspend_node)
            one.awake.connect(self.control.resume_node)
        self.skills = SkillAsker(str(home), self.choices)
        self.questions = Questions(home)
        self.questions.changed.connect(partial(self.control.set_view_field, "questions"))
        self._leaving = False
        self.again: list[str] | None = None
        """Options of the window that is to be opened when this one has ended."""
        self._login = AutostartSwitch(home)
        actions = Actions(
            node=self.control,
            models=self.models,
            engine=self.engine,
            updates=self.updates,
            identity=self.identity,
            choices=self.choices,
            use_model=self._learn_with,
            learn_with=self._begin_with,
            go=lambda key: self.window.go(key),
            want_questions=self.questions.request,
            show_family=lambda name: self.window.open_page("live").show_family(name),
            show_round=lambda round: self.window.open_page("live").show_round(round),
            show_rule=lambda key: self.window.open_page("settings").show_setting(key),
            show_help=lambda key: self.window.open_page("help").show_topic(key),
            ask_skill=self.skills.ask,
            learn_questions=self._learn_questions,
            set_choice=self._set,
            alone=self._leave,
            use_folder=self.use_folder,
            remove_all=self.remove_all,
            starts_at_login=self._login.on,
            reopen=self._reopen,
        )
        self.window = MainWindow(self.theme, actions, self._closing)
        self.window.restore_place(self.choices.memory.geometry)
        self.window.go(self.choices.memory.page)
        self.window.quit_asked.connect(self.quit)
        self.tray = Tray(actions, self.window.bring, self.quit)
        self.control.changed.connect(self._show)
        self.control.failed.connect(self._tell)
        self._show(self.control.view)

    @property
    def node_pid(self) -> int:
        return self._link.pid

    def open(self, background: bool = False, join: str | None = None, link: str = "") -> None:
        """Shows the window, or in the background only the tray; without a tray, a minimised window. `join` is
        an invite to join immediately, `link` one to ask about."""
        if not background:
            self.window.show()
        elif not self.tray.there:
            self.window.showMinimized()
        QTimer.singleShot(0, lambda: self._after_first_frame(join, link))

    def bring(self, link: str = "") -> None:
        """Brings the window to the front, and handles a link that somebody opened."""
        if self._leaving:
            return
        self.window.bring()
        if link:
            ask_to_join(self.window, link, self.control.join)

    def quit(self) -> None:
        """Saves the window's state, ends the node, and leaves."""
        if self._leaving:
            return
        self._remember()
        self._leaving = True
        self.tray.hide()
        self.window.hide()
        self._application.processEvents()
        self.window.close_down()
        self._close_all()
        self._application.quit()

    def use_folder(self, to: Path) -> None:
        """Opens the window again with another data folder. Raises NodeError."""
        ours = self._login.starts_from_here()
        use_folder(to, self._home)
        if ours:
            with contextlib.suppress(AutostartError):  # it is a switch in the settings, and can be seen there
                AutostartSwitch(to).turn(True)
        self.again = home_option(to)
        self.quit()

    def remove_all(self) -> None:
        """Stops learning, removes everything that Shoal stores, and quits the app."""
        self._remember()
        self._leaving = True
        self.tray.hide()
        self.window.close_down()
        self._close_all()
        close_window_log()
        data_folder.remove_everything(self.window, self._home)
        self._application.quit()

    def _close_all(self) -> None:
        """Ends every process of this window and returns when they have ended."""
        for one in (
            self.skills,
            self.models,
            self.updates,
            self.identity,
            self.questions,
            self.engine,
            self.control,
        ):
            one.close()

    def _after_first_frame(self, join: str | None, link: str) -> None:
        if join and must_ask(join):
            link, join = join, None
        self.tray.show()
        question_sets.register_sets(self._home)
        if self._installed:
            self.engine.refresh()
        self.control.open(learn=join is None)
        self.updates.open()
        self._login.update_program()
        links.links().update_program(installed.program())
        if join is not None:
            self.control.join(join)
        elif link:
            self.bring(link)

    def _reopen(self) -> None:
        """Restarts the window, for example in another language."""
        self.again = home_option(self._home)
        self.quit()

    def _attend_engine(self, control: EngineControl) -> None:
        """Checks the engine after a failure of the node, which another engine may fix."""
        self.control.set_view_field("pack", control.state)
        control.changed.connect(partial(self.control.set_view_field, "pack"))
        control.ready.connect(self.control.engine_changed)
        self.control.failed.connect(lambda _: control.check())
        self.control.failed.connect(lambda _: None if control.state.usable else self.window.go("overview"))

    def _show(self, view: View) -> None:
        self.window.show_view(view)
        self.tray.show_view(view)

    def _tell(self, problem: Problem) -> None:
        if self.choices["tell_failures"] and not self.window.isActiveWindow():
            self.tray.tell(problem.title, problem.sentence)

    def _leave(self) -> None:
        self.control.leave()
        self.updates.cancel_automatic_check()

    def _learn_with(self, model: str) -> None:
        with contextlib.suppress(OSError):  # the page goes on showing the one before
            self.models.choose(model)
            self.control.on_model_changed()

    def _begin_with(self, model: str) -> None:
        self._learn_with(model)
        if model != STARTER and self.choices.memory.waits:
            self._learn_questions(self.choices.memory.waits)
        else:
            self._begin()
        self.window.go("overview")

    def _begin(self) -> None:
        """Starts learning, paused or not: the person was told so."""
        self.control.learn(str(self.choices["company"]))
        if self.control.view.state is NodeStatus.PAUSED:
            self.control.start()

    def _learn_questions(self, marks: tuple[str, ...]) -> None:
        fewer = set(marks) < set(self.choices.memory.questions)
        self.control.learn_questions(marks)
        if not fewer:
            self._begin()

    def _set(self, key: str, value: object) -> None:
        if key == "start_at_login":
            self._login.turn(bool(value))
            return
        if key == "company":
            self.control.keep_company(str(value))
            if value == "alone":
                self.updates.cancel_automatic_check()
        else:
            self.choices.put(key, value)
        if key == "theme":
            self.theme.choose(self.choices["theme"])
        elif key == "updates":
            self.updates.decide(self.choices["updates"])
        elif key == "model":
            self._learn_with(self.choices["model"])
        self._show(self.control.view)

    def _closing(self) -> bool:
        """Decides whether the window may close: with a tray it is hidden, without one the person is asked. The
        window never becomes unreachable."""
        if self._leaving:
            return True
        self._remember()
        if self.choices["close_to_tray"] and self.tray.there:
            self.window.hide()
            self._tell_tray()
            return False
        if self.choices["close_to_tray"] and self.control.view.state not in _AT_REST:
            answer = self.window.ask_closing()
            if answer == "keep":
                self.window.showMinimized()
            if answer != "quit":
                return False
        QTimer.singleShot(0, self.quit)
        return False

    def _tell_tray(self) -> None:
        """Says once that Shoal is still running, as a closed window looks like a program that has ended."""
        if not self.choices.memory.tray_told:
            self.tray.tell(tr("Shoal is still here"), tr("It stays in the tray. Quit it from there."))
            with contextlib.suppress(OSError):
                self.choices.remember_window(tray_told=True)

    def _remember(self) -> None:
        if self._leaving:
            return
        with contextlib.suppress(OSError):  # where the window was is not worth a word
            self.choices.remember_window(geometry=self.window.saved_place(), page=self.window.page)
