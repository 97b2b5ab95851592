"""One client's websocket, from the handshake to the close frame.

A connection answers a frame before it reads the next, so a client that does not read its answers is no longer
read from. A frame that arrives in one piece is answered directly from the transport's callback, without waking
the connection's task. Only a publish may be answered later, once the store has it: OPEN_PUBLISHES
may wait, then reading pauses. A lock serialises the writes of a connection, and a send that takes too long ends
it. No frame or answer is referenced while waiting for the next: each idle connection would otherwise keep its
last batch in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from aiohttp.http import WS_CLOSED_MESSAGE

from app.relay.server.masked import FrameGuard
from app.relay.session.session import Session
from app.swarm.wire import noise
from app.swarm.wire.frames import to_frame
from app.swarm.wire.limits import FRAME_BYTES, OPEN_PUBLISHES, Code, Refused
from app.swarm.wire.protocol import OLD_SUBPROTOCOL, SUBPROTOCOL, Err

_TURN = 32
"""Frames of one connection that are read in a row before other tasks may run."""
HEARTBEAT_S = 30.0  # routers forget a silent connection after a minute or more
SEND_S = 20.0
"""Seconds after which a send that the client does not read ends the connection."""
CLOSING_S = 5.0  # a client that does not answer a close is cut off
_BUFFERED = 60 * 1024
"""Bytes in the transport's buffer above which `send_now` declines; asyncio pauses writers from 64 KB on."""


class RelayConnection:
    """One connection: its session, its serialised writes, and its publishes that are not answered yet."""

    __slots__ = ("_late", "_lock", "_seal", "_transport", "open", "pending", "session", "socket")

    def __init__(
        self,
        socket: web.WebSocketResponse,
        session: Session,
        transport: asyncio.BaseTransport | None,
        line: noise.CipherPair | None = None,
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
        """Sends a frame. Returns False if the client has gone or does not read; the connection is then over."""
        if self.send_now(frame):
            return True
        try:
            async with self._lock, asyncio.timeout(SEND_S):
                # encrypted in the order in which it is sent
                kind = WSMsgType.TEXT if self._seal is None else WSMsgType.BINARY
                await self.socket.send_frame(frame if self._seal is None else self._seal.encrypt(frame), kind)
        except ConnectionError:
            return False
        except TimeoutError:
            self.session.count_ended("slow")
            self.abort()
            return False
        self.session.count_sent(len(frame))
        return True

    def send_now(self, frame: bytes) -> bool:
        """Sends a frame without waiting, directly or into the transport's buffer, without lock, timer or
        aiohttp's second write for a long frame. Returns False if that is not possible now."""
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
        self.session.count_sent(len(frame))
        return True

    def abort(self) -> None:
        """Ends the connection at once, without the close frame that a client which does not read would not
        see."""
        if self._transport is not None:
            self._transport.abort()

    async def end(self, code: int, reason: str) -> None:
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(CLOSING_S):
                await self.socket.close(code=code, message=reason.encode())
                return
        self.abort()

    def answer_now(self, text: bytes) -> bool:
        """Answers a message immediately, without waking the task. Returns False without effect while an earlier
        answer is still to be sent or too many publishes are open: the message is then queued."""
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
        session.count_received(len(text))
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

    def _start(self, answer: Coroutine[Any, Any, bytes]) -> None:
        task = asyncio.create_task(self._answer(answer))
        self.pending.add(task)
        task.add_done_callback(self.pending.discard)

    async def answer_later(self, answer: Coroutine[Any, Any, bytes]) -> None:
        """Sends an answer once it is ready. Returns at once, or, with OPEN_PUBLISHES pending, when one of them
        has been answered."""
        self._start(answer)
        if len(self.pending) >= OPEN_PUBLISHES:
            await asyncio.wait(self.pending, return_when=asyncio.FIRST_COMPLETED)

    async def _answer(self, answer: Coroutine[Any, Any, bytes]) -> None:
        if not await self.send(await answer):
            await self.socket.close()

    async def converse(self, before: FrameGuard | None) -> None:
        """Reads and answers frames until either side ends the connection. Whole, unencrypted frames are
        answered by `answer_now` instead."""
        ws, session = self.socket, self.session
        if before is not None and self.open is None:
            before.take = self.answer_now
        heard = 0
        while True:
            message = await receive_message(ws)
            heard += 1
            if heard % _TURN == 0:
                await asyncio.sleep(0)  # reads what has arrived already without waiting
            if self._late is not None:
                await asyncio.wait({self._late})
            if self.open is not None and message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                session.count_received(len(message.data))
                try:
                    if message.type is WSMsgType.TEXT:
                        raise noise.NoiseError("A message in the open.")
                    answer = session.receive(self.open.decrypt(message.data))
                except noise.NoiseError:
                    session.count_ended("forged")
                    await ws.close(code=WSCloseCode.POLICY_VIOLATION)
                    return
            elif message.type is WSMsgType.TEXT:
                session.count_received(len(message.data))
                answer = session.receive(message.data)
            elif message.type is WSMsgType.BINARY:
                answer = session.fault(Code.INVALID, "Messages are text frames.")
            else:
                if before is not None and before.over:
                    session.count_ended(before.over)
                return
            del message
            if isinstance(answer, bytes):
                if not self.send_now(answer) and not await self.send(answer):
                    return
            elif answer is not None:
                await self.answer_later(answer)
            answer = None
            if session.closing:
                await ws.close(code=WSCloseCode.POLICY_VIOLATION)
                return
            if before is not None:
                before.done()


def open_socket(more: int = 0) -> web.WebSocketResponse:
    """Creates a websocket with the relay's settings, for frames of up to FRAME_BYTES + `more` bytes. Read its
    messages with `receive_message`."""
    return web.WebSocketResponse(
        protocols=(SUBPROTOCOL, OLD_SUBPROTOCOL),
        compress=False,
        max_msg_size=FRAME_BYTES + more + 1,  # aiohttp takes only what is smaller
        heartbeat=HEARTBEAT_S,
        decode_text=False,
    )


def install_guard(request: web.Request) -> FrameGuard | None:
    """Puts a FrameGuard in front of the reader of the websocket that was just opened; None if that is not
    possible."""
    reader, transport = request.protocol._payload_parser, request.transport
    if reader is None or not isinstance(transport, asyncio.Transport):
        return None
    request.protocol._payload_parser = before = FrameGuard(reader, transport)
    return before


async def refuse(ws: web.WebSocketResponse, refused: Refused) -> None:
    """Sends one unencrypted error frame and closes the websocket."""
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(CLOSING_S):
            await ws.send_frame(to_frame(Err(code=refused.code, msg=refused.sentence)), WSMsgType.TEXT)
            await ws.close(code=WSCloseCode.POLICY_VIOLATION)


def framed(text: bytes, opcode: int = 1) -> bytes:
    """Encodes a websocket frame as a server sends it: whole and unmasked (RFC 6455, 5.2), text by default.

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


async def receive_message(ws: web.WebSocketResponse) -> WSMessage:
    """Receives the next message; text is returned as bytes. Text that is not UTF-8 closes the connection, as
    RFC 6455 (8.1) asks."""
    message = await ws.receive()
    if message.type is WSMsgType.TEXT and not _is_text(message.data):
        await ws.close(code=WSCloseCode.INVALID_TEXT)
        return WS_CLOSED_MESSAGE
    return message


def _is_text(data: bytes) -> bool:
    """True if `data` is valid UTF-8."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False
