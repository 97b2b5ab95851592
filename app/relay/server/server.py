"""The relay's sockets: the websocket at /v1/ws, the info document, and whether it lives and is ready.

A connection reads a frame, answers it and reads the next, so a client that does not read is not read from. A
frame that comes whole is answered where it comes in, without waking the connection's task. Only a publish may
be answered later, when its backplane has it: so many may be open, and then reading waits. All writing of a
connection goes through one lock, and a send that takes too long ends the connection. Nothing of a frame or an
answer is held while waiting for the next: that would cost every idle connection its last batch.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Coroutine
from random import Random
from typing import Any

import msgspec
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from aiohttp.http import WS_CLOSED_MESSAGE

from app.common.rate import Buckets, Rate
from app.relay.access.connections import Door, leave
from app.relay.access.masked import Masked
from app.relay.access.origin import LOOPBACK, Origins, wider
from app.relay.access.quota import HOMES
from app.relay.access.rules import Rules
from app.relay.admin.routes import Office
from app.relay.session.session import Session
from app.relay.session.shared import Desk
from app.relay.standing.standing import Ban, Source
from app.swarm.wire import noise
from app.swarm.wire.limits import FRAME, OPEN_PUBLISHES
from app.swarm.wire.protocol import (
    INFO_PATH,
    NONCE_BYTES,
    OLD_SUBPROTOCOL,
    OPENING,
    SOCKET_PATH,
    SUBPROTOCOL,
    VERSIONS,
    Err,
    to_frame,
)
from app.swarm.wire.refusals import Code, Flaw, Refused

HEARTBEAT_S = 30.0
SEND_S = 20.0
"""A send that a client does not take in for so long ends its connection."""
STATS_EVERY_S = 10.0
CONNECTIONS_OF_AN_ADDRESS = 32
FEWEST_STRANGERS = 16
"""Connections that have not signed in, of all strangers together in the smallest relay."""
RECONNECT_WITHIN_MS = 10_000
"""After a `bye` clients come back spread over so long."""
CLOSING_S = 5.0
_BUFFERED = 60 * 1024
"""Below the 64 KB from which on asyncio makes a writer wait."""
SIGN_IN_S = 15.0
"""A connection that has said nothing of use until then is ended."""
VISIT_S = 60.0
"""One that has asked for figures only, until then."""
STRANGERS_SHARE, KNOWN_SHARE = 8, 4
"""At most an eighth of all places is for connections that have not signed in, and the last quarter for those
and for keys with standing: new keys find it full earlier."""
GREETED = Rate(60 * 200, 400)
"""New websockets of all strangers together: 200 a second."""

_log = logging.getLogger(__name__)


class _Line:
    """One connection: its conversation, its one way of writing, and its publishes without an answer yet."""

    __slots__ = ("_late", "_lock", "_seal", "_transport", "open", "pending", "session", "socket")

    def __init__(
        self,
        socket: web.WebSocketResponse,
        session: Session,
        transport: asyncio.BaseTransport | None,
        line: noise.Line | None = None,
    ) -> None:
        self._lock = asyncio.Lock()
        self._seal: noise.Cipher | None = None
        self.open: noise.Cipher | None = None
        if line is not None:
            self._seal, self.open = line
        self._transport = transport if isinstance(transport, asyncio.Transport) else None
        self.pending: set[asyncio.Task[None]] = set()
        self._late: asyncio.Task[None] | None = None
        self.socket = socket
        self.session = session

    @property
    def busy(self) -> bool:
        return self._lock.locked()

    async def send(self, frame: bytes) -> bool:
        """False when the client has gone or does not take it; then the connection is over."""
        if self.send_now(frame):
            return True
        try:
            async with self._lock, asyncio.timeout(SEND_S):
                # sealed in the order in which it goes out
                kind = WSMsgType.TEXT if self._seal is None else WSMsgType.BINARY
                await self.socket.send_frame(frame if self._seal is None else self._seal.encrypt(frame), kind)
        except ConnectionError:
            return False
        except TimeoutError:
            self.session.count("slow")
            self.abort()
            return False
        self.session.sent(len(frame))
        return True

    def send_now(self, frame: bytes) -> bool:
        """Send what goes out, or into the transport's buffer, without waiting: most does, and needs no lock and
        no timer, nor aiohttp's two writes for one long frame. False where it does not go that way."""
        transport = self._transport
        if (
            transport is None
            or self.socket.closed
            or transport.is_closing()
            or self._lock.locked()
            or transport.get_write_buffer_size() + len(frame) >= _BUFFERED
        ):
            return False
        transport.write(framed(frame) if self._seal is None else framed(self._seal.encrypt(frame), 2))
        self.session.sent(len(frame))
        return True

    def abort(self) -> None:
        """End it without a word: whoever does not read would not read the good-bye either."""
        if self._transport is not None:
            self._transport.abort()

    async def end(self, code: int, reason: str) -> None:
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(CLOSING_S):
                await self.socket.close(code=code, message=reason.encode())
                return
        self.abort()

    def take(self, text: bytes) -> bool:
        """Answer a message where it came in. False, and nothing is done, where an answer before it is still
        waiting to be sent or publishes wait for theirs: then it is to wait its turn."""
        session = self.session
        if (
            self._late is not None
            or self.busy
            or session.closing
            or self.socket.closed
            or len(self.pending) >= OPEN_PUBLISHES - 1
            or not _is_text(text)
        ):
            return False
        session.came(len(text))
        answer = session.receive(text)
        if isinstance(answer, bytes):
            unsent = None if self.send_now(answer) else answer
            if unsent is not None or session.closing:
                self._late = asyncio.get_running_loop().create_task(self._send_late(unsent))
        elif answer is not None:
            self._start(answer)
        return True

    async def _send_late(self, answer: bytes | None) -> None:
        try:
            if answer is not None and not await self.send(answer):
                await self.socket.close()
            elif self.session.closing:
                await self.end(WSCloseCode.POLICY_VIOLATION, "")
        finally:
            self._late = None

    async def sent(self) -> None:
        """When what `take` could not do at once is done."""
        if self._late is not None:
            await asyncio.wait({self._late})

    def _start(self, answer: Coroutine[Any, Any, bytes]) -> None:
        task = asyncio.create_task(self._answer(answer))
        self.pending.add(task)
        task.add_done_callback(self.pending.discard)

    async def answer_later(self, answer: Coroutine[Any, Any, bytes]) -> None:
        """Send an answer when it is there. Comes back at once, or when there is room for the next one."""
        self._start(answer)
        if len(self.pending) >= OPEN_PUBLISHES:
            await asyncio.wait(self.pending, return_when=asyncio.FIRST_COMPLETED)

    async def _answer(self, answer: Coroutine[Any, Any, bytes]) -> None:
        if not await self.send(await answer):
            await self.socket.close()


