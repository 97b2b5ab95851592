"""One websocket to one relay: opened, read message by message, and ended with a sentence that states the
reason.

aiohttp takes 11 MB, so it is imported with the first connection and never in solo mode. A silent connection
(unplugged cable, moved laptop) is detected by heartbeats within 1.5 * HEARTBEAT_S."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import ssl
import time
import urllib.request
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app.common import authorities
from app.common.authorities import system_proxy, without_credentials
from app.common.text import MAX_QUOTED, safe_line
from app.swarm.client.status import Ledger
from app.swarm.client.traffic import frame_bytes, head_bytes
from app.swarm.invite.private import PrivateSwarm
from app.swarm.wire import noise
from app.swarm.wire.frames import decode_relay_frame, to_frame
from app.swarm.wire.limits import BATCH_FRAME, KB, Flaw, Refused, allowance
from app.swarm.wire.protocol import (
    NONCE_BYTES,
    OLD_SUBPROTOCOL,
    OPENING_HEADER,
    SUBPROTOCOL,
    Err,
    FromClient,
    FromRelay,
)

if TYPE_CHECKING:
    import aiohttp

OPEN_S = 20.0
"""Seconds that opening may take: DNS, TCP, proxy, TLS and the websocket handshake."""
HEARTBEAT_S = 12.0
SEND_S = 15.0
CLOSE_S = 2.0  # a goodbye is not worth a longer wait
MAX_FAULTS = 32
"""Number of unparsable frames after which the node leaves a relay."""
FRAMES_PER_MIN, FRAME_BYTES = 6000, 16 * KB
"""Rate limit for a relay: each frame costs 1, plus 1 for every FRAME_BYTES of its size. A busy node receives a
hundredth of it."""
FLOOD_WAIT_MS = 60_000
LONGEST_WAIT_MS = 24 * 3600 * 1000  # a day; a relay that asks for more is tried again anyway
_HEADERS = {"User-Agent": "shoal"}


_UNUSED = "This computer's proxy isn't used for ws:// addresses: they are on the local network."


class ConnectionEnded(Exception):
    """The connection could not be opened, or has ended; the only exception for network faults here. The message
    is one sentence; `retry_after_ms` is the wait that the relay asks for."""

    def __init__(self, sentence: str, retry_after_ms: int | None = None) -> None:
        super().__init__(sentence)
        self.retry_after_ms = retry_after_ms

    @property
    def sentence(self) -> str:
        return str(self)


class Connection:
    """An open websocket. Its messages and what it receives are recorded in the ledger. Sending and receiving
    raise ConnectionEnded once the connection is lost; `close` never raises."""

    __slots__ = (
        "_allowance",
        "_asked",
        "_faults",
        "_flooded",
        "_http",
        "_ledger",
        "_line",
        "_socket",
        "_tls",
        "opening",
        "place",
    )

    def __init__(
        self,
        http: aiohttp.ClientSession,
        socket: aiohttp.ClientWebSocketResponse[bool],
        place: str,
        ledger: Ledger,
        opening: bytes = b"",
        asked: noise.Initiator | None = None,
        tls: bool = False,
    ) -> None:
        """`opening` are the bytes that the relay's `hello` must sign. With `asked`, the connection is encrypted
        and `opening` is computed from the relay's first frame."""
        self._ledger, self._tls = ledger, tls
        self._asked = asked
        self._line: noise.CipherPair | None = None
        self.opening = opening
        self._http = http
        self._socket = socket
        self._faults = 0
        self._flooded = False
        self._allowance = allowance(FRAMES_PER_MIN, FRAMES_PER_MIN)
        self.place = place

    async def receive(self) -> FromRelay:
        """Returns the next message. Skips messages of unknown types, and up to MAX_FAULTS frames that are not
        messages."""
        from aiohttp import WSMsgType

        while True:
            with self._network():
                message = await self._socket.receive()
            self._count(message.data)
            data, kind = message.data, message.type
            if isinstance(data, bytes):
                self._ledger.traffic.count(received=frame_bytes(len(data), masked=False, tls=self._tls))
            if self._sealing and kind in (WSMsgType.TEXT, WSMsgType.BINARY):
                data, kind = self._unsealed(data, open_=kind is WSMsgType.TEXT), WSMsgType.TEXT
            if isinstance(data, bytes):
                self._ledger.record_received(data)
            if kind is WSMsgType.TEXT:
                try:
                    return decode_relay_frame(data)
                except Refused as refused:
                    self._fault(refused)
            elif kind is WSMsgType.BINARY:
                self._fault(Refused(Flaw.NOT_JSON, "Messages are text frames."))
            elif kind is WSMsgType.ERROR:
                raise ConnectionEnded(_broken(self.place, data))
            else:
                raise ConnectionEnded(_closed(self.place, self._socket.close_code))
            del message, data

    @contextlib.contextmanager
    def _network(self) -> Iterator[None]:
        """Converts aiohttp's exceptions to ConnectionEnded. Many of them are OSErrors too, which elsewhere come
        from files. `receive` also answers pings and raises ClientConnectionResetError if the transport is
        closing."""
        from aiohttp import ClientError

        try:
            yield
        except (ClientError, OSError, RuntimeError) as error:
            raise ConnectionEnded(_closed(self.place, self._socket.close_code)) from error

    @property
    def _sealing(self) -> bool:
        return self._asked is not None or self._line is not None

    def _unsealed(self, data: bytes, *, open_: bool) -> bytes:
        """Decrypts a frame. Of unencrypted frames only a refusal is accepted, and only as the sentence of
        ConnectionEnded."""
        try:
            if open_:
                if self._asked is not None and isinstance(err := decode_relay_frame(data), Err):
                    raise ConnectionEnded(
                        f"{self.place} lets no one in with these words: {safe_line(err.msg, MAX_QUOTED)}"
                    )
                raise noise.NoiseError("A message in the open.")
            if self._line is not None:
                return self._line[1].decrypt(data)
            assert self._asked is not None
            self.opening, hello, self._line = self._asked.read_message(data)
            self._asked = None
            return hello
        except (noise.NoiseError, Refused) as error:
            raise ConnectionEnded(
                f"{self.place} doesn't prove that it knows this swarm's six words: check its address and them."
                if self._line is None
                else f"Somebody on the way to {self.place} has meddled with what it says."
            ) from error

    def _count(self, data: object) -> None:
        now, size = time.monotonic(), len(data) if isinstance(data, bytes) else 0
        self._allowance.take(1 + size / FRAME_BYTES, now)
        if self._allowance.left(now) < 1:
            self._flooded = True
            raise ConnectionEnded(f"{self.place} sends far more than anybody asked for.", FLOOD_WAIT_MS)

    def _fault(self, refused: Refused) -> None:
        if refused.flaw is Flaw.UNKNOWN_TYPE:
            return
        self._faults += 1
        if self._faults >= MAX_FAULTS:
            raise ConnectionEnded(f"{self.place} sends what is no message of a relay: check its address.")

    async def send(self, message: FromClient | bytes) -> None:
        """Sends a message; returns when the system has taken its bytes. Raises ConnectionEnded, and Refused if
        it is too large."""
        from aiohttp import WSMsgType

        frame = message if isinstance(message, bytes) else to_frame(message)
        try:
            async with asyncio.timeout(SEND_S):
                with self._network():
                    if self._line is None:
                        await self._socket.send_frame(frame, WSMsgType.TEXT)
                    else:
                        await self._socket.send_frame(self._line[0].encrypt(frame), WSMsgType.BINARY)
        except TimeoutError as error:
            raise ConnectionEnded(f"{self.place} has taken nothing for {SEND_S:.0f} s.") from error
        self._ledger.record_sent(frame)

    async def close(self) -> None:
        if not self._flooded:  # a relay that floods is disconnected without waiting for its bye
            with contextlib.suppress(ConnectionEnded, TimeoutError):
                async with asyncio.timeout(2 * CLOSE_S):
                    with self._network():
                        await self._socket.close()
        with contextlib.suppress(ConnectionEnded), self._network():
            await self._http.close()


