"""A relay of the node's own: real processes, real websockets, killed for real. Each test has a private swarm of
its own, so that nothing else on this network plays a part."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import psutil
import pytest

from app.node.swarm.hosting import Hosting, HostingError, kept_port, own_relays
from app.node.swarm.reporting import SwarmReporter
from app.sapo.recipes import RECIPES
from app.swarm.client.client import Client
from app.swarm.client.connection import ConnectionEnded, connect
from app.swarm.client.outbox import Outbox
from app.swarm.client.receipts import ReceiptCounter
from app.swarm.client.status import Ledger
from app.swarm.invite.discovery import lan_address
from app.swarm.invite.invite import Invite, parse
from app.swarm.invite.private import PrivateSwarm
from app.swarm.wire.protocol import Err, Hello, Welcome
from app.swarm.wire.signin import check_hello, sign_in
from tests.swarm.relays import ANN

ROOT = Path(__file__).parents[3]
PATIENCE_S = 240.0
SEED = bytes(range(32))


@pytest.fixture
def private() -> PrivateSwarm:
    return PrivateSwarm(secrets.token_bytes(32))


async def greet(invite: Invite, private: PrivateSwarm | None) -> tuple[Hello, Welcome]:
    """Signs in at a relay as a node would. Raises ConnectionEnded with what the relay says."""
    connection = await connect(invite.url, private=private)
    try:
        hello = await connection.receive()
        if isinstance(hello, Err):
            raise ConnectionEnded(hello.msg)
        assert isinstance(hello, Hello)
        check_hello(hello, connection.opening)
        await connection.send(sign_in(SEED, hello, "test/1"))
        answer = await connection.receive()
        assert isinstance(answer, Welcome)
        return hello, answer
    finally:
        await connection.close()


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not happened():
            await asyncio.sleep(0.1)


def ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_it_lets_in_who_holds_the_key_and_ends_when_it_is_closed(tmp_path: Path, private: PrivateSwarm) -> None:
    async def story() -> None:
        hosting = await Hosting.start(tmp_path, private=private, lan=False)
        pid = hosting.pid
        assert pid is not None
        try:
            hello, answer = await greet(hosting.own, private)
            assert answer.session and (hello.swarm, hello.relay) == (private.swarm, hosting.own.relay)
            with pytest.raises(ConnectionEnded, match="six words"):
                await greet(hosting.own, None)
            with pytest.raises(ConnectionEnded, match="six words"):
                await greet(hosting.own, PrivateSwarm(secrets.token_bytes(32)))
            secret = private.key.hex()
            assert secret not in " ".join(psutil.Process(pid).cmdline())
            assert secret not in hosting.invite.link() + hosting.sentence + hosting.own.__repr__()
            assert secret not in (tmp_path / "logs" / "relay.log").read_text()
            assert own_relays(tmp_path) == {hosting.own.relay}
        finally:
            await hosting.close()
        assert hosting.pid is None
        await until(lambda: ended(pid))

    asyncio.run(story())


def test_a_relay_that_is_killed_comes_back_where_and_who_it_was(tmp_path: Path, private: PrivateSwarm) -> None:
    said: list[str] = []

    async def story() -> None:
        hosting = await Hosting.start(tmp_path, private=private, lan=False, say=said.append)
        watching = asyncio.create_task(hosting.watch())
        try:
            before, first = hosting.own, hosting.pid
            for _ in range(2):
                pid = hosting.pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
                await until(lambda pid=pid: hosting.pid not in (None, pid) and len(said) and _open(hosting.own))  # type: ignore[misc]
            assert hosting.pid != first
            assert hosting.own == before
            hello, answer = await greet(before, private)
            assert isinstance(answer, Welcome) and hello.relay == before.relay
        finally:
            watching.cancel()
            await asyncio.wait({watching})
            await hosting.close()

    asyncio.run(story())
    assert len(said) == 2 and all("starts again in" in one for one in said)


@pytest.mark.long
def test_a_taken_port_is_no_reason_to_fail_and_the_new_one_is_kept(
    tmp_path: Path, private: PrivateSwarm
) -> None:
    async def story() -> None:
        folder = tmp_path / "relay" / private.swarm
        with socket.create_server(("127.0.0.1", 0)) as other:
            taken = other.getsockname()[1]
            folder.mkdir(parents=True)
            (folder / "hosted.json").write_text(json.dumps({"port": taken, "relay": "before"}))
            hosting = await Hosting.start(tmp_path, private=private, lan=False)
            await hosting.close()
        port = kept_port(folder)
        assert port not in (None, taken) and f":{port}/" in hosting.own.url
        again = await Hosting.start(tmp_path, private=private, lan=False)
        await again.close()
        assert again.own == hosting.own

    asyncio.run(story())


def test_the_link_that_the_window_shows_is_good_on_other_computers(
    tmp_path: Path, private: PrivateSwarm
) -> None:
    """The node itself reaches its relay over loopback; the link it shows leads to the network's interface."""
    if lan_address() is None:
        pytest.skip("this computer has no network besides loopback")

    async def story() -> None:
        hosting = await Hosting.start(tmp_path, private=private, lan=True)
        try:
            # as if it had not joined by a token: it shows a link, which greet completes by the six words
            reporter = SwarmReporter(tmp_path, RECIPES["default"], ReceiptCounter(tmp_path), Ledger())
            here = Client([hosting.own], ANN, Outbox(tmp_path / "ann.db"), memory=tmp_path / "ann.json")
            status = msgspec.structs.replace(
                here.status, connected=True, url=hosting.own.url, relay=hosting.own.relay
            )
            link = parse(reporter.invite(status))
            assert urlsplit(link.url).hostname == lan_address()
            hello, _ = await greet(link, private)
            assert hello.relay == hosting.own.relay
        finally:
            await hosting.close()

    asyncio.run(story())


def test_damaged_notes_count_as_none(tmp_path: Path) -> None:
    folder = tmp_path / "relay" / "shoal"
    folder.mkdir(parents=True)
    for content in (
        b"",
        b"{",
        b"\xff",
        b'{"port":0,"relay":"r"}',
        b'{"port":99999,"relay":"r"}',
        b'{"port":"x"}',
    ):
        (folder / "hosted.json").write_bytes(content)
        assert kept_port(folder) is None, content


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path, private: PrivateSwarm) -> None:
    (tmp_path / "relay").write_text("in the way")
    with pytest.raises(HostingError, match="--relay"):
        asyncio.run(Hosting.start(tmp_path, private=private, lan=False))


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is not of Windows")
def test_the_relay_does_not_outlive_a_node_that_is_killed(tmp_path: Path, private: PrivateSwarm) -> None:
    host = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom app.node.swarm.hosting import Hosting\n"
        "from app.swarm.invite.private import parse_access_key\n"
        "async def live():\n"
        "    private = parse_access_key(sys.stdin.readline().strip())\n"
        "    hosting = await Hosting.start(Path(sys.argv[1]), private=private, lan=False)\n"
        "    print(hosting.pid, flush=True)\n"
        "    await hosting.watch()\n"
        "asyncio.run(live())\n"
    )
    node = subprocess.Popen(
        [sys.executable, "-c", host, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert node.stdin is not None and node.stdout is not None
        print(private.token, file=node.stdin, flush=True)
        relay = int(node.stdout.readline())
        assert not ended(relay)
    finally:
        node.kill()
        node.communicate()
    deadline = time.monotonic() + PATIENCE_S
    while not ended(relay) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert ended(relay)


def _open(invite: Invite) -> bool:
    port = int(invite.url.rsplit(":", 1)[1].partition("/")[0])
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0
