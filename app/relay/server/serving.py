"""A relay from its start to its end: its sockets are bound, its backplane opened, its clients served until it
is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from app.common.process.stopping import when_asked_to_stop
from app.common.rate import Bucket, Rate
from app.relay.access import Rules
from app.relay.checking import Checker
from app.relay.server.server import SIGN_IN_S, Server
from app.relay.session.shared import RelayState
from app.swarm.wire.protocol import SOCKET_PATH

OUTBOUND = 192 * 1024
"""Bytes that the system may hold of what a client has not read yet. Left to itself Linux makes it 4 MB for
anyone who does not read at all (measured), which a few thousand of them turn into all memory."""
STARTING_S = 3.0
"""A relay whose backplane takes longer to start shows its URL meanwhile; no one is let in yet."""

LOG_LINES = Rate(10, 100)
"""Lines of the log: whatever strangers cause, it grows by some megabytes a day at most."""

_http = logging.getLogger(f"{__name__}.http")


def _ours(record: logging.LogRecord) -> bool:
    """Whether a line is about a fault of the relay: what strangers send that is no HTTP is none, and it would
    fill the log."""
    cause = record.exc_info[1] if record.exc_info else None
    return not isinstance(cause, HttpProcessingError | web.RequestPayloadError)


class _LogLimit:
    """Lets so many lines through that nobody fills a disk with them, and says how many were left out."""

    def __init__(self) -> None:
        self._lines = Bucket(LOG_LINES.per_min, LOG_LINES.burst)
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if self._lines.left(record.created) < 1:
            self._left_out += 1
            return False
        self._lines.take(1, record.created)
        if self._left_out:
            record.msg = f"{record.getMessage()} ({self._left_out} lines were left out before)"
            record.args, self._left_out = (), 0
        return True


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError where the address is not of this computer or is taken."""
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.create_server(where[:2], family=family, backlog=4096)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, OUTBOUND)  # its connections inherit it
    return listener


async def serve(
    host: str,
    port: int,
    open_state: Callable[[], RelayState],
    opened: Callable[[str, RelayState], None],
    rules: Rules | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. `open_state` is asked once the address is had, `opened` gets the URL;
    where the backplane takes long to start that is before anyone is let in. Raises OSError where the address
    cannot be had, and BackplaneError."""
    stop = asyncio.Event()
    when_asked_to_stop(stop.set)
    listener = bind(host, port)
    name, number = listener.getsockname()[:2]
    shown = f"[{name}]:{number}" if ":" in name else f"{name}:{number}"
    state = open_state()
    rules = rules or Rules()
    if rules.checks:
        state.checker = Checker(state)
    server = Server(state, rules)
    # anyone who does not get their request's head over in time is a slow loris
    _http.addFilter(_ours)
    if logging.lastResort is not None:
        logging.lastResort.addFilter(_LogLimit())
    runner = web.AppRunner(
        server.application(), access_log=None, handle_signals=False, keepalive_timeout=SIGN_IN_S, logger=_http
    )
    await runner.setup()
    assert runner.server is not None
    server.sockets.watch(runner.server)
    ended = asyncio.create_task(stop.wait())
    starting = asyncio.create_task(state.open())
    try:
        await web.SockSite(runner, listener, backlog=4096).start()
        async with _measured(server, rules.metrics):
            await _first(starting, ended, timeout=STARTING_S)
            opened(f"ws://{shown}{SOCKET_PATH}", state)
            await _first(starting, ended)
            await ended
            await server.leave()
    finally:
        starting.cancel()
        await runner.cleanup()
        await state.close()


async def _first(starting: asyncio.Task[None], ended: asyncio.Task[Any], timeout: float | None = None) -> None:
    """Until the relay has started or is to end. Raises what the starting raised."""
    done, _ = await asyncio.wait({starting, ended}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    if starting in done:
        starting.result()


@contextlib.asynccontextmanager
async def _measured(server: Server, listener: socket.socket | None) -> AsyncIterator[None]:
    """With the metrics at their own listener, if there is one."""
    if listener is None:
        yield
        return
    from app.relay.server.metrics import LoopLag, RelayFigures, metrics_application

    lag = LoopLag()
    measuring = asyncio.create_task(lag.run())
    runner = web.AppRunner(
        metrics_application(RelayFigures(server, lag)), access_log=None, handle_signals=False
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        measuring.cancel()
        await runner.cleanup()