async def connect(
    url: str,
    tls: ssl.SSLContext | None = None,
    ledger: Ledger | None = None,
    private: PrivateSwarm | None = None,
) -> Connection:
    """Opens a websocket to a relay, encrypted if it is of a `private` swarm; `tls` is for certificates that the
    system does not trust. Raises ConnectionEnded."""
    import aiohttp

    place = urlsplit(url).netloc

    async def stay(*_: object) -> None:
        raise ConnectionEnded(
            f"{place} sends this node on to another address, which isn't followed: check its address."
        )

    noted, over_tls = ledger or Ledger(), url.startswith("wss:")

    async def count_request(_: object, __: object, sent: aiohttp.TraceRequestHeadersSentParams) -> None:
        line = f"{sent.method} {sent.url.raw_path_qs} HTTP/1.1"
        noted.traffic.count(sent=head_bytes(line, sent.headers, over_tls))

    async def count_response(_: object, __: object, ended: aiohttp.TraceRequestEndParams) -> None:
        line = f"HTTP/1.1 {ended.response.status} {ended.response.reason}"
        noted.traffic.count(received=head_bytes(line, ended.response.headers, over_tls))

    class CountedSocket(aiohttp.ClientWebSocketResponse[Any]):
        """Counts all frames that are sent: pings, answers to pings and the goodbye are aiohttp's own."""

        def __init__(self, reader: Any, writer: Any, *rest: Any, **options: Any) -> None:
            send = writer.send_frame

            async def send_frame(message: bytes, opcode: int, compress: int | None = None) -> None:
                noted.traffic.count(sent=frame_bytes(len(message), masked=True, tls=over_tls))
                await send(message, opcode, compress)

            writer.send_frame = send_frame
            super().__init__(reader, writer, *rest, **options)

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(stay)
    trace.on_request_headers_sent.append(count_request)
    trace.on_request_end.append(count_response)
    proxy = await asyncio.to_thread(proxy_for, url)
    opening, asked = secrets.token_bytes(NONCE_BYTES), None
    if private is not None:
        asked = noise.Initiator(private.key, private.prologue)
        opening = asked.write_message()
    http = aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=OPEN_S),
        trace_configs=[trace],
        ws_response_class=CountedSocket,
    )
    try:
        async with asyncio.timeout(OPEN_S):
            socket = await http.ws_connect(
                url,
                protocols=(SUBPROTOCOL, OLD_SUBPROTOCOL),
                headers={OPENING_HEADER: opening.hex()},
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
                heartbeat=HEARTBEAT_S,
                proxy=proxy,
                proxy_headers=_HEADERS,
                ssl=tls or (authorities.default_context() if over_tls else True),
                compress=0,
                max_msg_size=BATCH_FRAME + noise.TAG_BYTES + 1,  # aiohttp takes only what is smaller
                decode_text=False,
            )
        if socket.protocol == OLD_SUBPROTOCOL:
            await socket.close()
            raise ConnectionEnded(
                f"{place} runs an older Shoal, which can't prove who it is: it has to be updated."
            )
        if socket.protocol != SUBPROTOCOL:
            await socket.close()
            raise ConnectionEnded(f"{place} is no relay of this kind: check its address.")
    except BaseException as error:
        await http.close()
        if isinstance(error, aiohttp.ClientError | OSError | ValueError):  # TimeoutError is an OSError
            raise _not_had(place, proxy, error) from error
        raise
    return Connection(http, socket, place, noted, opening, asked, over_tls)


