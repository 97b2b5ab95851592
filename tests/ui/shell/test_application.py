"""What the system asks of the running window by events. Only macOS sends them, but Qt makes the same ones
everywhere: here they go to the real application in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EARLY = "shoal://join/ws/192.168.1.20:8777?swarm=shoal"
LINK = "shoal://join/wss/relay.example:8777?swarm=shoal&relay=r-1&token=t1.1800000000.any.Jx0-_"

STAGE = """
import json, sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QEvent, Qt, QTimer, QUrl
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication, QMessageBox
from app.ui.shell import desktop, start

start.LAUNCH_MS = 0
seen = {"links": []}
home, early, link, platform = Path(sys.argv[1]), *sys.argv[2:]
own = start.Application
ask_to_join = desktop.ask_to_join
def noted(parent, link, join):
    seen["links"].append(link)
    return ask_to_join(parent, link, join)
desktop.ask_to_join = noted

def opened(url):
    QCoreApplication.postEvent(QApplication.instance(), QFileOpenEvent(QUrl(url)))

def later(ms, what):
    QTimer.singleShot(ms, what)

def begin():
    opened("file:///tmp/some.txt")
    opened(link)
    later(600, closed)

def closed():
    window = next(one for one in QApplication.topLevelWidgets() if type(one).__name__ == "MainWindow")
    for box in window.findChildren(QMessageBox):
        seen["text"] = box.text()
        box.reject()
    window.hide()
    QApplication.instance().applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
    seen["back"] = window.isVisible()
    QCoreApplication.postEvent(QApplication.instance(), QEvent(QEvent.Type.Quit))

class Staged(own):
    def __init__(self, arguments):
        super().__init__(arguments, platform)
        opened(early)
        later(800, begin)
start.Application = Staged
seen["code"] = start.run(home, "light")
print(json.dumps(seen))
"""


def staged(home: Path, platform: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", STAGE, str(home), EARLY, LINK, platform],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_link_a_click_on_the_dock_and_the_end_come_as_events(tmp_path: Path) -> None:
    """Also a link that came before there was a window. The end is not taken for closing the window, which would
    ask, or hide it: nothing here answers, so the process would stay."""
    seen = staged(tmp_path, "darwin")
    assert seen["links"] == [EARLY, LINK] and "relay.example:8777" in str(seen["text"])
    assert seen["back"] is True and seen["code"] == 0


@pytest.mark.long
def test_elsewhere_a_window_in_the_tray_stays_there_when_shoal_becomes_active(tmp_path: Path) -> None:
    assert staged(tmp_path, "linux")["back"] is False


def test_a_program_started_for_a_link_hands_it_to_the_window_that_is_there(tmp_path: Path) -> None:
    """Both with the same data folder: a checkout's window runs, and macOS starts the installed app."""
    code = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QTimer, QUrl
from PySide6.QtGui import QFileOpenEvent
from app.ui.shell import start
from app.ui.shell.single import Single
class Started(start.Application):
    def __init__(self, arguments):
        super().__init__(arguments, "darwin")
        QTimer.singleShot(50, lambda: QCoreApplication.postEvent(self, QFileOpenEvent(QUrl(sys.argv[2]))))
        self.first = Single(Path(sys.argv[1]))
        self.first.asked.connect(print)
start.Application = Started
code = start.run(Path(sys.argv[1]))
QTimer.singleShot(300, QCoreApplication.quit)
QCoreApplication.instance().exec()
sys.exit(code)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), LINK],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        timeout=120,
    )
    assert (done.returncode, done.stdout.strip()) == (0, LINK), done.stderr
