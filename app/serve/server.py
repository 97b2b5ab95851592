"""The HTTP server for other programs on this computer: OpenAI's API on loopback.

Any web page open on this computer can send requests to it too. A request therefore needs a loopback Host (which
rejects a foreign DNS name bound to 127.0.0.1), no Origin but a loopback one or one that the owner allows, a
JSON content type (which a page may only send after a CORS preflight, granted to those origins alone), and the
token. The sizes of bodies and heads and the numbers of connections and waiting requests are bounded."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import secrets
import socket
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from app.common.text import safe_line
from app.models.catalogue import full_name
from app.serve import openai
from app.serve.model import BusyError, ModelError, ModelProcess
from app.serve.openai import (
    PUZZLES,
    USUAL,
    ChatRequest,
    RequestError,
    ResponseWriter,
    TextRequest,
    UsualSampling,
)
from app.serve.responses import EventWriter, ResponsesRequest
from engines import files

PORT = 11777
LOOPBACK, LOOPBACK_6 = "127.0.0.1", "::1"
MAX_BODY = 2**20
MAX_BODY_S = 15.0
"""Maximum seconds to receive a request's body."""
MAX_WRITE_S = 30.0
"""Seconds without reading after which a client counts as gone."""
MAX_HEAD_S = 20.0
"""Maximum seconds until a connection's first request."""
KEEP_ALIVE_S = 90.0
"""Seconds after an answer for which a connection waits for the next request."""
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Allow-Private-Network": "true",
    "Access-Control-Max-Age": "600",
}
MAX_CONNECTIONS = 256  # more than programs of one computer open
_OUTBOUND = 64 * 1024
"""Socket send buffer in bytes, for data that a client has not read yet."""
_LINGER_S = 1.0
"""Seconds for which the rest of a refused body is read, so that the client can read the error."""
_SILENT = logging.Logger("requests that are no HTTP", logging.CRITICAL + 1)
"""A logger that drops everything: aiohttp would log a traceback for each request that is not HTTP."""
_TRIES = 20
"""Number of ports tried from PORT on."""

_FILE = "serving.json"
"""File in the data folder with the token, so that it stays valid after a restart."""

_CHECKED = "checked"
Asked = ChatRequest | TextRequest | ResponsesRequest
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    token: str


def token(home: Path) -> str:
    """Returns the token of this data folder, creating it the first time. Raises OSError."""
    kept = files.read_json(home / _FILE, _Kept, 4096)
    if kept is None or not kept.token.startswith("sk-"):
        kept = _Kept(token=f"sk-shoal-{secrets.token_urlsafe(24)}")
        files.write_json(home / _FILE, kept, private=True)
    return kept.token


async def _grant(request: web.Request, response: web.StreamResponse) -> None:
    """Lets a page whose origin was checked read the answer. Called before the head is sent."""
    if request.get(_CHECKED) and (origin := request.headers.get("Origin")):
        response.headers.update({"Access-Control-Allow-Origin": origin, "Vary": "Origin"})


