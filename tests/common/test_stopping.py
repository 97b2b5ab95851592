"""Which signals stop a process, and that the tests' own processes hear Ctrl-C however they were started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interrupting import interruptible

ROOT = Path(__file__).parents[2]
WAITS = """
import asyncio
from app.common.process.control import when_asked_to_stop

async def main():
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, closed.set)
    when_asked_to_stop(lambda: print("asked", flush=True))
    print("ready", flush=True)
    await closed.wait()

asyncio.run(main())
"""
STARTS = """
import signal, subprocess, sys
from contextlib import nullcontext
from tests.interrupting import interruptible

signal.signal(signal.SIGINT, signal.SIG_IGN)
with interruptible() if sys.argv[1] == "with" else nullcontext():
    shows = "import signal; print(repr(signal.getsignal(signal.SIGINT)))"
    child = subprocess.Popen([sys.executable, "-c", shows])
child.wait()
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no such signals there")


def waiting(*ignored: str) -> subprocess.Popen[str]:
    """A process that says when it is asked to stop, started by a shell that has it ignore these signals. It
    ends with its input."""
    shell = "".join(f"trap '' {name}; " for name in ignored) + 'exec "$0" -c "$1"'
    with interruptible():
        process = subprocess.Popen(
            ["sh", "-c", shell, sys.executable, WAITS],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def said(process: subprocess.Popen[str], *signals: signal.Signals) -> str:
    """What it says to these signals, each higher than the one before, which is their order of arrival."""
    for number in signals:
        process.send_signal(number)
    first = process.stdout.readline()
    process.stdin.close()
    rest = process.stdout.read()
    assert process.wait(60) == 0
    return first + rest


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_each_signal_asks_it_to_stop(number: signal.Signals) -> None:
    assert said(waiting(), number) == "asked\n"


@pytest.mark.parametrize("name", ["HUP", "INT"])
def test_what_its_starter_has_it_ignore_asks_nothing(name: str) -> None:
    assert said(waiting(name), signal.Signals[f"SIG{name}"], signal.SIGTERM) == "asked\n"
    assert said(waiting(), signal.Signals[f"SIG{name}"], signal.SIGTERM) == "asked\nasked\n"


@pytest.mark.parametrize(
    "how, heard", [("with", "default_int_handler"), ("without", "SIG_IGN")], ids=["with", "without"]
)
def test_a_child_of_tests_that_ignore_ctrl_c_hears_it(how: str, heard: str) -> None:
    done = subprocess.run([sys.executable, "-c", STARTS, how], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert heard in done.stdout
