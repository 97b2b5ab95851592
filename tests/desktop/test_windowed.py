"""What the app does differently where it is a program of Windows: streams that are not there, a process that
waits for another instead of becoming it, and what starts at login. Windows' own calls are faked here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.common import home
from app.common.process import memory
from app.desktop.login import RUN_KEY, WindowsAutostart
from app.desktop.windows import (
    is_pipe_of_this_user,
    leave_bundle,
    without_bundle,
)
from app.install.updates import installed
from app.ui.shell.login import AutostartSwitch
from tests.desktop.test_autostart import Registry

ROOT = Path(__file__).parents[2]


class Pipes:
    """Windows' kernel, which knows who is at the ends of one pipe: the client's number and the server's."""

    def __init__(self, client: int, server: int) -> None:
        self.GetNamedPipeClientProcessId = self._tells(client)
        self.GetNamedPipeServerProcessId = self._tells(server)

    def _tells(self, process: int) -> Any:
        def tell(pipe: Any, number: Any) -> int:
            number._obj.value = process
            return int(pipe.value == 7)

        return tell


def test_a_pipe_is_this_users_if_the_process_at_its_end_is() -> None:
    gone = 2**31 - 1
    assert is_pipe_of_this_user(7, True, Pipes(gone, os.getpid()))
    assert is_pipe_of_this_user(7, False, Pipes(os.getpid(), gone))
    assert not is_pipe_of_this_user(7, True, Pipes(os.getpid(), gone)), "a process that can't be looked at"
    assert not is_pipe_of_this_user(8, True, Pipes(os.getpid(), os.getpid())), "a handle that is none"


NOBODY = """
import os, sys
for number in (0, 1, 2):
    os.close(number)
sys.stdin = sys.stdout = sys.stderr = None
from app.desktop import windows as windowed
windowed.show_message = lambda text: os.write(int(sys.argv[1]), text.encode())
def run():
    print("nobody reads this")
    assert sys.stdin.read() == "" and not sys.stderr.isatty() and os.fstat(1)
    print("shoal: That is so", "because it is.", file=sys.stderr)
    EVENT
windowed.run_without_console(run)
"""
KERNEL = """
import os, sys
from app.desktop.windows import run_in_place
class Kernel: pass
calls = "CreateJobObjectW GetCurrentProcess SetInformationJobObject AssignProcessToJobObject GetConsoleCP"
for name in calls.split():
    setattr(Kernel, name, staticmethod(lambda *words: 1))
code = "import sys; print(sys.stdin.read().upper()); sys.exit(7)"
sys.exit(run_in_place([sys.executable, "-c", code], {**os.environ, "PYTHONUTF8": "1"}, Kernel))
"""


def nobody(event: str) -> tuple[int, str]:
    """Its exit code, and what a window would have shown."""
    reader, writer = os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", NOBODY.replace("EVENT", event), str(writer)],
        pass_fds=(writer,),
        cwd=ROOT,
        timeout=60,
    )
    os.close(writer)
    with open(reader, encoding="utf-8") as shown:
        return done.returncode, shown.read()


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe is handed down by its number")
@pytest.mark.parametrize(
    ("event", "code", "shown"),
    [
        ("sys.exit(1)", 1, "shoal: That is so because it is."),
        ("sys.exit('shoal: Another thing.')", 1, "shoal: Another thing."),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("sys.exit(0)", 0, ""),
        ("pass", 0, ""),
    ],
)
def test_a_program_without_streams_works_and_shows_why_it_failed(event: str, code: int, shown: str) -> None:
    found = nobody(event)
    assert found[0] == code
    assert shown in found[1] if shown else found[1] == ""


def test_it_stands_in_for_another_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KERNEL],
        input="hällo",
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "HÄLLO\n", "")


def test_where_windows_refuses_a_job_it_goes_on() -> None:
    class Refuses:
        CreateJobObjectW = staticmethod(lambda *_: 0)

        @staticmethod
        def GetCurrentProcess() -> int:
            return -1

    assert memory.end_together(Refuses) is False


def test_the_engine_does_not_look_into_the_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernel:
        asked: object = "nothing"

        def SetDllDirectoryW(self, folder: object) -> None:
            self.asked = folder

    bundle, kernel = r"C:\Users\Zoë\Shoal\_internal", Kernel()
    path = rf"{bundle}\PySide6;C:\Windows;{bundle.upper()};C:\Users\Zoë\Shoal\_internal2;"
    assert without_bundle(path, bundle) == r"C:\Windows;C:\Users\Zoë\Shoal\_internal2"
    monkeypatch.setenv("PATH", path)
    leave_bundle(bundle, kernel)
    assert kernel.asked is None and bundle not in os.environ["PATH"].split(";")


@pytest.mark.parametrize("name", ["shoal.exe", "shoal-cli.exe"])
def test_what_starts_at_login_is_the_installed_window(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when somebody turned it on from a terminal; and not a console that flashes at every login."""
    monkeypatch.setattr(installed, "form", lambda *_: "nsis")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "Mein Shoal" / name))
    monkeypatch.setenv("SHOAL_HOME", "")
    registry = Registry()
    AutostartSwitch(home.default_home(), WindowsAutostart(registry)).turn(True)
    assert registry.values == {
        (RUN_KEY, "Shoal"): f'"{tmp_path / "Mein Shoal" / "shoal.exe"}" window --background'
    }