class Server:
    """The relay as an application of aiohttp, behind its `door`."""

    def __init__(self, desk: Desk, rules: Rules | None = None, rng: Random | None = None) -> None:
        rules = rules or Rules()
        self.desk = desk
        self._rng = rng or Random()
        self._origins = Origins(rules.proxies)
        self.door = Door(self._origins, desk.clock, rules.sockets)
        self._office = Office(desk, rules, self._origins, self._whereabouts)
        self._rate = Buckets(GREETED, 1)
        self._lines: set[_Line] = set()
        self._strangers: deque[tuple[float, _Line]] = deque()
        self._visitors: deque[tuple[float, _Line]] = deque()
        self._unsigned: dict[_Line, None] = {}
        self._addresses: Counter[str] = Counter()
        self._ending: set[asyncio.Task[None]] = set()
        self._leaving = False
        desk.on_ban = self._banned
        desk.crowded = lambda: len(self.door) >= self.door.most - self.door.most // KNOWN_SHARE

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get(SOCKET_PATH, self._socket),
                web.get(INFO_PATH, self._info),
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                *self._office.routes(),
            ]
        )
        application.cleanup_ctx.append(self._working)
        return application

    @property
    def connections(self) -> int:
        """Open websockets, signed in or not."""
        return len(self._lines)

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
        return web.Response(body=msgspec.json.encode(self.desk.info()), content_type="application/json")

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        if self._leaving:
            return web.Response(status=503, text="leaving\n")
        if not self.desk.backplane.ready:
            return web.Response(status=503, text="the backplane is not ready\n")
        return web.Response(text="ready\n")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        address = self._origins.of(request.remote or "", request.headers)
        refused = self._turned_away(request, address)
        if refused is not None:
            self.desk.tally.ended["refused"] += 1
            return refused
        ws, line = open_socket(), None
        answer: web.StreamResponse = web.Response(status=400)  # where the client is gone already, to nobody
        self._addresses.update(networks := _networks(address))
        try:
            session, hello, sealed = self._greet(request, address)
            if sealed is not None:
                ws = open_socket(noise.TAG)
            line = _Line(ws, session, request.transport, sealed)
            session.deliver = line.send_now
            await ws.prepare(request)
            answer = ws
            watch = _watch(request)
            self._strangers.append((self.desk.clock() + SIGN_IN_S, line))
            await ws.send_frame(hello, WSMsgType.TEXT if sealed is None else WSMsgType.BINARY)
            session.sent(len(hello))
            self._lines.add(line)
            self._meet(line)
            await _converse(line, watch)
        except Refused as error:
            with contextlib.suppress(ConnectionError):
                await ws.prepare(request)
                answer = ws
                await _refuse(ws, error)
        except ConnectionError:
            _log.debug("A client was gone before it was greeted.")
        finally:
            if line is not None:
                self._lines.discard(line)
                self._unsigned.pop(line, None)
                line.session.closed()
            leave(self._addresses, networks)
            if line is not None and line.pending:
                await asyncio.sleep(0)  # Python complains of an answer that is cancelled before it began
                for task in line.pending:
                    task.cancel()
        return answer

    def _meet(self, line: _Line) -> None:
        """A new connection, which has not signed in. Where too many have not, one of the network that has most
        of them goes: that is nobody who takes a moment to sign in."""
        if line.session.address == LOOPBACK:
            return
        self._unsigned[line] = None
        most = max(FEWEST_STRANGERS, self.door.most // STRANGERS_SHARE)
        if len(self._unsigned) <= most:
            return
        self._unsigned = {one: None for one in self._unsigned if one.session.key is None}
        if len(self._unsigned) > most:
            networks = Counter(_network(one.session.address) for one in self._unsigned)
            (worst, _), *_ = networks.most_common(1)
            going = next(one for one in self._unsigned if _network(one.session.address) == worst)
            del self._unsigned[going]
            going.session.count("crowded")
            self._end(going, "Too many connections have not signed in.")

    def _greet(self, request: web.Request, address: str) -> tuple[Session, bytes, noise.Line | None]:
        """The first frame, and of a private swarm the sealed line. Raises Refused."""
        if SUBPROTOCOL not in _offered(request):
            raise Refused(
                Flaw.OTHER_PROTOCOL, f"This relay speaks version {VERSIONS[-1]} of the protocol: update Shoal."
            )
        private = self.desk.access.private
        try:
            said = bytes.fromhex(request.headers.get(OPENING, ""))
        except ValueError:
            said = b""
        if private is None:
            if len(said) != NONCE_BYTES:
                raise Refused(
                    Flaw.NOT_INVITED,
                    "This relay serves no private swarm: join it without words, as it announces.",
                )
            session = Session(self.desk, address, said)
            return session, session.hello(), None
        if len(said) != noise.OPENING:
            raise Refused(Flaw.NOT_INVITED, "This swarm is private: join it with its six words.")
        handshake = noise.Responder(private.key, private.prologue)
        try:
            handshake.hear(said)
            bound = handshake.answer()
        except noise.NoiseError as error:
            raise Refused(
                Flaw.NOT_INVITED, "The six words are not this private swarm's: check them."
            ) from error
        session = Session(self.desk, address, bound)
        hello, line = handshake.seal(session.hello())
        return session, hello, line

    def _turned_away(self, request: web.Request, address: str) -> web.Response | None:
        if not {SUBPROTOCOL, OLD_SUBPROTOCOL} & _offered(request):
            return web.Response(status=400, text=f"Ask for the websocket subprotocol {SUBPROTOCOL}.\n")
        if request.protocol._message_tail:
            return web.Response(status=400, text="Wait for the answer before you send frames.\n")
        if self._leaving:
            return _later("The relay is being stopped.", 5)
        if not self.desk.opened:
            return _later("The relay is starting.", 2)
        if address == LOOPBACK:
            return None
        if self._addresses[address] >= CONNECTIONS_OF_AN_ADDRESS or (
            (whole := wider(address)) is not None
            and self._addresses[whole] >= HOMES * CONNECTIONS_OF_AN_ADDRESS
        ):
            return _later("There are too many connections from this address.", 30)
        now = self.desk.clock()
        if self._rate.wait("all", 1, now) > 0:
            return _later("Too many connect at once.", self._rng.randrange(5, 30))
        wait = self.desk.quotas.take("connect", None, address)
        if wait > 0:
            return _later("This address connects too often.", int(wait) + 1)
        self._rate.take("all", 1, now)
        return None

    async def _working(self, application: web.Application) -> AsyncIterator[None]:
        works = [self._push(), self._end_strangers()]
        if self.desk.checker is not None:
            works.append(self.desk.checker.run())
        tasks = [asyncio.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _end_strangers(self) -> None:
        """Whoever has neither signed in nor asked for figures in time goes."""
        while True:
            await asyncio.sleep(1.0)
            now = self.desk.clock()
            while self._strangers and self._strangers[0][0] <= now:
                line = self._strangers.popleft()[1]
                if line in self._lines and not line.session.greeted:
                    line.session.count("no-sign-in")
                    self._end(line, f"Sign in within {SIGN_IN_S:.0f} seconds.")
                elif line in self._lines and line.session.key is None:
                    self._visitors.append((now + VISIT_S - SIGN_IN_S, line))
            while self._visitors and self._visitors[0][0] <= now:
                line = self._visitors.popleft()[1]
                if line in self._lines and line.session.key is None and line.session.address != LOOPBACK:
                    line.session.count("visit")
                    self._end(line, f"A visit lasts {VISIT_S:.0f} seconds: sign in, or come again.")

    def _banned(self, source: Source, ban: Ban) -> None:
        """Connections of who has been banned are ended; who is shadowed notices nothing."""
        if not ban.shadow:
            for line in self._lines:
                if source in (line.session.key, line.session.address) and not line.session.closing:
                    line.session.closing = True
                    line.session.count("banned")
                    self._end(line, "This key or address is banned here.")

    def _end(self, line: _Line, reason: str) -> None:
        task = asyncio.get_running_loop().create_task(line.end(WSCloseCode.POLICY_VIOLATION, reason))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _whereabouts(self) -> dict[bytes, str]:
        return {line.session.key: line.session.address for line in self._lines if line.session.key is not None}

    async def _push(self) -> None:
        while True:
            await asyncio.sleep(STATS_EVERY_S)
            lines = [line for line in self._lines if line.session.subscribed and not line.busy]
            if lines:
                frame = lines[0].session.stats()
                await asyncio.gather(*(line.send(frame) for line in lines))


def open_socket(more: int = 0) -> web.WebSocketResponse:
    """A websocket as the relay has them, for frames with so many bytes `more`; messages are read from it with
    `hear`."""
    return web.WebSocketResponse(
        protocols=(SUBPROTOCOL, OLD_SUBPROTOCOL),
        compress=False,
        max_msg_size=FRAME + more + 1,  # aiohttp takes only what is smaller
        heartbeat=HEARTBEAT_S,
        decode_text=False,
    )


def _watch(request: web.Request) -> Masked | None:
    """Let only masked frames through to the websocket that was just opened."""
    reader, transport = request.protocol._payload_parser, request.transport
    if reader is None or not isinstance(transport, asyncio.Transport):
        return None
    request.protocol._payload_parser = watch = Masked(reader, transport)
    return watch


def _networks(address: str) -> list[str]:
    """The bucket, and the wider one it is in."""
    whole = wider(address)
    return [address] if whole is None else [address, whole]


def _network(address: str) -> str:
    return wider(address) or address


def _offered(request: web.Request) -> set[str]:
    return {word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",")}


async def _refuse(ws: web.WebSocketResponse, refused: Refused) -> None:
    """One sentence in the open, which is all that a stranger hears."""
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(CLOSING_S):
            await ws.send_frame(to_frame(Err(code=refused.code, msg=refused.sentence)), WSMsgType.TEXT)
            await ws.close(code=WSCloseCode.POLICY_VIOLATION)


def framed(text: bytes, opcode: int = 1) -> bytes:
    """A frame as a server sends it: whole and unmasked (RFC 6455, 5.2), of text where nothing else is said.

    >>> framed(b"hi"), framed(bytes(300))[:5]
    (b'\\x81\\x02hi', b'\\x81~\\x01,\\x00')
    """
    size = len(text)
    first = 0x80 | opcode
    if size < 126:
        return b"%c%c%b" % (first, size, text)
    if size < 1 << 16:
        return b"".join((bytes((first, 126)), size.to_bytes(2, "big"), text))
    return b"".join((bytes((first, 127)), size.to_bytes(8, "big"), text))


def _is_text(data: bytes) -> bool:
    """Whether it is UTF-8."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


async def hear(ws: web.WebSocketResponse) -> WSMessage:
    """The next message, text as bytes. Text that is not UTF-8 ends the connection, as RFC 6455 (8.1) asks."""
    message = await ws.receive()
    if message.type is WSMsgType.TEXT and not _is_text(message.data):
        await ws.close(code=WSCloseCode.INVALID_TEXT)
        return WS_CLOSED_MESSAGE
    return message


async def _converse(line: _Line, watch: Masked | None) -> None:
    """Until either side ends it. What comes whole and in the open is answered by `_Line.take`, not here."""
    ws, session = line.socket, line.session
    if watch is not None and line.open is None:
        watch.take = line.take
    while True:
        message = await hear(ws)
        await line.sent()
        if line.open is not None and message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            session.came(len(message.data))
            try:
                if message.type is WSMsgType.TEXT:
                    raise noise.NoiseError("A message in the open.")
                answer = session.receive(line.open.decrypt(message.data))
            except noise.NoiseError:
                session.count("forged")
                await ws.close(code=WSCloseCode.POLICY_VIOLATION)
                return
        elif message.type is WSMsgType.TEXT:
            session.came(len(message.data))
            answer = session.receive(message.data)
        elif message.type is WSMsgType.BINARY:
            answer = session.fault(Code.INVALID, "Messages are text frames.")
        else:
            return
        del message
        if isinstance(answer, bytes):
            if not line.send_now(answer) and not await line.send(answer):
                return
        elif answer is not None:
            await line.answer_later(answer)
        answer = None
        if session.closing:
            await ws.close(code=WSCloseCode.POLICY_VIOLATION)
            return
        if watch is not None:
            watch.done()


def _later(sentence: str, wait_s: int) -> web.Response:
    return web.Response(status=503, text=sentence + "\n", headers={"Retry-After": str(wait_s)})
