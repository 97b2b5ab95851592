"""The relay's sockets: the websocket at /v1/ws, the info document, and whether it lives and is ready.

A connection reads a frame, answers it and reads the next, so a client that does not read is not read from. Only
a publish may be answered later, when its backplane has it: so many may be open, and then reading waits. All
writing of a connection goes through one lock, and a send that takes too long ends the connection. Nothing of a
frame or an answer is held while waiting for the next: that would cost every idle connection its last batch.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from random import Random
from typing import Any

import msgspec
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from aiohttp.http import WS_CLOSED_MESSAGE

from app.relay.desk import LOOPBACK, Desk
from app.relay.session import Session
from app.swarm.limits import FRAME, OPEN_PUBLISHES
from app.swarm.protocol import INFO_PATH, SOCKET_PATH, SUBPROTOCOL
from app.swarm.refusals import Code

HEARTBEAT_S = 30.0
SEND_S = 20.0
"""A send that a client does not take in for so long ends its connection."""
STATS_EVERY_S = 10.0
CONNECTIONS_OF_AN_ADDRESS = 32
RECONNECT_WITHIN_MS = 10_000
"""After a `bye` clients come back spread over so long."""
CLOSING_S = 5.0
STARTING_S = 3.0
"""A relay whose backplane takes longer to start shows its URL meanwhile; nobody is let in yet."""

_log = logging.getLogger(__name__)


class _Line:
    """One connection: its conversation, its one way of writing, and its publishes without an answer yet."""

    __slots__ = ("_lock", "pending", "session", "socket")

    def __init__(self, socket: web.WebSocketResponse, session: Session) -> None:
        self._lock = asyncio.Lock()
        self.pending: set[asyncio.Task[None]] = set()
        self.socket = socket
        self.session = session

    @property
    def busy(self) -> bool:
        return self._lock.locked()

    async def send(self, frame: bytes) -> bool:
        """False when the client has gone or does not take it."""
        try:
            async with self._lock, asyncio.timeout(SEND_S):
                await self.socket.send_frame(frame, WSMsgType.TEXT)
        except (ConnectionError, TimeoutError):
            return False
        return True

    async def answer_later(self, answer: Coroutine[Any, Any, bytes]) -> None:
        """Send an answer when it is there. Comes back at once, or when there is room for the next one."""
        task = asyncio.create_task(self._answer(answer))
        self.pending.add(task)
        task.add_done_callback(self.pending.discard)
        if len(self.pending) >= OPEN_PUBLISHES:
            await asyncio.wait(self.pending, return_when=asyncio.FIRST_COMPLETED)

    async def _answer(self, answer: Coroutine[Any, Any, bytes]) -> None:
        if not await self.send(await answer):
            await self.socket.close()


class Server:
    """The relay as an application of aiohttp."""

    def __init__(self, desk: Desk, rng: Random | None = None) -> None:
        self._desk = desk
        self._rng = rng or Random()
        self._lines: set[_Line] = set()
        self._addresses: Counter[str] = Counter()
        self._leaving = False

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get(SOCKET_PATH, self._socket),
                web.get(INFO_PATH, self._info),
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
            ]
        )
        application.cleanup_ctx.append(self._pushing)
        return application

    async def leave(self) -> None:
        """Say `bye` to everybody and close; nobody new is let in."""
        self._leaving = True
        await asyncio.gather(*(self._say_bye(line) for line in tuple(self._lines)))

    async def _say_bye(self, line: _Line) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                if line.pending:
                    await asyncio.wait(line.pending)
                wait = self._rng.randrange(RECONNECT_WITHIN_MS)
                await line.send(line.session.bye("The relay is being stopped.", wait))
                await line.socket.close(code=WSCloseCode.GOING_AWAY)

    async def _info(self, request: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(self._desk.info()), content_type="application/json")

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        if self._leaving:
            return web.Response(status=503, text="leaving\n")
        if not self._desk.backplane.ready:
            return web.Response(status=503, text="the backplane is not ready\n")
        return web.Response(text="ready\n")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        address = bucket(request.remote or "")
        refused = self._turned_away(request, address)
        if refused is not None:
            return refused
        ws = open_socket()
        self._addresses[address] += 1
        session = Session(self._desk, address)
        line = _Line(ws, session)
        try:
            await ws.prepare(request)
            self._lines.add(line)
            if await line.send(session.hello()):
                await _converse(line)
        except ConnectionError:
            _log.debug("A client was gone before it was greeted.")
        finally:
            self._lines.discard(line)
            for task in line.pending:
                task.cancel()
            session.closed()
            self._addresses[address] -= 1
            if not self._addresses[address]:
                del self._addresses[address]
        return ws

    def _turned_away(self, request: web.Request, address: str) -> web.Response | None:
        offered = request.headers.get("Sec-WebSocket-Protocol", "")
        if SUBPROTOCOL not in (word.strip() for word in offered.split(",")):
            return web.Response(status=400, text=f"Ask for the websocket subprotocol {SUBPROTOCOL}.\n")
        if self._leaving:
            return _later("The relay is being stopped.", 5)
        if not self._desk.opened:
            return _later("The relay is starting.", 2)
        if address == LOOPBACK:
            return None
        if self._addresses[address] >= CONNECTIONS_OF_AN_ADDRESS:
            return _later("There are too many connections from this address.", 30)
        wait = self._desk.quotas.take("connect", None, address)
        return _later("This address connects too often.", int(wait) + 1) if wait > 0 else None

    async def _pushing(self, application: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(self._push())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _push(self) -> None:
        while True:
            await asyncio.sleep(STATS_EVERY_S)
            lines = [line for line in self._lines if line.session.subscribed and not line.busy]
            if lines:
                frame = lines[0].session.stats()
                await asyncio.gather(*(line.send(frame) for line in lines))


def open_socket() -> web.WebSocketResponse:
    """A websocket as the relay has them; messages are read from it with `hear`."""
    return web.WebSocketResponse(
        protocols=(SUBPROTOCOL,),
        compress=False,
        max_msg_size=FRAME + 1,  # aiohttp takes only what is smaller
        heartbeat=HEARTBEAT_S,
        decode_text=False,
    )


async def hear(ws: web.WebSocketResponse) -> WSMessage:
    """The next message, text as bytes. Text that is not UTF-8 ends the connection, as RFC 6455 (8.1) asks."""
    message = await ws.receive()
    if message.type is WSMsgType.TEXT and not message.data.isascii():
        try:
            message.data.decode()
        except UnicodeDecodeError:
            await ws.close(code=WSCloseCode.INVALID_TEXT)
            return WS_CLOSED_MESSAGE
    return message


async def _converse(line: _Line) -> None:
    """Until either side ends it."""
    ws, session = line.socket, line.session
    while True:
        message = await hear(ws)
        if message.type is WSMsgType.TEXT:
            answer = session.receive(message.data)
        elif message.type is WSMsgType.BINARY:
            answer = session.fault(Code.INVALID, "Messages are text frames.")
        else:
            return
        del message
        if isinstance(answer, Coroutine):
            await line.answer_later(answer)
        elif answer is not None and not await line.send(answer):
            return
        answer = None
        if session.closing:
            await ws.close(code=WSCloseCode.POLICY_VIOLATION)
            return


def bucket(remote: str) -> str:
    """The address that quotas count by: a network, as one household or attacker has many of them.

    >>> bucket("192.0.2.77"), bucket("2001:db8:1:2ff::1"), bucket("::1"), bucket("::ffff:192.0.2.7")
    ('192.0.2.0/24', '2001:db8:1:200::/56', 'loopback', '192.0.2.0/24')
    """
    try:
        address = ipaddress.ip_address(remote.partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_loopback:
        return LOOPBACK
    return str(ipaddress.ip_network((address, 24 if address.version == 4 else 56), strict=False))


def _later(sentence: str, wait_s: int) -> web.Response:
    return web.Response(status=503, text=sentence + "\n", headers={"Retry-After": str(wait_s)})


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError where the address is not of this computer or is taken."""
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(where[:2], family=family, backlog=4096)


