"""The node's process, with small programs in its place; the real one is in test_real.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.ui.choices import Choices
from app.ui.control import Control
from app.ui.link import Link, problem
from app.ui.model import Problem, State

PATIENCE_MS = 60_000
START = (
    '{"event":"start","model":"m","engine":{"name":"e","device":"CPU","dtype":"f","model":"m","parameters":1,'
    '"trainable":1,"threads":1,"memory_budget_mb":1},"home":"","round":0,"recipe":"default","families":{"gcd":0}}'
)
PROBE = '{"event":"probe","round":0,"pass_at_1":0.5,"stderr":0.1,"families":{"gcd":0.5},"questions":4}'
GOOD = f"""
import sys
print('''{START}''', flush=True)
print('''{PROBE}''', flush=True)
sys.stdin.read()
print('{{"event":"end","round":0,"reason":"stopped","sentence":"Done."}}', flush=True)
"""


@pytest.fixture
def make(tmp_path: Path, qtbot: QtBot) -> Iterator[Callable[[str], Link]]:
    made: list[Link] = []

    def link(program: str) -> Link:
        file = tmp_path / f"node{len(made)}.py"
        file.write_text(textwrap.dedent(program))
        made.append(Link(tmp_path, [str(file)], sys.executable))
        return made[-1]

    yield link
    for one in made:
        one.stop_and_wait()


def test_lines_come_and_a_closed_pipe_ends_it(make: Callable[[str], Link], qtbot: QtBot) -> None:
    link = make(GOOD)
    lines: list[bytes] = []
    link.line.connect(lines.append)
    link.start([])
    qtbot.waitUntil(lambda: len(lines) == 2, timeout=PATIENCE_MS)
    with qtbot.waitSignal(link.stopped, timeout=PATIENCE_MS):
        link.stop()
    assert not link.running and lines[-1].startswith(b'{"event":"end"')


def test_a_crash_is_told_and_the_node_started_again(
    make: Callable[[str], Link], tmp_path: Path, qtbot: QtBot
) -> None:
    link = make(f"""
        import os, pathlib
        seen = pathlib.Path({str(tmp_path / "seen")!r})
        if not seen.exists():
            seen.touch()
            os.kill(os.getpid(), 9)
        {GOOD.replace(chr(10), chr(10) + "        ")}
    """)
    lines: list[bytes] = []
    link.line.connect(lines.append)
    with qtbot.waitSignal(link.again, timeout=PATIENCE_MS) as told:
        link.start([])
    assert "last safe point is kept" in told.args[0] and told.args[1] == 1.0
    qtbot.waitUntil(lambda: len(lines) == 2, timeout=PATIENCE_MS)


def test_a_refusal_after_the_start_is_final_and_has_a_remedy(make: Callable[[str], Link], qtbot: QtBot) -> None:
    link = make(f"""
        import sys
        print('''{START}''', flush=True)
        print("shoal: The disk that holds /x is full: make some room or choose another --home", file=sys.stderr)
        sys.exit(1)
    """)
    with qtbot.waitSignal(link.failed, timeout=PATIENCE_MS) as told:
        link.start([])
    found = told.args[0]
    assert isinstance(found, Problem)
    assert found.sentence == "The disk that holds /x is full."
    assert found.remedy == "Make some room or choose another --home."


def test_what_cannot_be_started_is_a_problem(tmp_path: Path, qtbot: QtBot) -> None:
    link = Link(tmp_path, [], str(tmp_path / "nothing"))
    with qtbot.waitSignal(link.failed, timeout=PATIENCE_MS) as told:
        link.start([])
    assert "setup" in told.args[0].remedy and not link.running


def test_every_problem_has_three_parts() -> None:
    for sentence in ("", "One thing", "One thing: do that", "One thing; do that."):
        found = problem(sentence)
        assert found.title and found.sentence.endswith(".") and found.remedy.endswith(".")


def test_other_options_take_the_place_of_the_node_that_runs(
    make: Callable[[str], Link], tmp_path: Path, qtbot: QtBot
) -> None:
    link = make(
        f"import sys, pathlib\npathlib.Path({str(tmp_path / 'options')!r}).write_text(' "
        f"'.join(sys.argv[1:]))\n{GOOD}"
    )
    link.start(["--solo"])
    qtbot.waitUntil(
        lambda: (tmp_path / "options").exists() and "--solo" in (tmp_path / "options").read_text(),
        timeout=PATIENCE_MS,
    )
    first = link.pid
    link.start(["--relay", "ws://r"])
    qtbot.waitUntil(
        lambda: link.running and link.pid not in (0, first) and "ws://r" in (tmp_path / "options").read_text(),
        timeout=PATIENCE_MS,
    )


@pytest.fixture
def control(make: Callable[[str], Link], tmp_path: Path) -> Iterator[Control]:
    made = Control(tmp_path, Choices(tmp_path), make(GOOD))
    yield made
    made.close()


def test_start_and_pause_through_the_control(control: Control, qtbot: QtBot) -> None:
    assert control.view.state is State.NEW
    control.start()
    qtbot.waitUntil(lambda: len(control.view.curve) == 1, timeout=PATIENCE_MS)
    assert control.view.state is State.LEARNING and control.view.solo
    control.pause()
    qtbot.waitUntil(lambda: control.view.state is State.PAUSED, timeout=PATIENCE_MS)
    assert not control._link.running
    control.start()  # and at once again, while the old one may still be going
    control.pause()
    control.start()
    qtbot.waitUntil(lambda: control.view.state is State.LEARNING, timeout=PATIENCE_MS)


def test_a_pause_with_an_end_is_kept_over_a_restart(
    make: Callable[[str], Link], tmp_path: Path, qtbot: QtBot
) -> None:
    now = [1000.0]
    first = Control(tmp_path, Choices(tmp_path), make(GOOD), clock=lambda: now[0])
    first.start()
    first.pause(until=5000.0)
    first.close()
    later = Control(tmp_path, Choices(tmp_path), make(GOOD), clock=lambda: now[0])
    later.open()
    assert later.view.state is State.PAUSED and later.view.until == 5000.0 and not later._link.running
    now[0] = 5001.0  # the computer slept over it
    later._pause_over()
    qtbot.waitUntil(lambda: later.view.state is State.LEARNING, timeout=PATIENCE_MS)
    later.close()


def test_views_come_no_more_often_than_ticks(control: Control, qtbot: QtBot) -> None:
    seen: list[float] = []
    control.changed.connect(lambda _: seen.append(time.monotonic()))
    for at in range(500):
        control._change(done=at)
    qtbot.wait(700)
    assert 1 <= len(seen) <= 3 and control.view.done == 499


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is a POSIX word")
def test_a_node_ends_when_its_window_is_killed(tmp_path: Path) -> None:
    """The wrapper that the window starts nodes with, and a command that would go on for ever."""
    code = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-m', 'app.cli._attached', 'run', '--solo', '--json', '--home', sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL); print(p.pid, flush=True); p.wait()"  # noqa: E501
    window = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert window.stdout is not None
    node = psutil.Process(int(window.stdout.readline()))
    window.send_signal(signal.SIGKILL)
    window.wait()
    _, alive = psutil.wait_procs([node], timeout=60)
    assert not alive
