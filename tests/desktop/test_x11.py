"""Idle time and full-screen windows on a real X server (Xvfb), with real input (xdotool)."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.desktop import Gatherer
from app.desktop.facts import SourceError
from app.desktop.x11 import Display, X11Idle, X11Screen
from app.node.record.reasons import Reason
from app.node.rules.causes import RuleSettings
from app.node.rules.orders import Moment
from app.node.rules.rules import Decision, decide

missing = [name for name in ("Xvfb", "xdotool", "openbox") if shutil.which(name) is None]
missing += [f"lib{name}" for name in ("X11", "Xss") if ctypes.util.find_library(name) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")

PATIENCE_S = 240.0


@contextmanager
def server(name: str = "") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """An X server, on the display `name` or on a free one."""
    reader, writer = os.pipe()
    command = ["Xvfb", *([name] if name else []), "-displayfd", str(writer), "-screen", "0", "640x480x24"]
    with subprocess.Popen(command, pass_fds=[writer], stderr=subprocess.DEVNULL, text=True) as process:
        os.close(writer)
        with os.fdopen(reader) as told:
            number = told.readline().strip()
        try:
            assert number, "Xvfb did not start"
            yield f":{number}", process
        finally:
            process.kill()


@contextmanager
def running(display: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program on that display, ended afterwards."""
    environment = {**os.environ, "DISPLAY": display}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def xdotool(display: str, *arguments: str) -> None:
    subprocess.run(
        ["xdotool", *arguments], env={**os.environ, "DISPLAY": display}, check=True, timeout=PATIENCE_S
    )


def until(read: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while not holds(value := read()):
        assert time.monotonic() < end, value
        time.sleep(0.05)
    return value


def activates(display: str, own: Display) -> bool:
    """Whether the window manager makes a new window the active one. While it starts it takes windows over
    without doing so."""
    with running(display, sys.executable, str(Path(__file__).with_name("window.py"))):
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            if any(own.numbers(own.root, b"_NET_ACTIVE_WINDOW") or ()):
                return True
            time.sleep(0.05)
    return False


def test_idle_time_counts_up_and_input_ends_it() -> None:
    with server() as (display, _):
        idle = X11Idle(display)
        for number, touch in enumerate((("mousemove", "100", "120"), ("key", "a"), ("click", "1"))):
            before = until(idle.read, lambda seconds: seconds > 1.0)
            xdotool(display, *touch)
            assert until(idle.read, lambda seconds, before=before: seconds < before) < before, number


def test_the_active_window_fills_the_screen_or_not() -> None:
    window = str(Path(__file__).with_name("window.py"))
    with server() as (display, _):
        screen = X11Screen(display)
        assert screen.read() is False  # not even a window manager
        with running(display, "openbox"):
            own = Display(display)
            until(lambda: activates(display, own), bool)
            with running(display, sys.executable, window, "full"):
                until(screen.read, lambda filled: filled is True)
                with running(display, sys.executable, window):
                    until(screen.read, lambda filled: filled is False)  # another window is active
            until(screen.read, lambda filled: filled is False)
            assert screen.read() is False


def test_a_server_that_dies_is_unknown_and_does_not_take_us_with_it() -> None:
    with server() as (display, process):
        idle, screen = X11Idle(display), X11Screen(display)
        assert idle.read() >= 0 and screen.read() is False
        process.kill()
        process.wait()
        for source in (idle, screen):
            with pytest.raises(SourceError, match="gone away"):
                source.read()
            with pytest.raises(SourceError, match="let us in"):
                source.read()
    with server(display):
        assert idle.read() >= 0 and screen.read() is False


def test_no_server_is_a_sentence() -> None:
    with pytest.raises(SourceError, match="let us in"):
        X11Idle(":4095").read()


def test_a_node_starts_when_nobody_is_there_and_stops_at_the_first_key() -> None:
    settings = RuleSettings(
        idle_s=2.0,
        on_battery=True,
        with_saver=True,
        during_full_screen=True,
        cpu_limit=None,
        gpu_limit=None,
        memory_limit=None,
        temperature_limit_c=None,
    )
    with server() as (display, _):
        xdotool(display, "key", "a")
        gatherer = Gatherer(chosen={"idle_s": X11Idle(display)})
        decision: Decision | None = None

        def decided() -> Decision:
            nonlocal decision
            decision = decide(Moment.now(), gatherer.gather(), settings, decision)
            return decision

        try:
            gatherer.start(PATIENCE_S)
            assert decided().reason is Reason.IN_USE
            until(decided, lambda decision: decision.run)
            pressed = time.monotonic()
            xdotool(display, "key", "a")
            until(decided, lambda decision: not decision.run)
            print(f"gave way {time.monotonic() - pressed:.1f} s after the key")
            assert decided().reason is Reason.IN_USE
            until(decided, lambda decision: decision.run)
        finally:
            gatherer.close()
