"""A real relay process, and clients that talk to it as the protocol says or as it should not."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp

from app.common.signing import public_key
from app.sapo.groups import GroupRecord
from app.sapo.questions import draw
from app.sapo.seeds import TRAINING_SEEDS
from app.swarm.wire.body import Body, Envelope, seal
from app.swarm.wire.frames import decode_relay_frame, to_frame
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import (
    OPENING_HEADER,
    SOCKET_PATH,
    SUBPROTOCOL,
    AskStats,
    FromClient,
    Hello,
    Ok,
    Pub,
    Stats,
    Welcome,
)
from app.swarm.wire.signin import sign_in

ROOT = Path(__file__).parents[2]
PATIENCE = 240.0


def seed(number: int) -> bytes:
    """The secret of the test's key of this number."""
    return number.to_bytes(32, "big")


def key(number: int) -> bytes:
    return public_key(seed(number))


class Relay:
    """One that is running. `first` is its first line."""

    def __init__(self, process: subprocess.Popen[str], first: dict[str, str]) -> None:
        self.process = process
        self.first = first
        self.url = first["url"]
        self.http = self.url.replace("ws://", "http://").removesuffix(SOCKET_PATH)

    def rss(self) -> int:
        """Bytes of memory; Linux only."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running(*options: str, limits_here: bool = False) -> Iterator[Relay]:
    """A relay on a free port of this computer, ended hard afterwards."""
    options = options if limits_here else ("--no-limits-here", *options)
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "relay", "--port", "0", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Relay(process, json.loads(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()


def order(*words: str) -> subprocess.CompletedProcess[str]:
    """`./shoal relay ...` to a relay that is running."""
    return subprocess.run(
        [sys.executable, "-m", "app.cli", "relay", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def group(number: int, family: str = "gcd", *, wrong: str = "#no") -> GroupRecord:
    """Two answers to one question: a right one, and a wrong one."""
    question = draw(family, 0, TRAINING_SEEDS.start + number)
    return GroupRecord(
        coordinates=question.coordinates,
        completions_G=(f"#{question.entry['answer']}", wrong),
        finished_G=(True, True),
        model="starter",
    )


def sealed(
    who: int, key_seq: int, swarm: str = "shoal", *, rewards: tuple[int, ...] = (1, 0), **changes: Any
) -> Envelope:
    """A group of key `who`, honest unless `rewards` say otherwise. `ahead_s`: how far in the future it is made;
    `wrong`, `enc`, `made` (a whole group)."""
    made = changes.pop("made", None) or group(key_seq, wrong=changes.pop("wrong", "#no"))
    now_ms = int((time.time() + changes.pop("ahead_s", 0)) * 1000)
    return seal(Body.of(made, rewards, swarm, key_seq, now_ms), seed(who), changes.pop("enc", "plain"))


class Peer:
    """One connection that has been greeted."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, hello: Hello, who: int | None) -> None:
        self.ws = ws
        self.hello = hello
        self.who = who
        self.key_seq = 0

    async def read(self) -> Any:
        """The next message that is not a push of figures."""
        return decode_relay_frame((await self.ws.receive_str(timeout=PATIENCE)).encode())

    async def say(self, message: FromClient | str | bytes) -> Any:
        if isinstance(message, bytes):
            await self.ws.send_bytes(message)
        else:
            await self.ws.send_str(message if isinstance(message, str) else to_frame(message).decode())
        return await self.read()

    async def publish(self, envelope: Envelope | None = None, **changes: Any) -> Code:
        """The code that a group gets: this one, or the next of this key."""
        if envelope is None:
            assert self.who is not None
            self.key_seq += 1
            envelope = sealed(self.who, self.key_seq, self.hello.swarm, **changes)
        answer = await self.say(Pub.of(envelope))
        assert isinstance(answer, Ok) and answer.id == envelope.id, answer
        return answer.code

    async def stats(self) -> Stats:
        answer = await self.say(AskStats())
        assert isinstance(answer, Stats), answer
        return answer

    async def ended(self) -> int | None:
        """The code with which the relay closes the connection, whatever it says before."""
        while True:
            message = await self.ws.receive(timeout=PATIENCE)
            if message.type is aiohttp.WSMsgType.CLOSE:
                return int(message.data)
            if message.type is not aiohttp.WSMsgType.TEXT:
                return self.ws.close_code


class Town:
    """Where the clients of one test live: connections from the addresses that they name."""

    def __init__(self, relay: Relay, make_socket: Callable[[Any], socket.socket] | None = None) -> None:
        self.relay = relay
        connector = aiohttp.TCPConnector(limit=0, socket_factory=make_socket)
        self._http = aiohttp.ClientSession(connector=connector)
        self._all: list[Peer] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._http.close()

    async def connect(self, address: str | None = None, headers: Mapping[str, str] | None = None) -> Peer:
        """Not signed in. Raises aiohttp.WSServerHandshakeError when turned away."""
        said = {"X-Forwarded-For": address} if address is not None else {}
        ws = await self._http.ws_connect(
            self.relay.url,
            protocols=(SUBPROTOCOL,),
            max_msg_size=1 << 20,
            headers={OPENING_HEADER: "00" * 32, **said, **(headers or {})},
        )
        hello = decode_relay_frame((await ws.receive_str(timeout=PATIENCE)).encode())
        assert isinstance(hello, Hello)
        self._all.append(Peer(ws, hello, None))  # one that nobody holds would be closed
        return self._all[-1]

    async def turned_away(self, address: str | None = None) -> int:
        """The HTTP status with which a connection is refused, 0 if it is not."""
        try:
            await self.connect(address)
        except aiohttp.WSServerHandshakeError as error:
            return error.status
        return 0

    async def peer(self, who: int, address: str | None = None) -> Peer:
        """Signed in as key `who`."""
        one, answer = await self.sign_in(who, address)
        assert isinstance(answer, Welcome), answer
        return one

    async def sign_in(self, who: int, address: str | None = None) -> tuple[Peer, Any]:
        """A connection of key `who`, and what the relay answers to its sign-in."""
        one = await self.connect(address)
        one.who = who
        return one, await one.say(sign_in(seed(who), one.hello, "test/1"))

    async def get(self, path: str) -> tuple[int, str]:
        async with self._http.get(path if "://" in path else self.relay.http + path) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def town(relay: Relay, make_socket: Callable[[Any], socket.socket] | None = None) -> AsyncIterator[Town]:
    async with Town(relay, make_socket) as one:
        yield one


async def until(question: Any, patience: float = PATIENCE) -> Any:
    """Ask (a coroutine function) until the answer is true."""
    async with asyncio.timeout(patience):
        while not (answer := await question()):
            await asyncio.sleep(0.1)
    return answer
