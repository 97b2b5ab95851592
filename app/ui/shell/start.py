"""Creates the window with its application, settings, theme, node and tray, and runs it.

The system can ask the application to follow a link, to come to the front and to quit: macOS passes a link, and
a click on the icon in its Dock, to the running program instead of starting another."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QEventLoop, QProcess, QSize, QSocketNotifier, Qt, QTimer, Signal
from PySide6.QtGui import QFileOpenEvent, QFontInfo
from PySide6.QtWidgets import QApplication, QMessageBox

from app.common.process.control import stop_signals
from app.install.updates import installed
from app.node.data.home import NewerVersionError, check_format, make_private
from app.ui.language.texts import load_language, tr, translated
from app.ui.process.job import apply_surroundings
from app.ui.process.logs import keep_window_log
from app.ui.shell.desktop import Desktop
from app.ui.shell.single import Single
from app.ui.theme.theme import Choice
from app.ui.view.settings import Choices

SCHEME = "shoal"
FIRST_LINK_MS = 700
"""Milliseconds to wait for a link that macOS passes with the first events, not as an argument."""
LAUNCH_MS = 3000
"""Milliseconds after the start during which an activation by macOS is not a request to show a window."""


class Application(QApplication):
    """The Qt application. `asked` emits a link that somebody opened; one that comes before `serve` waits."""

    asked = Signal(str)

    def __init__(self, arguments: Sequence[str], platform: str = sys.platform) -> None:
        super().__init__(list(arguments))
        self._mac = platform == "darwin"
        self._early = ""
        self._serving = False
        self._quit: Callable[[], None] | None = None

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.FileOpen and isinstance(event, QFileOpenEvent):
            self._opened(event)
            return True
        if event.type() is QEvent.Type.Quit and self._quit is not None:
            self._quit()  # else Qt closes the windows first, and takes one that stays in the tray for a refusal
        return super().event(event)

    def first_link(self) -> str:
        """Returns the link that this program was started for, if the system passes it by an event; else empty.
        Waits a moment, so call it only without a window to show."""
        if self._mac and not self._early:
            loop = QEventLoop()
            self.asked.connect(loop.quit)
            QTimer.singleShot(FIRST_LINK_MS, loop.quit)
            loop.exec()
            self.asked.disconnect(loop.quit)
        return self._early

    def serve(self, bring: Callable[[str], None], quit: Callable[[], None], seen: Callable[[], bool]) -> None:
        """Connects the callbacks: `bring` gets links, and "" for a click on the Dock while no window is `seen`;
        `quit` is called before the end."""
        self._quit, self._serving = quit, True
        self.asked.connect(bring)
        if self._early:
            QTimer.singleShot(0, lambda: bring(self._early))
        if self._mac:
            QTimer.singleShot(LAUNCH_MS, lambda: self.applicationStateChanged.connect(came))

        def came(state: Qt.ApplicationState) -> None:
            if state is Qt.ApplicationState.ApplicationActive and not seen():
                bring("")

    def _opened(self, event: QFileOpenEvent) -> None:
        url = event.url()
        if url.scheme() != SCHEME:
            return
        link = bytes(url.toEncoded().data()).decode("ascii", "replace")
        if not self._serving:
            self._early = link
        self.asked.emit(link)


USUAL_PX = 15
"""Pixels of the largest system font that is usual: 11 pt on Linux, 9 pt on Windows, 13 px on macOS."""
LEAST_ROOM = (640, 360)
"""The smallest screen that every page works on; text grows no further than leaves this much of the screen."""
_FACTOR = "QT_SCALE_FACTOR"


def text_scale(pixels: int, room: QSize) -> float:
    """Returns how much larger everything is drawn for a system font of this many pixels, on a screen with this
    much room: 22 pt (29 pixels) are 1.9 times as large, but 1.25 times on a screen of 800x600.

    >>> round(text_scale(29, QSize(1280, 720)), 2), text_scale(29, QSize(800, 600)), text_scale(12, QSize(0, 0))
    (1.93, 1.25, 1.0)
    """
    most = min(room.width() / LEAST_ROOM[0], room.height() / LEAST_ROOM[1])
    return max(1.0, min(pixels / USUAL_PX, most))


def enlarged(application: Application) -> Application:
    """Returns an application that draws everything larger if the system's font is large, else the same one. Qt
    reads the factor only when an application begins, and its font is known only then, so there are two."""
    room, given = application.primaryScreen().availableSize(), os.environ.get(_FACTOR)
    scale = text_scale(QFontInfo(application.font()).pixelSize(), room)
    if scale == 1:
        return application
    application.shutdown()
    os.environ[_FACTOR] = str(scale * float(given or 1))
    try:
        return Application(sys.argv[:1])
    finally:  # a window that is opened again would be enlarged twice
        os.environ.pop(_FACTOR)
        if given:
            os.environ[_FACTOR] = given


def run(
    home: Path,
    theme: Choice | None = None,
    background: bool = False,
    join: str | None = None,
    link: str = "",
) -> int:
    """Shows the window until it is quit. Returns the exit code: 0, also if another window was raised instead
    and given the invite or link."""
    QApplication.setQuitOnLastWindowClosed(False)
    application = enlarged(Application(sys.argv[:1]))
    application.setApplicationName("Shoal")
    application.setDesktopFileName("shoal")
    load_language(application, Choices(home)["language"])
    try:
        check_format(home)
    except NewerVersionError as error:
        return _refuse(translated(str(error)))
    if not _writable(home):
        why = tr(
            "Shoal can't save anything in {home}. Make that folder writable, or name another one with --home.",
            home=home,
        )
        return _refuse(why)
    single = Single(home)
    if not single.taken:
        if single.raise_other(join or link or application.first_link()):
            print(tr("Shoal is open already. Its window comes to the front."), file=sys.stderr, flush=True)
            return 0
        return _refuse(tr("Another Shoal uses {home} and doesn't answer. Quit it and start again.", home=home))
    if not single.listens:
        why = tr(
            "Shoal needs a folder that only you can write to. Change the permissions of {home}, or name "
            "another folder with --home.",
            home=home,
        )
        return _refuse(why)
    keep_window_log(home)
    desktop = Desktop(application, home, theme)
    single.asked.connect(desktop.bring)
    single.asked_to_end.connect(desktop.quit)
    application.serve(desktop.bring, desktop.quit, desktop.window.isVisible)
    wake = _quit_on_signals(application, desktop)
    desktop.open(background, join, link)
    code = application.exec()
    single.release()
    if desktop.again is not None:
        _open_again(desktop.again)
    del wake
    return code


def _refuse(why: str) -> int:
    """Says why no window can be shown, in the terminal and in a message box."""
    print(f"shoal: {why}", file=sys.stderr)
    QMessageBox.critical(None, "Shoal", why)
    return 1


def _writable(home: Path) -> bool:
    """Creates the data folder if needed. Returns False after reporting a read-only disk."""
    with contextlib.suppress(OSError):
        make_private(home)
        return os.access(home, os.W_OK)
    return False


def _open_again(options: list[str]) -> None:
    """Starts another window, which finds the data folder by itself."""
    program = QProcess()
    words = installed.restart_command()
    apply_surroundings(program)
    environment = program.processEnvironment()
    environment.insert("PYINSTALLER_RESET_ENVIRONMENT", "1")  # else a bundle takes it for a process of its own
    program.setProcessEnvironment(environment)
    program.setProgram(words[0])
    program.setArguments([*words[1:], "window", *options])
    program.startDetached()


def _quit_on_signals(application: QApplication, desktop: Desktop) -> object:
    """Quits in order on Ctrl-C and at the end of a session. Python handles signals only between its own steps,
    so a socket wakes Qt's loop."""
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, lambda *_: desktop.quit())
        timer = QTimer(application, interval=500)
        timer.timeout.connect(lambda: None)
        timer.start()
        return timer
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno())
    for number in stop_signals():
        signal.signal(number, lambda *_: QTimer.singleShot(0, desktop.quit))
    notifier = QSocketNotifier(ours.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(lambda *_: _drain(ours))
    application.commitDataRequest.connect(lambda _: desktop._remember())
    return ours, theirs, notifier


def _drain(pipe: socket.socket) -> None:
    """Reads the byte that woke the loop. The socket may be closed already: handling a signal runs Qt's loop
    inside this very call."""
    with contextlib.suppress(BlockingIOError):
        pipe.recv(64)
