"""Windows' own Python, and the app frozen with it, under Wine: what waits for the engine and ends with it, the
streams of a program without a console, the window, and its end when an installer asks.

Wine has no Python for Windows, and none can be made here. So these tests run where one is given:

SHOAL_WINDOWS_PYTHON   a folder with python.exe 3.11 for 64-bit Windows, and packaging/frozen/packages.txt in it
SHOAL_WINDOWS_APP      what PyInstaller made with it of packaging/frozen/shoal.spec, with source/ inside
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging import under_wine
from tests.packaging.under_wine import Wine, built, until

ROOT = Path(__file__).parents[2]
PYTHON, APP = (os.environ.get(f"SHOAL_WINDOWS_{name}", "") for name in ("PYTHON", "APP"))
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(under_wine.missing("xdotool")), reason=under_wine.missing("xdotool") or "-"),
]
STAND_IN = """
import os, sys
sys.path.insert(0, sys.argv[1])
from app.desktop import windows as handing_windows
if sys.argv[3] == "apart":
    handing_windows.memory.end_together = lambda *_: False
sys.exit(handing_windows.run_in_place([sys.executable, "-c", sys.argv[2]], dict(os.environ)))
"""
DRIVER = """
import ctypes, os, subprocess, sys, time
ROOT, stand_in = sys.argv[1], sys.argv[2]
sys.path.insert(0, ROOT)
from app.desktop.windows import BasicLimits, JobLimits
from app.desktop.login import WindowsAutostart
def begin(code, how="together", **more):
    words = [sys.executable, stand_in, ROOT, code, how]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(words, **pipes, **more)
def alive(pid):
    handle = ctypes.windll.kernel32.OpenProcess(0x00100000, False, pid)
    if not handle:
        return False
    try:
        return ctypes.windll.kernel32.WaitForSingleObject(handle, 0) == 258
    finally:
        ctypes.windll.kernel32.CloseHandle(handle)
def killed(how):
    child = begin("import os, time; print(os.getpid(), flush=True); time.sleep(60)", how)
    pid = int(child.stdout.readline())
    assert alive(pid)
    child.kill()
    child.wait()
    end = time.time() + 5
    while alive(pid) and time.time() < end:
        time.sleep(0.1)
    left = alive(pid)
    if left:
        os.kill(pid, 9)
    return left
echo = begin("import sys; print(sys.stdin.read().upper()); print('err', file=sys.stderr); sys.exit(7)")
out, err = echo.communicate("hällo".encode())
assert (out.decode().strip(), err.decode().strip(), echo.returncode) == ("HÄLLO", "err", 7), (out, err)
crash = begin("import os; os._exit(-1073741819)")
crash.communicate()
assert crash.returncode == 0xC0000005, crash.returncode
closed = begin("import sys; sys.stdin.read(); sys.exit(3)")
closed.stdin.close()
assert closed.wait() == 3
assert not killed("together"), "the engine outlived the program that stood in for it"
assert killed("apart"), "this test could not fail"
offsets = BasicLimits.LimitFlags.offset, JobLimits.ProcessMemoryLimit.offset
print(ctypes.sizeof(BasicLimits), ctypes.sizeof(JobLimits), *offsets)
login = WindowsAutostart()
command = [sys.executable, "window", "--background", "--home", r"C:\\\\Größe & Länge"]
assert login.command() is None
login.turn_on(command)
assert login.command() == command
login.turn_off()
login.turn_off()
assert login.command() is None
"""


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    made = Wine(tmp_path_factory.mktemp("wine"))
    system = made.prefix / "drive_c" / "windows" / "system32"
    built("icuuc.c", system / "icuuc.dll", "-shared")
    yield made
    made.close()


@pytest.mark.skipif(not PYTHON, reason="SHOAL_WINDOWS_PYTHON names no Python for Windows")
def test_the_engine_and_what_waits_for_it_are_one(wine: Wine, tmp_path: Path) -> None:
    sizes = built("limits.c", tmp_path / "limits.exe")
    (tmp_path / "stand_in.py").write_text(STAND_IN, encoding="utf-8")
    (tmp_path / "driver.py").write_text(DRIVER, encoding="utf-8")
    python = Path(PYTHON) / "python.exe"
    done = wine.run(
        python, tmp_path / "driver.py", f"Z:{ROOT}", f"Z:{tmp_path}/stand_in.py", PYTHONUTF8="1", timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == wine.run(sizes).stdout.split(), "Windows' own headers say otherwise"


@pytest.fixture
def app(wine: Wine) -> Iterator[Path]:
    if not APP:
        pytest.skip("SHOAL_WINDOWS_APP names no app for Windows")
    yield Path(APP)
    shutil.rmtree(wine.local / "Shoal", ignore_errors=True)


@pytest.mark.parametrize("name", ["shoal.exe", "shoal-cli.exe"])
def test_it_speaks_through_pipes(wine: Wine, app: Path, name: str) -> None:
    """Also the one that has no console: the window talks to its children like that."""
    done = wine.run(app / name, "--help")
    assert done.returncode == 0 and "  shoal chat " in done.stdout
    done = wine.run(app / name, "chat", "--json")
    assert done.returncode == 1 and "pack install" in done.stderr and len(done.stderr.splitlines()) == 1
    done = wine.run(app / name, "pack", "list", "--json")
    assert done.returncode == 0 and done.stdout.startswith('{"folder":')
    done = wine.run(app / name, "pack", "--Größe")
    assert done.returncode == 2 and "--Größe" in done.stderr


def test_the_window_opens_and_ends_when_it_is_asked(wine: Wine, app: Path, tmp_path: Path) -> None:
    """Set SHOAL_PICTURES to a folder to look at it."""
    opened = wine.start(app / "shoal.exe")
    until(lambda: wine._window("Shoal"), 300)
    time.sleep(10)
    if shown := os.environ.get("SHOAL_PICTURES"):
        wine.picture(Path(shown) / "window.png")
    assert wine.run(app / "shoal.exe", timeout=300).returncode == 0, (
        "a second start raises the first one's window"
    )
    assert opened.poll() is None
    assert wine.run(app / "shoal-cli.exe", "window", "--quit", timeout=300).returncode == 0
    assert opened.wait(60) == 0
    log = (wine.local / "Shoal" / "logs" / "window.log").read_text(encoding="utf-8")
    assert "window opened" in log and "Traceback" not in log


def test_what_a_page_writes_into_its_link_is_no_option(wine: Wine, app: Path) -> None:
    """Windows puts a link into the command line as it is, quotes and all."""
    done = wine.run(app / "shoal-cli.exe", "window", "--", "shoal://x", "--join", "shoal://evil")
    assert done.returncode == 2 and "--join" in done.stderr


def test_a_failure_that_nobody_would_read_is_shown(wine: Wine, app: Path) -> None:
    """Started as from the desktop, without pipes."""
    pointer = wine.local / "Shoal" / "data-folder.json"
    pointer.parent.mkdir(exist_ok=True)
    pointer.write_text('{"home": "C:\\\\gone"}')
    command = ["wine", "cmd", "/c", "start", "", f"Z:{app}/shoal.exe".replace("/", "\\")]
    subprocess.run(command, env=wine.environment(), stdin=subprocess.DEVNULL, timeout=120)
    until(lambda: wine._window("Shoal"), 300)
    if shown := os.environ.get("SHOAL_PICTURES"):
        time.sleep(2)
        wine.picture(Path(shown) / "failure.png")
    wine.press("Shoal", "Return")
    wine.settle()
