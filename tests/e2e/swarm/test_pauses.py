"""Computers that sleep, relays that go away, lines that are cut: a node connects again and loses nothing.

Whole process trees are stopped as a closed lid stops them (SIGSTOP), and continued. `SHOAL_NIGHT_S` sets the
length of the night (default 1800 seconds)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.proxy import Proxy
from tests.e2e.relay import Relay
from tests.e2e.shoal import Event, Running
from tests.e2e.swarm.test_swarm import LIGHT, check_nothing_lost

if sys.platform == "win32":
    pytest.skip("stops processes as POSIX does", allow_module_level=True)

NIGHT_S = float(os.environ.get("SHOAL_NIGHT_S", "1800"))
BACK_S = 60.0
"""Seconds after a pause in which a node has to be connected again."""


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    relay = Relay(tmp_path / "relay")
    yield relay
    relay.kill()


@pytest.fixture
def start(model: Path, tmp_path: Path) -> Iterator[Callable[[str], Running]]:
    nodes: list[Running] = []

    def start(url: str) -> Running:
        options = ("--relay", url, "--home", tmp_path / "node", "--model", model, *LIGHT)
        nodes.append(Running(*options, alone=False))
        return nodes[-1]

    yield start
    for node in nodes:
        if node.process.poll() is None:
            node.kill()


def tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def sleep_of(seconds: float, *pids: int) -> None:
    """Stops these processes with their children, as a closed lid does, and continues them."""
    stopped = [process for pid in pids for process in tree(pid)]
    for process in stopped:
        process.suspend()
    time.sleep(seconds)
    for process in reversed(stopped):
        process.resume()


class Watched:
    """A node and the state of its link, as its own events tell it."""

    def __init__(self, node: Running) -> None:
        self._node = node

    def links(self) -> list[Event]:
        return [event for event in self._node.events if event["event"] == "link"]

    def back(self) -> bool:
        """Whether the node is connected within BACK_S from now, and plays another round as well."""
        assert self._node.process.poll() is None, self._node.said
        rounds = sum(event["event"] == "round" for event in self._node.events)
        deadline = time.monotonic() + BACK_S
        while time.monotonic() < deadline:
            time.sleep(0.2)
            links = self.links()
            played = sum(event["event"] == "round" for event in self._node.events)
            if links and links[-1]["state"] == "connected" and played > rounds:
                return True
        return False


def leave(node: Running, relay: Relay, home: Path) -> int:
    """Ends the node once its outbox is empty and returns how many groups were made. None may be lost."""
    time.sleep(5)
    assert node.stop() == 0, node.said
    return check_nothing_lost(relay, [home])


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("who", ["node", "relay", "both"])
@pytest.mark.parametrize("seconds", [90, 240])
def test_a_node_is_connected_again_after_a_sleep(
    who: str, seconds: int, relay: Relay, start: Callable[[str], Running], tmp_path: Path
) -> None:
    node = start(relay.url)
    watched = Watched(node)
    assert watched.back()
    pids = {"node": [node.process.pid], "relay": [relay.process.pid]}.get(
        who, [node.process.pid, relay.process.pid]
    )
    sleep_of(seconds, *pids)
    assert watched.back(), (watched.links()[-3:], node.said[-500:])
    assert not any(event["event"] == "note" and "can't be used" in event["sentence"] for event in node.events)
    assert leave(node, relay, tmp_path / "node") > 0


def night(relay: Relay, proxy: Proxy, pid: int, back: Callable[[], bool]) -> list[tuple[str, float]]:
    """Six sleeps of one to five minutes (for NIGHT_S = 1800), a relay killed and started again, a line that is
    cut. Returns what happened with the seconds until `back()` was true: connected, and another round played."""
    told = []

    def comes_back(what: str) -> None:
        began = time.monotonic()
        assert back(), (what, told)
        told.append((what, round(time.monotonic() - began, 1)))

    for number, minutes in enumerate((1, 5, 2, 4, 3, 4)):
        time.sleep(NIGHT_S / 20)
        sleep_of(minutes * 60 * NIGHT_S / 1800, pid)
        comes_back(f"a sleep of {minutes * NIGHT_S / 30:.0f} s")
        if number == 2:
            relay.kill()
            time.sleep(10)
            relay.open()
            comes_back("the relay was killed and started again after 10 s")
        if number == 4:
            proxy.cut()
            time.sleep(60)
            proxy.heal()
            comes_back("the line was cut for 60 s")
    return told
