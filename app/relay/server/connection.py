"""One client's websocket: opened, read with `hear`, answered frame by frame until either side ends it.

A connection reads a frame, answers it and reads the next, so a client that does not read is not read from. A
frame that comes whole is answered where it comes in, without waking the connection's task. Only a publish may
be answered later, when its backplane has it: so many may be open, and then reading waits. All writing of a
connection goes through one lock, and a send that takes too long ends the connection. Nothing of a frame or an
answer is held while waiting for the next: that would cost every idle connection its last batch."""

from __future__ import annotations

import asyncio
import contextlib
import time
from asyncio import Transport
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from aiohttp._websocket.helpers import websocket_mask
from aiohttp.http import WS_CLOSED_MESSAGE

from app.common.rate import Bucket, Rate
from app.relay.session.session import Session
from app.swarm.wire import noise
from app.swarm.wire.frames import to_frame
from app.swarm.wire.limits import FRAME, OPEN_PUBLISHES, Code, Refused
from app.swarm.wire.protocol import OLD_SUBPROTOCOL, SUBPROTOCOL, Err

# What comes from a websocket, before aiohttp reads it: whether a client masks its frames, as every client must
# (RFC 6455, 5.1; aiohttp's reader takes both), and the shorter way for what comes whole.
#
# Nearly every message is one frame that comes in one piece. Where all before it has been dealt with, it needs
# no queue and no task that is woken for it, and it is answered where it came in.

_TEXT, _CLOSE, _LAST = 0x81, 8, 0x80
"""Of a frame's first byte: a whole text, the least kind that is no data, a message's end (RFC 6455, 5.2)."""
FRAMES = Rate(60 * 20, 1000)
"""Frames of a connection, control frames among them: a busy client sends some twenty a minute."""
_TURN = 32
"""After so many frames of one connection in a row the others have a turn."""
_CUT_OFF = {"unmasked": b"\x88\x02\x03\xea", "frames": b"\x88\x02\x03\xf0"}
"""Close frames: 1002, a protocol error, and 1008, a policy that was violated."""


class FrameReader(Protocol):
    """What is fed with the bytes of a connection."""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]: ...
    def feed_eof(self) -> None: ...


