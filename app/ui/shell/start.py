"""Puts the window together and runs it: application, settings, theme, node, tray."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from pathlib import Path

from PySide6.QtCore import QProcess, QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication, QMessageBox

from app.common.process.stopping import meant
from app.install.updates import installed
from app.node.data import modes, moving
from app.node.data.format import NewerError
from app.node.data.format import check as check_format
from app.ui.language.spoken import spoken
from app.ui.language.texts import speak, tr
from app.ui.process.child import surround
from app.ui.process.logs import keep_window_log
from app.ui.shell.application import Application
from app.ui.shell.desktop import Desktop
from app.ui.shell.single import Single
from app.ui.theme.theme import Choice
from app.ui.view.settings import Choices


def run(
    home: Path,
    theme: Choice | None = None,
    background: bool = False,
    join: str | None = None,
    link: str = "",
) -> int:
    """Shows the window until it is quit. Returns the exit code: 0, also when another window was raised
    instead and given the invite or link."""
    QApplication.setQuitOnLastWindowClosed(False)
    application = Application(sys.argv[:1])
    application.setApplicationName("Shoal")
    application.setDesktopFileName("shoal")
    speak(application, Choices(home)["language"])
    try:
        check_format(home)
    except NewerError as error:
        print(f"shoal: {error}", file=sys.stderr)
        QMessageBox.critical(None, "Shoal", spoken(str(error)))
        return 1
    if not _writable(home):
        why = tr(
            "Shoal can't save anything in {home}. Make that folder writable, or name another one with --home.",
            home=home,
        )
        print(f"shoal: {why}", file=sys.stderr)
        QMessageBox.critical(None, "Shoal", why)
        return 1
    single = Single(home)
    if not single.taken:
        if single.raise_other(join or link or application.first_link()):
            return 0
        print(
            tr("shoal: Another Shoal uses {home} and doesn't answer. Quit it and start again.", home=home),
            file=sys.stderr,
        )
        return 1
    if not single.listens:
        why = tr(
            "Shoal needs a folder that only you can write to. Change the permissions of {home}, or name "
            "another folder with --home.",
            home=home,
        )
        print(f"shoal: {why}", file=sys.stderr)
        QMessageBox.critical(None, "Shoal", why)
        return 1
    keep_window_log(home)
    threading.Thread(target=moving.leave, daemon=True).start()
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


def _writable(home: Path) -> bool:
    """Creates the data folder if needed. Reports a disk that is read-only."""
    with contextlib.suppress(OSError):
        modes.make(home)
        return os.access(home, os.W_OK)
    return False


def _open_again(options: list[str]) -> None:
    """Starts another window, which finds the data folder at its new place."""
    program = QProcess()
    words = installed.again()
    surround(program)
    environment = program.processEnvironment()
    environment.insert("PYINSTALLER_RESET_ENVIRONMENT", "1")  # else a bundle takes it for a process of its own
    program.setProcessEnvironment(environment)
    program.setProgram(words[0])
    program.setArguments([*words[1:], "window", *options])
    program.startDetached()


def _quit_on_signals(application: QApplication, desktop: Desktop) -> object:
    """Quits in order on Ctrl-C and at the end of a session. Python sees signals only between its own steps, so
    a socket wakes Qt's loop."""
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
    for number in meant():
        signal.signal(number, lambda *_: QTimer.singleShot(0, desktop.quit))
    notifier = QSocketNotifier(ours.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(lambda *_: _drain(ours))
    application.commitDataRequest.connect(lambda _: desktop._remember())
    return ours, theirs, notifier


def _drain(pipe: socket.socket) -> None:
    """Reads the byte that woke the loop. The socket may be gone already: what a signal does runs Qt's loop
    inside this very call."""
    with contextlib.suppress(BlockingIOError):
        pipe.recv(64)