async def serve(
    host: str, port: int, open_desk: Callable[[str], Desk], opened: Callable[[str, Desk], None]
) -> None:
    """Serve until SIGTERM or SIGINT. `open_desk` gets HOST:PORT as it was bound, `opened` the URL; where the
    backplane takes long to start that is before anybody is let in. Raises OSError where the address cannot be
    had, and BackplaneError."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(ending, stop.set)
        except NotImplementedError:  # Windows
            signal.signal(ending, lambda *_: loop.call_soon_threadsafe(stop.set))
    listener = bind(host, port)
    name, number = listener.getsockname()[:2]
    shown = f"[{name}]:{number}" if ":" in name else f"{name}:{number}"
    desk = open_desk(f"{name}:{number}".lstrip(":"))
    server = Server(desk)
    runner = web.AppRunner(server.application(), access_log=None, handle_signals=False)
    await runner.setup()
    ended = asyncio.create_task(stop.wait())
    starting = asyncio.create_task(desk.open())
    try:
        await web.SockSite(runner, listener, backlog=4096).start()
        await _first(starting, ended, timeout=STARTING_S)
        opened(f"ws://{shown}{SOCKET_PATH}", desk)
        await _first(starting, ended)
        await ended
        await server.leave()
    finally:
        starting.cancel()
        await runner.cleanup()
        await desk.backplane.close()


async def _first(starting: asyncio.Task[None], ended: asyncio.Task[Any], timeout: float | None = None) -> None:
    """Until the relay has started or is to end. Raises what the starting raised."""
    done, _ = await asyncio.wait({starting, ended}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    if starting in done:
        starting.result()