class Masked:
    """Stands before a reader and reads the heads of frames. The first one without a mask, or one more than
    FRAMES allow, ends the connection, `over` says which, and nothing more is passed on. `take`, once set, is
    offered every text that comes whole while nothing is under way, and says whether it took it; `under_way`
    counts messages that were passed on to the reader, until `done` is called for each."""

    __slots__ = (
        *("_clock", "_frames", "_head", "_left", "_part", "_reader", "_transport"),
        *("over", "take", "under_way"),
    )

    def __init__(
        self, reader: FrameReader, transport: Transport, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._frames = Bucket(FRAMES.per_min, FRAMES.burst)
        self._reader = reader
        self._transport = transport
        self._left = 0
        self._head = b""
        self.over = ""
        self._part = False
        self.take: Callable[[bytes], bool] | None = None
        self.under_way = 0

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self.over:
            return False, b""
        now = self._clock()
        left = self._frames.left(now)
        if left >= 1 and not (self.under_way or self._left or self._head or self._part or self.take is None):
            text = whole(data)
            if text is not None and self.take(text):
                self._frames.take(1, now)
                return False, b""
        count = self._fine(data, int(left))
        if self.over:
            self._transport.write(_CUT_OFF[self.over])
            self._transport.close()
            return False, b""
        self._frames.take(count, now)
        return self._reader.feed_data(data)

    def feed_eof(self) -> None:
        self._reader.feed_eof()

    def done(self) -> None:
        """A message that was passed on has been dealt with."""
        self.under_way -= 1

    def _fine(self, data: bytes, most: int) -> int:
        """Goes from head to head, and counts them; one that has not come whole waits for the rest."""
        place, count = self._left, 0
        if self._head:
            data = self._head + data
        end = len(data)
        while end - place >= 2:
            first, second = data[place], data[place + 1]
            if second < 0x80:
                self.over = "unmasked"
                return count
            head, size = 6, second - 0x80
            if size > 125:
                head = 8 if size == 126 else 14
                if end - place < head - 4:
                    break
                size = int.from_bytes(data[place + 2 : place + head - 4], "big")
            if count == most:
                self.over = "frames"
                return count
            self._count(first)
            count += 1
            place += head + size
        self._left, self._head = (place - end, b"") if place >= end else (0, data[place:])
        return count

    def _count(self, first: int) -> None:
        """Good-byes too: nothing comes after them."""
        kind = first & 15
        if kind < _CLOSE:
            self._part = first < _LAST
        self.under_way += kind == _CLOSE or (kind < _CLOSE and first >= _LAST)


def whole(data: bytes) -> bytes | None:
    """The text of a masked frame that has come whole and alone; None for anything else, and for 64 KB or more.

    >>> whole(b"\\x81\\x82abcd\\t\\x0b"), whole(b"\\x81\\x82abcd\\t"), whole(b"\\x81\\x02hi")
    (b'hi', None, None)
    """
    if len(data) < 6 or data[0] != _TEXT:
        return None
    head, size = 6, data[1] - 0x80
    if size == 126 and len(data) >= 8:
        head, size = 8, data[2] << 8 | data[3]
    elif not 0 <= size < 126:
        return None
    if len(data) != head + size:
        return None
    text = bytearray(data[head:])
    websocket_mask(data[head - 4 : head], text)
    return bytes(text)


HEARTBEAT_S = 30.0
SEND_S = 20.0
"""A send that a client does not take in for so long ends its connection."""
CLOSING_S = 5.0
_BUFFERED = 60 * 1024
"""Below the 64 KB from which on asyncio makes a writer wait."""


class RelayConnection:
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
        """End it without a word: anyone who does not read would not read the good-bye either."""
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

    async def converse(self, before: Masked | None) -> None:
        """Until either side ends it. What comes whole and in the open is answered by `take`, not here."""
        ws, session = self.socket, self.session
        if before is not None and self.open is None:
            before.take = self.take
        heard = 0
        while True:
            message = await hear(ws)
            heard += 1
            if heard % _TURN == 0:
                await asyncio.sleep(0)  # what has come already is heard without waiting
            if self._late is not None:
                await asyncio.wait({self._late})
            if self.open is not None and message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                session.came(len(message.data))
                try:
                    if message.type is WSMsgType.TEXT:
                        raise noise.NoiseError("A message in the open.")
                    answer = session.receive(self.open.decrypt(message.data))
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
                if before is not None and before.over:
                    session.count(before.over)
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
    """A websocket as the relay has them, for frames with so many bytes `more`; messages are read from it with
    `hear`."""
    return web.WebSocketResponse(
        protocols=(SUBPROTOCOL, OLD_SUBPROTOCOL),
        compress=False,
        max_msg_size=FRAME + more + 1,  # aiohttp takes only what is smaller
        heartbeat=HEARTBEAT_S,
        decode_text=False,
    )


def watch(request: web.Request) -> Masked | None:
    """Let only masked frames through to the websocket that was just opened."""
    reader, transport = request.protocol._payload_parser, request.transport
    if reader is None or not isinstance(transport, asyncio.Transport):
        return None
    request.protocol._payload_parser = before = Masked(reader, transport)
    return before


async def refuse(ws: web.WebSocketResponse, refused: Refused) -> None:
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


async def hear(ws: web.WebSocketResponse) -> WSMessage:
    """The next message, text as bytes. Text that is not UTF-8 ends the connection, as RFC 6455 (8.1) asks."""
    message = await ws.receive()
    if message.type is WSMsgType.TEXT and not _is_text(message.data):
        await ws.close(code=WSCloseCode.INVALID_TEXT)
        return WS_CLOSED_MESSAGE
    return message


def _is_text(data: bytes) -> bool:
    """Whether it is UTF-8."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False
