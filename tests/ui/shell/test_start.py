"""Starting: one window, a display or a sentence, nothing heavy loaded."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QLockFile
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from app.desktop.login import LinuxAutostart
from app.ui.frame.frame import Actions
from app.ui.shell import single
from app.ui.shell.desktop import Desktop
from app.ui.shell.login import AutostartSwitch
from app.ui.shell.single import QUIT, SOCKET, Single
from app.ui.shell.tray import Tray, icon_name
from app.ui.view.settings import SETTINGS, Choices
from app.ui.view.view import NodeStatus
from tests.ui import views

ROOT = Path(__file__).parents[3]


def test_the_window_loads_no_model_library_and_no_numbers_library() -> None:
    code = "import sys, app.ui.shell.start, app.cli.window\nfrom app.ui.shell.window import pages\nprint([m for m in ('torch', 'numpy', 'transformers', 'reasoning_gym', 'aiohttp', 'rich') if m in sys.modules])"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


def test_painting_loses_no_reference_to_none(qapp: QApplication) -> None:
    """PySide 6.12.0 did, and ended Python 3.11 with "deallocating None" after some seconds of painting."""
    from PySide6.QtCore import QPointF
    from PySide6.QtGui import QPainter, QPixmap

    pixmap = QPixmap(10, 10)
    painter = QPainter(pixmap)
    before = sys.getrefcount(None)
    for _ in range(500):
        painter.drawLine(QPointF(0, 0), QPointF(1, 1))
    lost = before - sys.getrefcount(None)
    painter.end()
    assert lost < 100


def test_without_a_display_there_is_one_sentence(tmp_path: Path) -> None:
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    if sys.platform in ("win32", "darwin"):
        pytest.skip("there is always a display here")
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "window", "--home", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=bare,
        timeout=120,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "no display" in done.stderr and "./shoal run" in done.stderr


@pytest.mark.parametrize("link", ["", "shoal://join/ws/192.168.1.20:8777?swarm=shoal"])
def test_a_second_start_raises_the_first_window_and_hands_it_its_link(
    link: str, tmp_path: Path, qtbot: QtBot
) -> None:
    first = Single(tmp_path)
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    with qtbot.waitSignal(first.asked, timeout=60_000) as heard:
        second = subprocess.run(
            [sys.executable, "-m", "app.cli", "window", "--home", str(tmp_path), link],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    assert second.returncode == 0 and heard.args == [link]
    assert second.stderr == "Shoal is open already. Its window comes to the front.\n"
    first.release()


def test_an_installer_asks_the_open_window_to_end(tmp_path: Path, qtbot: QtBot) -> None:
    home = ["--home", str(tmp_path)]
    command = [sys.executable, "-m", "app.cli", "window", "--quit", *home]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    none = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (none.returncode, none.stderr) == (0, ""), "There's none"
    first, said = Single(tmp_path), []
    first.asked.connect(said.append)
    with qtbot.waitSignal(first.asked_to_end, timeout=30_000):
        assert subprocess.run(command, env=environment, cwd=ROOT, timeout=120).returncode == 0
    assert first.raise_other(QUIT), "no link can ask for that"
    qtbot.waitUntil(lambda: said == [""], timeout=30_000)
    first.release()


def test_a_lost_caller_and_one_without_end_are_borne(tmp_path: Path, qtbot: QtBot) -> None:
    first, said = Single(tmp_path), []
    first.asked.connect(said.append)
    endless = QLocalSocket()
    endless.connectToServer(str(tmp_path / SOCKET))
    endless.write(b"x" * 100_000)
    qtbot.waitUntil(lambda: endless.state() is QLocalSocket.LocalSocketState.UnconnectedState, timeout=30_000)
    assert Single(tmp_path).raise_other("x" * 5000)
    qtbot.waitUntil(lambda: said == [""], timeout=30_000)
    first.release()


_LISTENER = """
import os, socket, sys
path = sys.argv[1]
heard = socket.socket(socket.AF_UNIX)
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
heard.bind(path)
os.chmod(path, 0o777)
heard.listen()
print("listens", flush=True)
heard.settimeout(100)
try:
    print(heard.accept()[0].recv(4096), flush=True)
