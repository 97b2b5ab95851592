"""Real relays and real networks for the tests of this room: a relay process that can be killed and started
again at the same address, a wire that can be cut, slowed or left hanging, an HTTP proxy, a relay that lies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from aiohttp import web

from app.common.signing import public_key
from app.sapo.groups import GroupRecord
from app.sapo.questions import Question, draw
from app.swarm.client.client import Client
from app.swarm.client.outbox import Outbox
from app.swarm.client.status import ConnectionStatus
from app.swarm.identity.identity import Identity
from app.swarm.invite.invite import Invite
from app.swarm.wire.body import Body, Envelope, seal
from app.swarm.wire.frames import from_client, to_frame
from app.swarm.wire.limits import Quotas, RelayLimits
from app.swarm.wire.protocol import OPENING_HEADER, SOCKET_PATH, SUBPROTOCOL, Hello, Welcome
from app.swarm.wire.signin import relay_id, signed_hello

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240.0
ANN, BOB = Identity(bytes(range(32))), Identity(bytes(range(1, 33)))


class Relay:
    """`./shoal relay` in a process of its own. `start` again after `kill` takes the same port."""

    def __init__(self, *options: str) -> None:
        self._options = options
        self._port = "0"
        self.url = ""

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "app.cli",
                "relay",
                "--no-limits-here",
                "--port",
                self._port,
                *self._options,
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        opened = json.loads(self.process.stdout.readline())
        self.url, self.relay = opened["url"], opened["relay"]
        self._port = self.url.rpartition(":")[2].partition("/")[0]

    @property
    def port(self) -> int:
        return int(self._port)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Wire:
    """A TCP proxy with a mood: `through`, `hanging` (nothing arrives any more and nobody is told) or `cut`.
    `bytes_per_s`: what it carries each way; it then takes no more from either end than it passes on."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.through = asyncio.Event()
        self.through.set()
        self.cut = False
        self.delay_s = 0.0
        self.bytes_per_s: float | None = None
        self.met = 0
        self.sent = self.received = 0
        """Bytes that came from the node, and from the relay."""
        self._writers: set[asyncio.StreamWriter] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        if self.cut:
            writer.transport.abort()
            return
        with contextlib.suppress(OSError):
            far = socket.socket()
            if self.bytes_per_s is not None:
                far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await asyncio.to_thread(far.connect, ("127.0.0.1", self._target))
            far_reader, far_writer = await asyncio.open_connection(sock=far, limit=4096)
            self._writers |= {writer, far_writer}
            await asyncio.gather(self._pass(reader, far_writer, True), self._pass(far_reader, writer))

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, outgoing: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536 if self.bytes_per_s is None else 1024):
                self.sent += len(data) * outgoing
                self.received += len(data) * (not outgoing)
                await asyncio.sleep(self.delay_s if self.bytes_per_s is None else len(data) / self.bytes_per_s)
                await self.through.wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    def break_off(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}{SOCKET_PATH}"
        finally:
            server.close()
            self.through.set()
            self.break_off()


class Tunnels:
    """An HTTP proxy that knows CONNECT and nothing else."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self.refuse = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head.splitlines()[0])
            self.agents |= {line for line in head.splitlines() if line.lower().startswith("user-agent")}
            method, place, _ = self.asked[-1].split(" ", 2)
            if self.refuse or method != "CONNECT":
                writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                writer.close()
                return
            far_reader, far_writer = await asyncio.open_connection(*place.rsplit(":", 1))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            wire = Wire(0)
            await asyncio.gather(wire._pass(reader, far_writer), wire._pass(far_reader, writer))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()


Story = Callable[["Visitor"], Awaitable[None]]


class Visitor:
    """A client as the lying relay sees it."""

    def __init__(self, ws: web.WebSocketResponse, opening: bytes = b"") -> None:
        self.ws = ws
        self.opening = opening

    async def say(self, message: Any) -> None:
        """A hello that is not signed yet is signed for this connection."""
        if isinstance(message, Hello) and not message.sig:
            message = signed_hello(SEEDS[message.relay], message, self.opening)
        frame = message if isinstance(message, bytes) else to_frame(message)
        await self.ws.send_str(frame.decode("utf-8", "surrogateescape"))

    async def hear(self) -> Any:
        return from_client((await self.ws.receive_str(timeout=PATIENCE_S)).encode())

    async def welcome(self, quotas: Quotas | None = None, **hello: Any) -> None:
        await self.say(greeting(**hello))
        await self.hear()
        await self.say(Welcome(session="s", quotas=quotas or Quotas(), time_ms=greeting(**hello).time_ms))


LIAR, IMPOSTOR = bytes(32), b"i" * 32
SEEDS = {relay_id(public_key(seed)): seed for seed in (LIAR, IMPOSTOR)}


def greeting(seed: bytes = LIAR, **changes: Any) -> Hello:
    key = public_key(seed)
    fields: dict[str, Any] = dict(
        proto=("1.1",), relay=relay_id(key), key=key.hex(), sig="", swarm="shoal", epoch="e", time_ms=NOW_MS,
        challenge="0f" * 32, limits=RelayLimits(),
    )  # fmt: skip
    return Hello(**(fields | changes))


NOW_MS = 1_800_000_000_000


@asynccontextmanager
async def lying_relay(story: Story, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A websocket server that does what `story` says with every client, then hangs up."""

    async def serve(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse(protocols=(SUBPROTOCOL,), compress=False)
        await ws.prepare(request)
        with contextlib.suppress(ConnectionError, TypeError, TimeoutError):  # TypeError: the client hung up
            await story(Visitor(ws, bytes.fromhex(request.headers[OPENING_HEADER])))
        await ws.close()
        return ws

    application = web.Application()
    application.add_routes([web.get(SOCKET_PATH, serve)])
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'wss' if tls else 'ws'}://{'localhost' if tls else '127.0.0.1'}:{port}{SOCKET_PATH}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def running(
    folder: Path, urls: list[str | Invite], me: Identity = ANN, **options: Any
) -> AsyncIterator[tuple[Client, list[ConnectionStatus]]]:
    """A client at work in a home of its own, and what it tells."""
    links: list[ConnectionStatus] = []
    name = me.name
    folder.mkdir(parents=True, exist_ok=True)
    outbox = Outbox(folder / f"{name}.db")
    client = Client(urls, me, outbox, memory=folder / f"{name}.json", tell=links.append, **options)
    task = asyncio.create_task(client.run())
    try:
        yield client, links
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        outbox.close()


async def until(true: Callable[[], object], what: str = "") -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"It never came true: {what}") from None


@cache
def _right(number: int) -> Question:
    return draw("gcd", 0, 2**41 + number)


def group(number: int = 0, text: str = "so it is") -> GroupRecord:
    """A group whose first answer is right and whose second is not: relays may score it."""
    question = _right(number)
    return GroupRecord(
        coordinates=question.coordinates,
        completions_G=(f"{text} {number} é #{question.entry['answer']}", "#no"),
        finished_G=(True, True),
        model="starter",
    )


def sealed(me: Identity, number: int, created_ms: int, swarm: str = "shoal") -> Envelope:
    return seal(Body.of(group(number), (1, 0), swarm, number + 1, created_ms), me.seed())
