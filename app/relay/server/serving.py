"""Runs a relay: binds its sockets, opens its store, and serves clients until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from app.common.process.control import when_asked_to_stop
from app.common.rate import Bucket, Rate
from app.relay.access import Rules
from app.relay.checking import Checker
from app.relay.server.server import SIGN_IN_S, Server
from app.relay.session.shared import RelayState
from app.swarm.wire.protocol import SOCKET_PATH

SEND_BUFFER_BYTES = 192 * 1024
"""Size of the system's send buffer per client. Linux uses 4 MB by default (measured), so a few thousand clients
that do not read would take all memory."""
SHOW_URL_AFTER_S = 3.0
"""Seconds after which the URL is shown although the store is still starting; no client is accepted yet."""

LOG_LINES = Rate(10, 100)
"""Maximum rate of log lines: the log grows by a few megabytes a day at most, whatever clients do."""

_http = logging.getLogger(f"{__name__}.http")


def _ours(record: logging.LogRecord) -> bool:
    """Log filter that keeps faults of the relay. Invalid HTTP from clients would fill the log and is left
    out."""
    cause = record.exc_info[1] if record.exc_info else None
    return not isinstance(cause, HttpProcessingError | web.RequestPayloadError)


class _LogLimit:
    """Log filter that limits the rate of lines, so that they cannot fill a disk, and reports how many were left
    out."""

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
    """Opens a listening socket; `::` takes IPv4 too. Raises OSError if the address is taken or does not belong
    to this computer."""
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    both = where[0] == "::" and socket.has_dualstack_ipv6()
    listener = socket.create_server(where[:2], family=family, backlog=4096, dualstack_ipv6=both)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # its connections inherit it
    return listener


async def serve(
    host: str,
    port: int,
    open_state: Callable[[], RelayState],
    opened: Callable[[str, RelayState], None],
    rules: Rules | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT. `open_state` is called once the address is bound; `opened` is called with
    the URL when the relay is ready, or after SHOW_URL_AFTER_S if the store takes longer. Raises OSError if the
    address cannot be bound, and BackplaneError."""
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
            await _first(starting, ended, timeout=SHOW_URL_AFTER_S)
            opened(f"ws://{shown}{SOCKET_PATH}", state)
            await _first(starting, ended)
            await ended
            await server.leave()
    finally:
        starting.cancel()
        await runner.cleanup()
        await state.close()


async def _first(starting: asyncio.Task[None], ended: asyncio.Task[Any], timeout: float | None = None) -> None:
    """Waits until the relay has started or must end. Raises the start's exception if it failed."""
    done, _ = await asyncio.wait({starting, ended}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    if starting in done:
        starting.result()


@contextlib.asynccontextmanager
async def _measured(server: Server, listener: socket.socket | None) -> AsyncIterator[None]:
    """Serves the metrics on their listener while the context is open, if there is one."""
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
