"""The limits of connections: how many stand open at once, how many of one address, how fast they come in.

It counts sockets, before a word is spoken, so that anyone who connects and says nothing takes no one's place.
This computer and the operator's proxies are not counted by address: behind them the server counts its clients.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable

from aiohttp import web

from app.common.rate import Buckets, Rate
from app.relay.access.origin import LOOPBACK, Origins, bucket, wider
from app.relay.access.quota import HOMES
from app.relay.store.window import Clock

SOCKETS_OF_AN_ADDRESS = 64
SOCKETS = 20_000
SPARE_FILES = 256
"""Descriptors left for everything that is no client."""
ACCEPTED = Rate(60 * 200, 400)
"""New connections of all strangers together: 200 a second."""

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 30\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 31\r\nConnection: close\r\n\r\nThis relay is full, try later.\n"
)


class ConnectionLimit:
    """Watches over one server. `most` sockets may be open; `turned` counts those that were not let in."""

    def __init__(self, origins: Origins, clock: Clock, most: int | None = None) -> None:
        self.most = most if most is not None else capacity()
        self.turned: Counter[str] = Counter()
        self._origins = origins
        self._clock = clock
        self._rate = Buckets(ACCEPTED, 1)
        self._addresses: Counter[str] = Counter()
        self._open: dict[web.RequestHandler, str] = {}

    def watch(self, server: web.Server) -> None:
        """Be asked about every connection of this server."""
        made, lost = server.connection_made, server.connection_lost

        def connection_made(handler: web.RequestHandler, transport: asyncio.Transport) -> None:
            made(handler, transport)
            reason = self._enter(handler, transport)
            if reason is not None:
                self.turned[reason] += 1
                transport.write(_FULL)
                transport.close()

        def connection_lost(handler: web.RequestHandler, exc: BaseException | None = None) -> None:
            self._leave(handler)
            lost(handler, exc)

        server.connection_made = connection_made  # type: ignore[method-assign]
        server.connection_lost = connection_lost  # type: ignore[method-assign]

    def __len__(self) -> int:
        return len(self._open)

    def _enter(self, handler: web.RequestHandler, transport: asyncio.Transport) -> str | None:
        """Why this connection may not come in, None if it may."""
        peer = transport.get_extra_info("peername")
        remote = str(peer[0]) if peer else ""
        address = LOOPBACK if self._origins.trusts(remote) else bucket(remote)
        if len(self._open) >= self.most:
            return "full"
        if address != LOOPBACK:
            whole = wider(address)
            if self._addresses[address] >= SOCKETS_OF_AN_ADDRESS or (
                whole is not None and self._addresses[whole] >= HOMES * SOCKETS_OF_AN_ADDRESS
            ):
                return "address"
            now = self._clock()
            if self._rate.wait("all", 1, now) > 0:
                return "rate"
            self._rate.take("all", 1, now)
            self._addresses.update([address] if whole is None else [address, whole])
        self._open[handler] = address
        return None

    def _leave(self, handler: web.RequestHandler) -> None:
        address = self._open.pop(handler, LOOPBACK)
        if address != LOOPBACK:
            whole = wider(address)
            leave(self._addresses, [address] if whole is None else [address, whole])


def leave(counts: Counter[str], names: Iterable[str]) -> None:
    """One less of each."""
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


def capacity() -> int:
    """How many sockets this process may have, after asking the system for as many as it grants."""
    if sys.platform == "win32":
        return SOCKETS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = SOCKETS + SPARE_FILES
    granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < granted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    return max(16, granted - SPARE_FILES)
