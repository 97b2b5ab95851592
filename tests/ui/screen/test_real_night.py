"""A night in a window: its whole process tree sleeps, the relay goes away, the line is cut; nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from app.bench.runs.window import prepare
from app.swarm.client.places import KnownRelays
from app.ui.view.settings import Choices
from tests.e2e.proxy import Proxy
from tests.e2e.relay import Relay
from tests.e2e.swarm.test_pauses import BACK_S, NIGHT_S, night
from tests.e2e.swarm.test_swarm import check_nothing_lost
from tests.ui.screen.real import PATIENCE_S, ROOT, end, press, rounds, screen, trainer, wait


class Window:
    """The real window, asked how it stands."""

    def __init__(self, display: str, home: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
        self._home = home
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.ui.screen.walked", str(home)],
            cwd=ROOT,
            env={**environment, "DISPLAY": display, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def state(self) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(b"state\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def back(self) -> bool:
        """Whether it shows within BACK_S that it is connected. Then waits until another round is played and
        the relay has another group, which no line that only looks alive can bring."""
        before, played = self.state()["given"], rounds(self._home)
        deadline = time.monotonic() + BACK_S
        while not self.state()["connected"]:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.3)
        wait(lambda: self.state()["given"] > before and rounds(self._home) > played, "it goes on with others")
        return True


@pytest.mark.long
@pytest.mark.timeout(NIGHT_S + 1800)
def test_a_night_in_a_window(xvfb: str, tmp_path: Path) -> None:
    """SHOAL_NIGHT_S=360 makes a short one."""
    home = tmp_path / "home"
    home.mkdir()
    prepare(home)
    settings = home / "settings.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "dial": "balanced"}))
    Choices(home).put("company", "others")
    relay = Relay(tmp_path / "relay")
    proxy = Proxy(relay.port)
    KnownRelays(home / "relays.json").remember(proxy.url, relay.relay, "shoal")
    with screen(xvfb) as display:
        window = Window(display, home)
        try:
            wait(lambda: window.state()["connected"] and rounds(home) >= 1, "it learns with others")
            for what, seconds in night(relay, proxy, window.process.pid, window.back):
                print(f"{what}: connected, another round played and given after {seconds} s")
            press(display, "ctrl+p")
            wait(lambda: trainer(window.process.pid) is None, "it pauses")
            wait(lambda: window.state()["waiting"] == 0, "the outbox is empty")
            window.process.send_signal(signal.SIGTERM)
            assert window.process.wait(PATIENCE_S) == 0
            print(
                f"{rounds(home)} rounds, {check_nothing_lost(relay, [home])} groups made and stored, none lost"
            )
        finally:
            end(window.process)
            relay.kill()
            proxy.close()
