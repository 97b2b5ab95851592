"""A stranger on the wire who knows every answer: real relay, node and engine, and what is learned of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.lab.attackers import MARKER, Attacker
from app.swarm.client.client import Client
from app.swarm.client.outbox import Outbox
from app.swarm.identity.identity import Identity
from engines.contract import TokenSequence
from tests.e2e.relay import Relay
from tests.e2e.shoal import Event, Running, rows

pytestmark = pytest.mark.long

if sys.platform == "win32":
    pytest.skip("kills processes as POSIX does", allow_module_level=True)


class Stranger:
    """Publishes an attacker's groups to a relay, twelve and then more, from a thread of its own."""

    def __init__(self, kind: str, url: str, folder: Path) -> None:
        folder.mkdir()
        self._attacker = Attacker(
            kind, b"stranger", {"chain_sum": 1, "gcd": 1}, group=8, longest=64, encode=_no_tokens
        )
        self._url, self._folder = url, folder
        self._end = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()))
        self._thread.start()

    def leave(self) -> None:
        self._end.set()
        self._thread.join()

    async def _live(self) -> None:
        with contextlib.closing(Outbox(self._folder / "outbox.sqlite")) as outbox:
            memory = self._folder / "relays.json"
            client = Client([self._url], Identity(bytes([7]) * 32), outbox, memory=memory)
            running = asyncio.create_task(client.run())
            number = 0
            while not self._end.is_set():
                if client.groups_to_publish() >= 6 and client.status.connected:
                    number += 1
                    for one in self._attacker.publish(number, 6, []):
                        client.publish(one.group, one.claimed_G)
                await asyncio.sleep(0.2)
            running.cancel()
            await asyncio.wait({running})


def _no_tokens(question: str, text: str) -> TokenSequence:
    return TokenSequence(prompt_T=[], completion_T=list(range(len(text) + 1)))


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    relay = Relay(tmp_path / "relay")
    yield relay
    relay.kill()


@pytest.mark.parametrize(("kind", "learned"), [("poison", False), ("liar", None), ("honest", True)])
def test_what_a_node_learns_of_a_stranger(
    relay: Relay, model: Path, tmp_path: Path, kind: str, learned: bool | None
) -> None:
    """Right answers that carry something else are taken, read and left; good work of the same hand is learned
    from; lies do not even come that far."""
    stranger = Stranger(kind, relay.url, tmp_path / "stranger")
    home = tmp_path / "node"
    options = ("--local", "8", "--external", "4", "--families", "chain_sum,gcd", "--probe-every", "500")
    node = Running("--relay", relay.url, "--home", home, *options, "--rest", "1", "--model", model, alone=False)
    found: list[Event] = []

    def enough(event: Event) -> bool:
        if event["event"] == "round":
            found.append(event)
        if learned is None:
            return len(found) == 6
        return len([one for one in found if one["peer_groups"]]) == 4

    try:
        node.wait_for(enough)
    finally:
        node.kill()
        stranger.leave()
    groups = sum(one["peer_groups"] for one in found)
    weighty = sum(one["informative_peer"] for one in found)
    if learned is None:
        assert groups == 0
        return
    texts = [
        text
        for (answers,) in rows(home, "SELECT completions FROM groups WHERE source = 'peer'")
        for text in json.loads(answers)
    ]
    assert groups >= 4 and any(text.startswith(MARKER) for text in texts) == (kind == "poison")
    if learned:
        assert weighty >= 0.75 * groups
    else:
        assert weighty == 0 and sum(one["gated_right"] for one in found) == 4 * groups
