"""Friends with six words and no address: the first one's computer hosts, others find it by multicast DNS."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from app.swarm.invite.discovery import lan_address
from app.swarm.invite.private import new_words, private_swarm_from_text
from tests.e2e.relay import counts
from tests.e2e.shoal import PATIENCE_S, Event, Running
from tests.e2e.swarm.test_swarm import LIGHT, connected, learns_from_peers

if sys.platform == "win32":
    pytest.skip("kills processes as POSIX does", allow_module_level=True)

Start = Callable[[str], Running]
GROUP = "239.255.77.77"


def multicast() -> bool:
    """Whether what this computer says to a group of computers comes back to it."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth,
    ):
        ear.settimeout(5.0)
        try:
            ear.bind(("", 0))
            own = socket.inet_aton(GROUP) + socket.inet_aton(lan_address() or "127.0.0.1")
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, own)
            mouth.sendto(b"hello", (GROUP, ear.getsockname()[1]))
            return ear.recv(16) == b"hello"
        except OSError:
            return False


@pytest.fixture
def start(model: Path, tmp_path: Path) -> Iterator[Start]:
    """`start(name)`: a node that knows the words and nothing else."""
    words, nodes = new_words(), list[Running]()

    def start(name: str) -> Running:
        where = ("--home", tmp_path / name, "--model", model)
        node = Running("--private", *where, *LIGHT, alone=False, SHOAL_PRIVATE=words)
        nodes.append(node)
        return node

    yield start
    for node in nodes:
        if node.process.poll() is None:
            node.kill()
        assert words not in node.said and private_swarm_from_text(words).token not in node.said
        assert words not in str(node.events) and private_swarm_from_text(words).token not in str(node.events)


def told(node: Running, beginning: str) -> Event:
    return node.wait_for(lambda event: event["event"] == "note" and event["sentence"].startswith(beginning))


def relay_of(node: Running) -> psutil.Process:
    (relay,) = [one for one in psutil.Process(node.process.pid).children() if "relay" in one.cmdline()]
    return relay


@pytest.mark.long
def test_six_words_are_enough_on_one_network(start: Start, tmp_path: Path) -> None:
    own = lan_address()
    if own is None or not ipaddress.ip_address(own).is_private or not multicast():
        pytest.skip("this computer has no network on which computers find each other by multicast")
    ann = start("ann")
    told(ann, "No swarm was found, so Shoal started one")
    ann.wait_for(connected)
    bob = start("bob")
    told(bob, "A swarm was found on this network")
    where = bob.wait_for(connected)
    assert where["swarm"].startswith("private-") and f"//{own}:" in where["url"]
    for node in (ann, bob):
        node.wait_for(learns_from_peers)

    relay = relay_of(ann)
    ann.kill()
    relay.wait(PATIENCE_S)  # it ends with whoever started it, however that went
    bob.wait_for(lambda event: event["event"] == "link" and event["state"] == "lost")
    for _ in range(2):  # it goes on alone, and waits for the relay that it knows
        bob.wait_for_kind("round")
    assert not [one for one in psutil.Process(bob.process.pid).children() if "relay" in one.cmdline()]

    ann = start("ann")
    told(ann, "No swarm was found, so Shoal started one")
    again = bob.wait_for(connected)
    assert (again["url"], again["relay"]) == (where["url"], where["relay"])
    for node in (ann, bob):
        node.wait_for(learns_from_peers)
    assert ann.stop() == 0

    bob.wait_for(lambda event: event["event"] == "link" and event["state"] == "lost")
    assert bob.stop() == 0
    bob = start("bob")
    told(bob, "No swarm was found, so Shoal started one")
    other = bob.wait_for(connected)
    assert other["swarm"] == where["swarm"] and other["relay"] != where["relay"]
    ann = start("ann")
    told(ann, "A swarm was found on this network")
    assert ann.wait_for(connected)["relay"] == other["relay"]
    for node in (ann, bob):
        node.wait_for(learns_from_peers)
    assert ann.stop() == 0 and bob.stop() == 0
    for name in ("ann", "bob"):
        kept = counts(tmp_path / name)
        assert kept.created == kept.accepted + kept.duplicate + kept.stale + kept.waiting > 0