def proxy_for(url: str) -> str | None:
    """The HTTP proxy that the environment or the system sets for a wss:// address. None for ws:// addresses,
    which are on the local network. May query DNS on some systems. Raises ConnectionEnded if the setting is not
    an HTTP proxy's address."""
    parts = urlsplit(url)
    proxy = system_proxy()
    if parts.scheme != "wss" or not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    shown = without_credentials(proxy)
    if proxy.lower().startswith("socks"):
        raise ConnectionEnded(
            f"Relays can't be reached through a SOCKS proxy ({shown}): name an HTTP proxy in HTTPS_PROXY, or "
            "except the relay with NO_PROXY."
        )
    try:
        found = urlsplit(proxy)
        right = found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:
        right = False
    if not right:
        raise ConnectionEnded(
            f"The proxy's address {shown!r} isn't one: write HTTPS_PROXY as http://proxy:port."
        )
    return proxy


def _not_had(place: str, proxy: str | None, error: Exception) -> ConnectionEnded:
    import aiohttp

    from app.common.connection import PROXY_LOGIN

    match error:
        case TimeoutError():
            why = f"{place} doesn't answer: is the address right, and the relay running?"
            return ConnectionEnded(f"{why} {_UNUSED}" if proxy is None and system_proxy() else why)
        case aiohttp.ClientHttpProxyError(status=407):
            return ConnectionEnded(PROXY_LOGIN)
        case aiohttp.ClientHttpProxyError():
            return ConnectionEnded(f"The proxy doesn't let this computer through to {place} ({error.status}).")
        case aiohttp.ClientProxyConnectionError():
            return ConnectionEnded(
                f"The proxy {urlsplit(proxy or '').hostname} doesn't answer: check the system's proxy."
            )
        case aiohttp.WSServerHandshakeError(status=status):
            wait = _retry_after_ms(error.headers)
            if status == 503:
                return ConnectionEnded(f"{place} lets no one in right now.", wait)
            return ConnectionEnded(
                f"There is no relay at {place} (it answers {status}): check the address.", wait
            )
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLError() as refused):
            return ConnectionEnded(authorities.certificate_problem(refused, place))
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return ConnectionEnded(
                f"{place} shows no certificate that this computer trusts: check the address and the clock."
            )
        case aiohttp.ClientConnectorDNSError():
            return ConnectionEnded(
                f"There is no computer called {urlsplit('//' + place).hostname}, or the network is down."
            )
        case aiohttp.ClientConnectorError():
            if error.os_error.errno == errno.ECONNREFUSED:
                why = f"No relay is running at {place} right now."
            else:  # asyncio's own strerror is "Connect call failed ('192.0.2.1', 8777)"
                number = error.os_error.errno or 0
                why = f"{place} can't be reached ({os.strerror(number) if number > 0 else 'no connection'})."
            return ConnectionEnded(f"{why} {_UNUSED}" if proxy is None and system_proxy() else why)
        case aiohttp.ClientOSError() | aiohttp.ServerDisconnectedError():
            return ConnectionEnded(f"The connection to {place} broke off.")
    return ConnectionEnded(f"{place} can't be spoken to ({type(error).__name__}): check the address.")


def _broken(place: str, error: object) -> str:
    from aiohttp import ServerTimeoutError, WebSocketError

    if isinstance(error, ServerTimeoutError):
        return f"{place} has gone silent."
    if isinstance(error, WebSocketError):
        return f"{place} sends what is no message of a relay."
    return f"The connection to {place} broke off."


def _closed(place: str, code: int | None) -> str:
    return f"The connection to {place} broke off." if code in (None, 1006) else f"{place} hung up ({code})."


def _retry_after_ms(headers: object) -> int | None:
    told = str(headers.get("Retry-After", "")) if hasattr(headers, "get") else ""
    return (
        min(int(told) * 1000, LONGEST_WAIT_MS) if told.isascii() and told.isdigit() and len(told) < 9 else None
    )


async def run_until_first_ends(*stories: Coroutine[Any, Any, None]) -> None:
    """Runs the coroutines concurrently until one ends, cancels the others, and raises the first one's
    exception."""
    tasks = [asyncio.create_task(one) for one in stories]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
