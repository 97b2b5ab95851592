"""Somebody at a real screen: a window manager, a tray, a keyboard, a pointer, a screen reader, the window."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.bench.runs.window import prepare
from tests.ui.screen.real import ROOT, end, managed, picture, screen, wait

pytest.importorskip("jeepney")
from tests.ui.screen.screen_reader import Heard, ScreenReader
from tests.ui.screen.tray import Host, Watcher

LAUNCHER = Path("/usr/libexec/at-spi-bus-launcher")
MAX_TABS = 150


class Person:
    """`display` is the screen, `bus` the session's."""

    def __init__(self, display: str, bus: str, home: Path, size: str, scale: int) -> None:
        self.display, self.home = display, home
        self._bus, self._scale = bus, scale
        wide, high = map(int, size.split("x"))
        self._room = (wide // scale, high // scale)
        self._watcher = Watcher(bus)
        self.reader = ScreenReader(bus)
        self.found: list[str] = []
        """What was wrong at the places where one stood still."""

    @property
    def surroundings(self) -> dict[str, str]:
        """Environment variables of a program on this screen."""
        environment = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
        return environment | {
            "DISPLAY": self.display,
            "DBUS_SESSION_BUS_ADDRESS": self._bus,
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
            "QT_SCALE_FACTOR": str(self._scale),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }

    def opens(self) -> None:
        seen = len(self._watcher.items)
        self.window = subprocess.Popen(
            [sys.executable, "-m", "tests.ui.screen.walked", str(self.home)],
            cwd=ROOT,
            env=self.surroundings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        wait(lambda: len(self._watcher.items) > seen, "the icon is in the tray")
        self.tray = Host(self._bus, self._watcher.items[-1])
        wait(lambda: self.sees("visible"), "the window is there")

    def ask(self, question: str) -> Any:
        assert self.window.stdin is not None and self.window.stdout is not None
        self.window.stdin.write(question + "\n")
        self.window.stdin.flush()
        answer = self.window.stdout.readline()
        assert answer, f"the window ended with {self.window.wait(30)}"
        return json.loads(answer)

    def sees(self, what: str) -> Any:
        return self.ask("state")[what]

    def says(self, text: str) -> str:
        """A text of the window in the language that it speaks."""
        return str(self.ask(text))

    def keys(self, *names: str) -> None:
        self._do("key", "--clearmodifiers", *names)

    def types(self, text: str) -> None:
        self._do("type", text)

    def goes(self, keys: str, page: str) -> None:
        self.keys(keys)
        wait(lambda: self.sees("page") == page, f"{keys} leads to {page}")

    def clicks(self, text: str) -> None:
        """A control by its English text, where it is in sight; else the page is scrolled until it is."""
        name = self.says(text)
        for _ in range(30):
            if (at := self.ask("places").get(name)) is not None:
                self._do("mousemove", *map(str, at))
                self._do("click", "1")
                return
            self._do("click", "5")
        raise AssertionError(f"{name!r} is not in sight among {sorted(self.ask('places'))}")

    def drops(self, file: Path, page: str) -> None:
        """Drags a file out of another program's window, the way a hand does; it leads to that page."""
        dragged = subprocess.Popen(
            [sys.executable, "-m", "tests.ui.screen.dragging", str(file)],
            cwd=ROOT,
            env=self.surroundings,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert dragged.stdout is not None and dragged.stdout.readline() == "there\n"
        self._do("mousemove", "20", "20", "sleep", "0.5", "mousedown", "1", "sleep", "0.5")
        for x in (30, 150, 400, 600, 690, 700):
            self._do("mousemove", str(x), str(min(x, 400)), "sleep", "0.4")
        self._do("mouseup", "1")
        try:
            wait(lambda: self.sees("page") == page, "it is taken")
        finally:
            dragged.kill()
            dragged.wait()

    def hears(self, words: str) -> str:
        """What is said with these words in it, when it is said."""
        found: list[str] = []

        def heard() -> bool:
            found[:] = [said for said in self.reader.said(self.window.pid) if words in said]
            return bool(found)

        wait(heard, f"{words!r} is said")
        return found[0]

    def chooses(self, text: str) -> None:
        """An entry of the tray's menu."""
        self.tray.click(self.says(text))

    def stands(self, name: str) -> None:
        """Stands still and looks at everything."""
        for _ in range(6):  # what has just come is laid out with the next events
            if not (faults := self.ask("faults")):
                break
            time.sleep(0.3)
        self.found += [f"{name}: {fault}" for fault in (*faults, *self._unheard())]
        picture(self.display, f"{self.home.name}-{name}")

    def tabs(self, name: str) -> None:
        """Goes round by the Tab key until it is where it began, and a screen reader tells where it is: every
        control is on the way, and in the window when it has the focus. Links in a text take a Tab each and say
        nothing of the focus."""
        self.reader.forget()
        before = {one.ref for one in self.reader.controls(self.window.pid)}  # a card may come meanwhile
        came: list[Heard] = []
        for _ in range(MAX_TABS):
            self.keys("Tab")
            now = self.reader.focused()
            if now is not None and came and now.ref == came[0].ref:
                break
            came += [now] if now is not None and now not in came[-1:] else []
        else:
            self.found.append(f"{name}: Tab does not come back to {came[:1]}, but stops at {came[-1:]}")
        self.found += [
            f"{name}: Tab comes to {one.name!r} out of sight" for one in came if not self._in_sight(one)
        ]
        reached, groups = {one.ref for one in came}, {up for one in came if _one_of(one) for up in one.above}
        self.found += [
            f"{name}: Tab passes by {one.role} {one.name!r}"
            for one in self.reader.controls(self.window.pid)
            if one.enabled and one.ref in before - reached and not (_one_of(one) and groups & set(one.above))
        ]

    def _unheard(self) -> list[str]:
        """What a screen reader cannot say of the controls in sight, and which are not in the screen."""
        heard = self.reader.controls(self.window.pid)
        nameless = [f"the screen reader hears a {one.role} without a name" for one in heard if not one.name]
        outside = [f"{one.role} {one.name!r} is not in the screen" for one in heard if not self._within(one)]
        return [*nameless, *outside, *([] if heard else ["the screen reader hears of no control"])]

    def _within(self, one: Heard) -> bool:
        left, _, width, _ = one.box
        return left >= 0 and left + width <= self._room[0] and width > 0

    def _in_sight(self, one: Heard) -> bool:
        _, top, _, height = one.box
        return self._within(one) and top >= 0 and top + min(height, 40) <= self._room[1] and height > 0

    def _do(self, *words: str) -> None:
        environment = {**os.environ, "DISPLAY": self.display}
        subprocess.run(["xdotool", *words], env=environment, check=True, timeout=300)


@contextlib.contextmanager
def person(
    xvfb: str,
    home: Path,
    size: str,
    theme: str,
    language: str,
    scale: int = 1,
    held_back: bool = False,
    **choices: object,
) -> Iterator[Person]:
    """Whose computer has never seen Shoal. Its rules are such that other work here does not hold it back; with
    `held_back` they are a newcomer's."""
    daemon = shutil.which("dbus-daemon")
    if daemon is None or not shutil.which("openbox") or not LAUNCHER.exists():
        pytest.skip("openbox, dbus-daemon, at-spi2-core are needed (packages of these names)")
    home.mkdir()
    prepare(home)
    (home / "window-state.json").unlink()
    if held_back:
        (home / "settings.json").write_text('{"memory_limit": 0}')  # others here may take what they like
    wanted = {"theme": theme, "language": language, **({} if held_back else {"probe_every": 2}), **choices}
    (home / "window.json").write_text(json.dumps(wanted))
    started: list[subprocess.Popen[Any]] = []
    with screen(xvfb, size) as display, managed(display, home.with_name(f"{home.name}-openbox.txt")):
        bus = subprocess.Popen(
            [daemon, "--session", "--nofork", "--nopidfile", "--print-address=1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        started.append(bus)
        try:
            assert bus.stdout is not None
            address = bus.stdout.readline().strip()
            variables = {"DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": address}
            started.append(
                subprocess.Popen(
                    [LAUNCHER, "--launch-immediately"],
                    env={**os.environ, **variables},
                    stderr=subprocess.DEVNULL,
                )
            )
            made = Person(display, address, home, size, scale)
            made.opens()
            yield made
        finally:
            if "made" in locals() and hasattr(made, "window"):
                end(made.window)
            for one in started:
                one.terminate()
                one.wait()


def _one_of(one: Heard) -> bool:
    """Of several of which one is chosen, Tab reaches one and arrows the others."""
    return one.role == "radio button"