class Server:
    """The HTTP application for one model; `name` is the model name for clients, and `skills` returns the names
    of its skills; `usual` is how its base samples. An empty `token` disables the token check. `allowed`:
    origins besides loopback whose pages may ask, such as app://obsidian.md, and names of this computer in a
    Host."""

    def __init__(
        self,
        model: ModelProcess,
        name: str,
        token: str,
        skills: Callable[[], Sequence[str]] = tuple,
        usual: UsualSampling = USUAL,
        allowed: Sequence[str] = (),
    ) -> None:
        self._model, self._name, self._token, self._skills, self._usual = model, name, token, skills, usual
        self._allowed = frozenset(one.strip().rstrip("/").lower() for one in allowed)
        self._created = int(time.time())
        self.application = web.Application(middlewares=[self._guarded], client_max_size=MAX_BODY)
        self.application.on_response_prepare.append(_grant)
        self.application.router.add_get("/v1/models", self._list)
        self.application.router.add_get("/v1/models/{name:.+}", self._one)
        self.application.router.add_post("/v1/chat/completions", lambda asked: self._answer(asked, ChatRequest))
        self.application.router.add_post("/v1/responses", lambda asked: self._answer(asked, ResponsesRequest))
        self.application.router.add_post("/v1/completions", lambda asked: self._answer(asked, TextRequest))

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Middleware: checks each request, and turns errors into OpenAI's error responses."""
        try:
            self._check_origin(request)
            request[_CHECKED] = True
            if request.method == "OPTIONS" and "Origin" in request.headers:
                return web.Response(status=204, headers=_PREFLIGHT)
            self._check(request)
            return await handler(request)
        except RequestError as error:
            found = error
        except web.HTTPRequestEntityTooLarge:
            found = RequestError(413, f"A request has at most {MAX_BODY >> 20} MB.")
        except web.HTTPException as error:
            found = RequestError(error.status, f"There is no {request.method} {request.path[:80]} here.")
        except Exception:  # affects one request only
            traceback.print_exc()
            found = RequestError(500, "This is a fault in Shoal: ask in another way, and tell us.")
        response = web.Response(status=found.status, body=found.body(), content_type="application/json")
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if found.status == 429:
            response.headers["Retry-After"] = "1"
        if found.status in (401, 403, 408, 413, 415):  # nothing else that it sends is read
            response.force_close()
        return response

    def _check_origin(self, request: web.Request) -> None:
        """Raises RequestError unless the request is for a name of this computer, and from none of another's
        pages."""
        hosts = request.headers.getall("Host", [])
        if len(hosts) != 1 or not (of_loopback(f"//{hosts[0]}") or _name(hosts[0]) in self._allowed):
            sentence = f"This server answers to localhost and 127.0.0.1, {_unless(hosts[:1], _name)}."
            raise RequestError(403, sentence, code="bad_host")
        origins = request.headers.getall("Origin", [])
        site = request.headers.get("Sec-Fetch-Site", "none")
        strangers = [one for one in origins if not of_loopback(one) and one.lower() not in self._allowed]
        if strangers or (not origins and site not in ("none", "same-origin")):
            sentence = f"A page from elsewhere may not ask this server, {_unless(strangers)}."
            raise RequestError(403, sentence, code="bad_origin")

    def _check(self, request: web.Request) -> None:
        """Raises RequestError unless the request has the token and is JSON."""
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if self._token and not (
            scheme.lower() == "bearer"
            and hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token.encode())
        ):
            raise RequestError(
                401, "The token is wrong or missing: copy it from Shoal.", code="invalid_api_key"
            )
        if request.method == "POST" and request.content_type != "application/json":
            raise RequestError(415, "A request is JSON: send it with Content-Type: application/json.")
        if "Content-Encoding" in request.headers:
            raise RequestError(415, "A request's body comes as it is, not compressed.")

    async def _list(self, request: web.Request) -> web.Response:
        names = [self._name, *await self._learned()]
        return web.Response(body=openai.models(names, self._created), content_type="application/json")

    async def _one(self, request: web.Request) -> web.Response:
        name, _ = await self._known(request.match_info["name"])
        model = {"id": name, "object": "model", "created": self._created, "owned_by": "shoal"}
        return web.json_response(model)

    async def _learned(self) -> list[str]:
        return [PUZZLES, *await asyncio.to_thread(self._skills)]

    async def _known(self, name: str) -> tuple[str, bool]:
        """Returns the model name and whether it was learned, if it is one of this server's, or a short name for
        its base; otherwise raises RequestError."""
        learned = await self._learned()
        base = full_name(name) == full_name(self._name)
        if name not in learned and not base:
            sentence = f"There is no {name[:80]!r}. There are: {', '.join([self._name, *learned])}."
            raise RequestError(404, sentence, param="model", code="model_not_found")
        return name, not base

    async def _answer(self, request: web.Request, kind: type[Asked]) -> web.StreamResponse:
        try:
            async with asyncio.timeout(MAX_BODY_S):
                body = await request.read()
        except TimeoutError:
            raise RequestError(408, "The request took too long to come.") from None
        asked = openai.parse_request(body, kind)
        _, learned = await self._known(asked.model)
        replies = self._model.ask(asked.start(learned, self._usual))
        try:
            async with contextlib.aclosing(replies):
                began = await anext(replies)
                answering = _writer(asked)
                answering.began(began)  # type: ignore[arg-type]
                if not asked.stream:
                    answers = [reply async for reply in replies if not isinstance(reply, openai.Began)]
                    return web.Response(body=answering.full_response(answers), content_type="application/json")
                return await _stream(request, answering, replies)
        except BusyError:
            raise RequestError(
                429, "Too many requests wait: ask again in a moment.", code="queue_full"
            ) from None
        except ModelError as error:
            raise RequestError(503 if error.fault else 400, str(error), code=error.code) from error


def _writer(asked: Asked) -> ResponseWriter | EventWriter:
    return EventWriter(asked) if isinstance(asked, ResponsesRequest) else ResponseWriter(asked)


