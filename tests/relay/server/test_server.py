"""A real relay process and real websocket clients, on this computer's loopback only."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.swarm.wire.body import Body, seal, unseal
from app.swarm.wire.frames import decode_envelope, decode_info, decode_relay_frame, to_frame
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import (
    OPENING_HEADER,
    SUBPROTOCOL,
    AskStats,
    Bye,
    FromClient,
    Hello,
    Pub,
    Sample,
    SampleReply,
    Welcome,
)
from app.swarm.wire.signin import is_relay_id, sign_in

ROOT = Path(__file__).parents[3]
ANN, BOB = bytes(range(32)), bytes(range(1, 33))
PATIENCE = 240.0

if sys.platform == "win32":
    pytest.skip("ends the relay by SIGTERM", allow_module_level=True)


def command(*options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "relay", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def relay() -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = command("--host", "127.0.0.1", "--port", "0")
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())["url"]
    finally:
        process.kill()
        process.communicate()


class Client:
    def __init__(self, ws: aiohttp.ClientWebSocketResponse, hello: Hello) -> None:
        self.ws = ws
        self.hello = hello

    async def read(self) -> Any:
        return decode_relay_frame((await self.ws.receive_str(timeout=PATIENCE)).encode())

    async def say(self, message: FromClient | str) -> Any:
        await self.ws.send_str(message if isinstance(message, str) else to_frame(message).decode())
        return await self.read()

    async def publish(self, seed: bytes, key_seq: int) -> str:
        group = GroupRecord(
            coordinates=Coordinates(family="gcd", level=0, seed=2**41, index=0),
            completions_G=("#1 é", "#2"),
            finished_G=(True, True),
            model="starter",
        )
        body = Body.of(group, (1, 0), self.hello.swarm, key_seq, int(time.time() * 1000))
        pub = Pub.of(seal(body, seed))
        answer = await self.say(pub)
        assert (answer.id, answer.code) == (pub.id, Code.ACCEPTED)
        return pub.id


@asynccontextmanager
async def client(http: aiohttp.ClientSession, url: str, seed: bytes | None) -> AsyncIterator[Client]:
    async with http.ws_connect(
        url, protocols=(SUBPROTOCOL,), headers={OPENING_HEADER: "00" * 32}, compress=15, max_msg_size=1 << 20
    ) as ws:
        assert ws.protocol == SUBPROTOCOL and not ws.compress
        hello = decode_relay_frame((await ws.receive_str(timeout=PATIENCE)).encode())
        assert isinstance(hello, Hello)
        one = Client(ws, hello)
        if seed is not None:
            assert isinstance(await one.say(sign_in(seed, hello, "test/1")), Welcome)
        yield one


def test_two_clients_learn_of_each_other_and_sigterm_says_bye(relay: tuple[subprocess.Popen[str], str]) -> None:
    process, url = relay

    async def story() -> None:
        async with (
            aiohttp.ClientSession() as http,
            client(http, url, ANN) as ann,
            client(http, url, BOB) as bob,
        ):
            ids = {ANN: await ann.publish(ANN, 1), BOB: await bob.publish(BOB, 2)}
            for one, other in ((ann, BOB), (bob, ANN)):
                batch = await one.say(Sample(rid=1, k=8))
                assert isinstance(batch, SampleReply) and len(batch.items) == 1
                envelope = decode_envelope(batch.items[0])
                assert envelope.id == ids[other]
                assert unseal(envelope, one.hello.swarm).completions == ("#1 é", "#2")
            assert (await ann.say(AskStats())).peers == 2
            process.send_signal(signal.SIGTERM)
            for one in (ann, bob):
                assert isinstance(await one.read(), Bye)
                ended = await one.ws.receive(timeout=PATIENCE)
                assert ended.type is aiohttp.WSMsgType.CLOSE
                assert ended.data == aiohttp.WSCloseCode.GOING_AWAY

    asyncio.run(story())
    assert process.wait(PATIENCE) == 0


def test_pages_and_a_missing_subprotocol(relay: tuple[subprocess.Popen[str], str]) -> None:
    _, url = relay
    base = url.replace("ws://", "http://").removesuffix("/v1/ws")

    async def story() -> None:
        async with aiohttp.ClientSession() as http:
            async with http.get(base + "/v1/info") as answer:
                document = decode_info(await answer.read())
                assert is_relay_id(document.relay) and "gcd" in document.families
            for page in ("/healthz", "/readyz"):
                async with http.get(base + page) as answer:
                    assert answer.status == 200
            for host in ("x:99999", "x:65536", "[::1]:99999", "x:0", "a b", "x:65535"):
                async with http.get(base + "/", headers={"Host": host}) as answer:
                    text = await answer.text()
                    assert answer.status == 200 and (host in text) == (host == "x:65535"), host
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(url)
            assert refused.value.status == 400

    asyncio.run(story())


def test_what_it_cannot_do_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for options, code, words in (
            (("--backplane", "http://127.0.0.1"), 2, "a backplane of NATS is nats://HOST"),
            (("--port", port), 1, "It cannot listen"),
            (("--host", "192.0.2.1", "--port", "0"), 1, "It cannot listen"),
            (("--port", "70000"), 2, "from 0 to 65535"),
        ):
            process = command(*options)
            out, err = process.communicate(timeout=PATIENCE)
            assert (process.returncode, out, err.count("\n")) == (code, "", 1) and words in err, err
            assert "attempting to bind" not in err, "the library's words for it"


def test_the_relay_loads_no_model_library() -> None:
    heavy = "{'torch', 'reasoning_gym', 'sympy', 'numpy'}"
    script = f"import sys, app.cli.relay, app.relay.server.server; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_relay_with_a_state_is_one_process_and_the_same_after_kill_9(tmp_path: Path) -> None:
    options = ("--port", "0", "--state", str(tmp_path / "state"))

    def first(process: subprocess.Popen[str]) -> dict[str, str]:
        assert process.stdout is not None
        line: dict[str, str] = json.loads(process.stdout.readline())
        return line

    process = command(*options)
    before = first(process)
    second = command(*options)
    _, err = second.communicate(timeout=PATIENCE)
    assert second.returncode == 1 and "in use by another relay" in err and err.count("\n") == 1
    process.kill()
    process.communicate()
    third = command(*options)
    try:
        after = first(third)
        assert after["relay"] == before["relay"] and after["url"] != before["url"]
        assert (tmp_path / "state" / "relay.key").stat().st_mode & 0o077 == 0
    finally:
        third.kill()
        third.communicate()
    other = command(*options, "--swarm", "other-swarm")
    _, err = other.communicate(timeout=PATIENCE)
    assert other.returncode == 1 and "belongs to the swarm" in err