except TimeoutError:
    print("nobody")
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has named pipes")
@pytest.mark.parametrize("where", ["the public folder", "a public data folder", "the data folder"])
def test_a_link_is_never_handed_to_another_user_who_listened_first(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    """A second start gave its link, with the token, to whoever held /tmp/shoal-HASH, and ended with 0."""
    if os.geteuid() != 0 and where == "the data folder":
        pytest.skip("only root can run a process as another user")
    short = tempfile.TemporaryDirectory(prefix="s")  # a socket's path has 107 bytes at most
    public, home = Path(short.name) / "tmp", tmp_path / "home"
    Path(short.name).chmod(0o755)
    public.mkdir()
    home.mkdir()
    home.chmod(0o777)
    public.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(public))
    name = "shoal-" + sha256(str(home.resolve()).encode()).hexdigest()[:16]
    path = public / name if where == "the public folder" else home / SOCKET
    program = [sys.executable, "-c", _LISTENER, path.name]
    other = subprocess.Popen(program, cwd=path.parent, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "listens\n"
        home.chmod(0o777 if where == "a public data folder" else 0o700)
        lock = QLockFile(str(home / "window.lock"))
        assert lock.tryLock(100), "a first window that does not listen"
        second = Single(home)
        assert not second.taken and not second.raise_other("shoal://join/ws/relay?token=secret")
        lock.unlock()
    finally:
        other.kill()
    assert "secret" not in other.communicate()[0]
    first = Single(home)
    assert first.listens, "in the data folder, or where that is public, in a folder of one's own"
    with qtbot.waitSignal(first.asked, timeout=30_000):
        assert second.raise_other("shoal://nowhere")
    first.release()
    short.cleanup()


def test_a_pipes_name_on_windows_is_guessed_by_nobody_and_found_by_its_owner(tmp_path: Path) -> None:
    """Read on any system; Windows itself was never asked."""
    file = tmp_path / SOCKET
    assert single._pipe(file, listening=False) == "", "no window"
    first, second = single._pipe(file, listening=True), single._pipe(file, listening=True)
    assert first != second == single._pipe(file, listening=False) and len(second) == len("shoal-") + 32
    assert os.name == "nt" or file.stat().st_mode & 0o777 == 0o600
    for damaged in (b"\\\\evil\\pipe\\x", b"shoal-" + b"0" * 33, b"", b"\xff" * 10**6):
        file.write_bytes(damaged)
        assert single._pipe(file, listening=False) == ""


@pytest.mark.parametrize(
    ("holder", "taken"), [("1\npython\nelsewhere\nid\nboot\n", True), ("rubbish", True), (None, False)]
)
def test_a_lock_from_another_computer_is_taken_over_and_one_that_is_held_here_is_not(
    tmp_path: Path, qapp: QApplication, holder: str | None, taken: bool
) -> None:
    """A copied or restored folder brings the lock along; its owner can't be looked up here."""
    path = tmp_path / "window.lock"
    here = QLockFile(str(path))
    if holder is None:
        assert here.tryLock(100), "a process of this computer that doesn't answer"
    else:
        path.write_text(holder)
    first = Single(tmp_path)
    assert first.taken is taken
    first.release()
    here.unlock()


@pytest.mark.skipif(os.name == "nt", reason="Windows has named pipes")
def test_a_window_that_no_second_start_could_reach_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: QApplication
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    first = Single(tmp_path)
    assert first.taken and not first.listens
    first.release()


def test_a_link_joins_only_when_the_owner_says_so(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[str] = []
    desktop = Desktop(qapp, tmp_path, "light")
    monkeypatch.setattr(desktop.control, "join", joined.append)
    link = "shoal://join/ws/192.168.1.20:8777?swarm=shoal"
    for opened, button, expected in (
        (link, "Cancel", []),
        ("shoal://nowhere", "Close", []),
        (link, "Join", [link]),
    ):
        desktop.bring(opened)
        (box,) = [one for one in desktop.window.findChildren(QMessageBox) if one.isVisible()]
        assert "192.168.1.20:8777" in box.text() or button == "Close"
        (choice,) = [one for one in box.buttons() if one.text() == button]
        choice.click()
        assert joined == expected
        qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    desktop.bring()
    assert desktop.window.isVisible() and not desktop.window.findChildren(QMessageBox)
    desktop.quit()


@pytest.mark.parametrize(
    ("join", "asked"),
    [
        ("shoal://join/ws/192.168.1.20:8777?swarm=shoal", ""),
        ("shoal://join/ws/192.168.1.20:8777?swarm=shoal&room=class", "teacher"),
        ("shoal://join/ws/192.168.1.20:8777?swarm=shoal&room=class,", "characters or a length"),
    ],
)
def test_an_invite_on_the_command_line_is_followed_where_nothing_needs_a_word_first(
    join: str, asked: str, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong one stopped all learning with a sentence and no way on."""
    joined: list[str] = []
    desktop = Desktop(qapp, tmp_path, "light")
    monkeypatch.setattr(desktop.control, "join", joined.append)
    desktop._after_first_frame(join, "")
    boxes = [one for one in desktop.window.findChildren(QMessageBox) if one.isVisible()]
    assert joined == ([] if asked else [join]) and [asked in one.informativeText() for one in boxes] == [
        True
    ] * bool(asked)
    desktop.quit()


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is a POSIX word")
def test_a_killed_window_leaves_no_lock_behind(tmp_path: Path, qapp: QApplication) -> None:
    code = "import sys, os, signal\nfrom pathlib import Path\nfrom PySide6.QtCore import QCoreApplication\nfrom app.ui.shell.single import Single\na = QCoreApplication([])\ns = Single(Path(sys.argv[1]))\nassert s.taken\nos.kill(os.getpid(), signal.SIGKILL)"  # noqa: E501
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, timeout=60)
    again = Single(tmp_path)
    assert again.taken
    again.release()


def test_every_setting_has_a_help_and_bears_a_damaged_file(tmp_path: Path) -> None:
    assert all(setting.help and setting.label and setting.group for setting in SETTINGS)
    assert len({setting.key for setting in SETTINGS}) == len(SETTINGS)
    (tmp_path / "window.json").write_text("{damaged")
    (tmp_path / "window-state.json").write_text('{"version": "x"}')
    choices = Choices(tmp_path)
    assert choices["theme"] == "system" and list(tmp_path.glob("damaged-window.json-*"))
    choices.put("theme", "dark")
    choices.remember_window(page="skills")
    again = Choices(tmp_path)
    assert again["theme"] == "dark" and again.memory.page == "skills"
    with pytest.raises(ValueError):
        choices.put("theme", "pink")
    (tmp_path / "window.json").write_text('{"theme": "pink", "probe_every": -4, "unknown": 1}')
    assert (Choices(tmp_path)["theme"], Choices(tmp_path)["probe_every"]) == ("system", 10)


def test_without_a_tray_closing_asks(desktop: Desktop, monkeypatch: pytest.MonkeyPatch) -> None:
    desktop.window.show()
    left: list[str] = []
    monkeypatch.setattr(desktop, "quit", lambda: left.append("quit"))
    desktop.control._change(state=NodeStatus.LEARNING)
    for answer, visible in (("stay", True), ("keep", True)):
        monkeypatch.setattr(desktop.window, "ask_closing", lambda answer=answer: answer)
        desktop.window.close()
        assert desktop.window.isVisible() is visible and not left
    monkeypatch.setattr(desktop.window, "ask_closing", lambda: "quit")
    desktop.window.close()
    QApplication.processEvents()
    assert left == ["quit"]
    desktop.control._change(state=NodeStatus.PAUSED)
    monkeypatch.setattr(desktop.window, "ask_closing", lambda: pytest.fail("nothing learns that could go on"))
    desktop.window.close()
    QApplication.processEvents()
    assert left == ["quit", "quit"]


def test_size_and_page_are_remembered(qapp: QApplication, tmp_path: Path) -> None:
    first = Desktop(qapp, tmp_path, "light")
    first.window.go("skills")
    first._remember()
    second = Desktop(qapp, tmp_path, "light")
    assert second.window.page == "skills"
    for made in (first, second):  # its clock would outlive its window
        made.control.close()


def test_the_tray_shows_states_by_shape_and_says_why(
    qapp: QApplication, actions: Actions, asked: list[object]
) -> None:
    tray = Tray(actions, lambda: asked.append("open"), lambda: asked.append("quit"))
    assert {icon_name(state) for state in NodeStatus} == {
        "tray-learning",
        "tray-waiting",
        "tray-paused",
        "tray-problem",
    }
    tray.show_view(views.learning())
    texts = {action.text(): action for action in tray.menu.actions()}
    assert "Nothing leaves this computer" in tray._icon.toolTip()
    assert texts["Learn while I'm away"].isChecked() and not texts["Also while I use this computer"].isChecked()
    texts["Learn while I'm away"].trigger()
    texts["Also while I use this computer"].trigger()
    texts["Finish this round, then stop"].trigger()
    texts["Pause"].trigger()
    for action in tray._longer.actions():
        action.trigger()
    snoozes = [("snooze", 3600.0), ("snooze", 10800.0), ("snooze", None)]
    assert asked == [("contribute", False), ("contribute_when_idle", False), "finish", "pause", *snoozes]
    tray.show_view(views.odd()["snoozed"])
    assert "Snoozed by you until Sat 22:00." in tray._icon.toolTip()
    assert texts["Learn while I'm away"].isChecked(), "a pause ends, the wish stays"
    assert not texts["Finish this round, then stop"].isVisible() and not texts["Pause"].isVisible()
    assert texts["Resume"].isVisible()
    texts["Resume"].trigger()
    assert asked[-1] == "start"
    tray.show_view(views.odd()["in use"])
    assert (
        "Taking a break while you work." in tray._icon.toolTip() and texts["Learn while I'm away"].isChecked()
    )


def test_starting_at_login_is_off_and_starts_this_very_shoal(tmp_path: Path) -> None:
    login = AutostartSwitch(tmp_path / "home", LinuxAutostart(tmp_path))
    assert not login.on()
    login.turn(True)
    command = LinuxAutostart(tmp_path).command()
    assert login.on() and command is not None and Path(command[0]).is_file()
    assert command[1:] == ["window", "--background", "--home", str(tmp_path / "home")]
    login.turn(False)
    assert not login.on() and not list(tmp_path.iterdir())