async def _stream(
    request: web.Request,
    answering: ResponseWriter | EventWriter,
    replies: AsyncIterator[openai.Piece | openai.Ended | openai.Began],
) -> web.StreamResponse:
    """Sends the answers as server-sent events. An error on the way becomes the last event."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)

    async def write(events: bytes) -> None:
        async with asyncio.timeout(MAX_WRITE_S):
            await response.write(events)

    try:
        try:
            async for reply in replies:
                if not isinstance(reply, openai.Began):
                    await write(answering.chunk(reply))
            await write(answering.stream_end())
        except ModelError as error:
            await write(b"data: " + RequestError(503, str(error), code=error.code).body() + b"\n\n")
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    return response


def _name(host: str) -> str:
    """Returns a Host header without its port."""
    return host.lower().rsplit(":", 1)[0]


def _unless(strangers: Sequence[str], name: Callable[[str], str] = str) -> str:
    """Returns how the owner lets them in."""
    named = safe_line(name(strangers[0]), 80) if strangers else "it"
    return f"unless its owner allows {named} (Settings, “Other pages that may ask your model”, or --allow)"


def of_loopback(address: str) -> bool:
    """Returns whether a URL's host is this computer. Names that end in .localhost are its own (RFC 6761, 6.3).

    >>> [of_loopback(one) for one in ("//localhost:1", "http://127.0.0.1", "//[::1]:80", "//tauri.localhost")]
    [True, True, True, True]
    >>> [of_loopback(one) for one in ("//evil.example:11777", "null", "//127.0.0.1.evil.example", "//", "//[")]
    [False, False, False, False, False]
    >>> [of_loopback(one) for one in ("//127.0.0.1:99999", "//evil@localhost", "//localhost#.evil", "//127.1")]
    [False, False, False, False]
    """
    try:
        parts = urlsplit(address)
        name, bare = parts.hostname or "", parts._replace(scheme="").geturl() == f"//{parts.netloc}"
        if not bare or "@" in parts.netloc or parts.port == 0:
            return False
        return name == "localhost" or name.endswith(".localhost") or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class _Door(asyncio.Protocol):
    """Accepts connections and hands them to `server`, at most MAX_CONNECTIONS. Beyond that, the oldest idle
    connection is closed, so that silent connections cannot block all others."""

    def __init__(self, server: web.Server) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        there = [one for one in self._server.connections if one.transport and not one.transport.is_closing()]
        if len(there) >= MAX_CONNECTIONS:
            idle = next((one.transport for one in there if one._current_request is None), transport)
            assert idle is not None
            idle.abort()
            if idle is transport:
                return
        handler = self._server()
        transport.set_protocol(handler)
        handler.connection_made(transport)


async def _close_idle(server: web.Server) -> None:
    """Closes connections whose first request doesn't come within MAX_HEAD_S seconds; aiohttp counts from each
    answer on. Runs until cancelled."""
    since: dict[web.RequestHandler, float] = {}
    while True:
        await asyncio.sleep(MAX_HEAD_S / 4)
        now = time.monotonic()
        new = (one for one in server.connections if not one._keepalive and one._current_request is None)
        since = {one: since.get(one, now) for one in new}
        for one, began in since.items():
            if now - began > MAX_HEAD_S and one.transport is not None:
                one.transport.abort()


def bind(port: int | None) -> list[socket.socket]:
    """Returns listening sockets on loopback, at `port`, or without one at PORT or the next free port: of IPv4,
    and where that is to be had, of IPv6, as some programs take localhost for ::1. Raises OSError."""
    tries = [port] if port is not None else [*range(PORT, PORT + _TRIES), 0]
    for one in tries:
        try:
            listener = socket.create_server((LOOPBACK, one), backlog=128)
        except OSError:
            if one == tries[-1]:
                raise
            continue
        listeners = [listener]
        with contextlib.suppress(OSError):
            at = (LOOPBACK_6, listener.getsockname()[1])
            listeners.append(socket.create_server(at, family=socket.AF_INET6, backlog=128))
        for each in listeners:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _OUTBOUND)
        return listeners
    raise AssertionError


async def serve(
    listeners: Sequence[socket.socket], asked: Server, model: ModelProcess, ended: asyncio.Event
) -> None:
    """Serves until `ended` is set."""
    runner = web.AppRunner(
        asked.application,
        access_log=None,
        handle_signals=False,
        handler_cancellation=True,
        shutdown_timeout=1.0,
        lingering_time=_LINGER_S,
        keepalive_timeout=KEEP_ALIVE_S,
        logger=_SILENT,
    )
    await runner.setup()
    assert runner.server is not None
    server = runner.server
    loop = asyncio.get_running_loop()
    opened = [await loop.create_server(lambda: _Door(server), sock=one) for one in listeners]
    tasks = [asyncio.create_task(_close_idle(server)), asyncio.create_task(model.run())]
    try:
        stopping = asyncio.create_task(ended.wait())
        await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for door in opened:
            door.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await runner.cleanup()
