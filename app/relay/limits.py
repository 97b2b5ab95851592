"""The relay's limits: token buckets per key and per address, and the number and rate of connections, in total
and per address.

`ConnectionLimit` counts sockets before any data is exchanged, so that clients which connect and stay silent are
limited too, those of this computer like any other's. The operator's proxies are not limited by address; behind
a proxy the server counts the clients. An address stands for a household, a school or an attacker's network."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf

from aiohttp import web

from app.common.rate import Buckets, Rate
from app.relay.origin import LOOPBACK, Origins, networks
from app.relay.store.window import Clock

PER_KEY: Mapping[str, Rate] = {
    "publish": Rate(30, 60),
    "sample": Rate(12, 12),
    "bytes": Rate(5_000_000, 5_000_000),
}
KEYS_PER_ADDRESS = 16
"""The keys whose quotas one address may use up together. In a class it is each pupil's."""


def times(keys: int, rates: Mapping[str, Rate]) -> dict[str, Rate]:
    """The rates of so many keys together."""
    return {kind: Rate(keys * rate.per_min, keys * rate.burst) for kind, rate in rates.items()}


PER_ADDRESS: Mapping[str, Rate] = {
    **times(KEYS_PER_ADDRESS, PER_KEY),
    "connect": Rate(120, 64),
    "new-key": Rate(10 / 60, 10),
}
"""Also ten new keys an hour."""
ADDRESSES = 1, 4
"""How many addresses each of an address's `networks` counts as: an IPv6 /48 has the quota of four."""


class QuotaBuckets:
    """Token buckets by kind of request, for keys and for addresses. A kind limited for only one of the two is
    unlimited for the other; an unknown kind raises KeyError."""

    def __init__(
        self,
        clock: Clock,
        per_key: Mapping[str, Rate] = PER_KEY,
        per_address: Mapping[str, Rate] = PER_ADDRESS,
        *,
        sources: int = 50_000,
    ) -> None:
        self._clock = clock
        self._kinds = {
            kind: (
                Buckets(per_key[kind], sources) if kind in per_key else None,
                Buckets(per_address[kind], sources) if kind in per_address else None,
            )
            for kind in {*per_key, *per_address}
        }

    def take(self, kind: str, key: bytes | None, address: str, amount: float = 1.0) -> float:
        """Takes `amount` tokens from both buckets and returns 0, or takes none and returns the seconds to wait.
        `key` is None before sign-in. Raises ValueError for a negative amount."""
        wait = self.wait(kind, key, address, amount)
        if wait == 0:
            now = self._clock()
            for bucket, source, share in self._buckets(kind, key, address):
                bucket.take(source, amount * share, now)
        return wait

    def wait(self, kind: str, key: bytes | None, address: str, amount: float = 1.0) -> float:
        """Returns the seconds until `take` would succeed, 0 if it does now. Takes nothing."""
        if amount < 0:
            raise ValueError("Nothing is given back to a bucket.")
        now, longest = self._clock(), 0.0
        for bucket, source, share in self._buckets(kind, key, address):
            longest = max(longest, bucket.wait(source, amount * share, now))
        return longest

    def _buckets(self, kind: str, key: bytes | None, address: str) -> list[tuple[Buckets, bytes | str, float]]:
        """The buckets of a request, whose they are, and the share of its amount that each is charged."""
        of_key, of_address = self._kinds[kind]
        found: list[tuple[Buckets, bytes | str, float]] = []
        if of_key is not None and key is not None:
            found.append((of_key, key, 1.0))
        if of_address is not None:
            for one, share in zip(networks(address), ADDRESSES, strict=False):
                found.append((of_address, one, 1 / share))
        return found

    def left(self, kind: str, key: bytes | None, address: str) -> float:
        """The amount that `take` would allow now, in the unit of `kind`."""
        now, least = self._clock(), inf
        for bucket, source, share in self._buckets(kind, key, address):
            least = min(least, bucket.left(source, now) / share)
        return least


SOCKETS_PER_ADDRESS = 64
MAX_SOCKETS = 20_000
SPARE_FILES = 256
"""File descriptors reserved for everything except client sockets."""
NEW_CONNECTIONS = Rate(60 * 200, 400)
"""New connections of all clients together, without the proxies: 200 a second."""
NEW_CONNECTIONS_PER_ADDRESS = Rate(60 * 10, 128)
"""New connections per address. Connections refused beyond this do not use up the common rate."""

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 30\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 31\r\nConnection: close\r\n\r\nThis relay is full, try later.\n"
)


class ConnectionLimit:
    """Limits the connections of one server. `most`: maximum open sockets; `per_address`: of one address;
    `turned`: number refused, by reason."""

    def __init__(
        self, origins: Origins, clock: Clock, most: int | None = None, per_address: int = SOCKETS_PER_ADDRESS
    ) -> None:
        self.most = most if most is not None else raise_socket_limit()
        self.per_address = per_address
        self.turned: Counter[str] = Counter()
        self._origins = origins
        self._clock = clock
        self._rate = Buckets(NEW_CONNECTIONS, 1)
        self._each = QuotaBuckets(clock, {}, {"socket": NEW_CONNECTIONS_PER_ADDRESS})
        self._addresses: Counter[str] = Counter()
        self._open: dict[web.RequestHandler, str] = {}

    def watch(self, server: web.Server) -> None:
        """Hooks into the server so that every new connection is checked against the limits."""
        made, lost = server.connection_made, server.connection_lost

        def connection_made(handler: web.RequestHandler, transport: asyncio.Transport) -> None:
            made(handler, transport)
            reason = self._enter(handler, transport)
            if reason is not None:
                self.turned[reason] += 1
                # not at once: aiohttp begins to serve it after this call, and would write a traceback for each
                asyncio.get_running_loop().call_soon(_refuse, transport)

        def connection_lost(handler: web.RequestHandler, exc: BaseException | None = None) -> None:
            self._leave(handler)
            lost(handler, exc)

        server.connection_made = connection_made  # type: ignore[method-assign]
        server.connection_lost = connection_lost  # type: ignore[method-assign]

    def __len__(self) -> int:
        return len(self._open)

    def _enter(self, handler: web.RequestHandler, transport: asyncio.Transport) -> str | None:
        """Registers a connection and returns None, or returns the reason for refusing it."""
        peer = transport.get_extra_info("peername")
        remote = str(peer[0]) if peer else ""
        address = LOOPBACK if self._origins.trusts(remote) else self._origins.counted(remote)
        if len(self._open) >= self.most:
            return "full"
        if address != LOOPBACK:
            within = networks(address)
            if any(
                self._addresses[one] >= share * self.per_address
                for one, share in zip(within, ADDRESSES, strict=False)
            ):
                return "address"
            if self._each.take("socket", None, address) > 0:
                return "address"
            now = self._clock()
            if self._rate.wait("all", 1, now) > 0:
                return "rate"
            self._rate.take("all", 1, now)
            self._addresses.update(within)
        self._open[handler] = address
        return None

    def _leave(self, handler: web.RequestHandler) -> None:
        address = self._open.pop(handler, LOOPBACK)
        if address != LOOPBACK:
            decrement(self._addresses, networks(address))


def _refuse(transport: asyncio.Transport) -> None:
    transport.write(_FULL)
    transport.close()


def decrement(counts: Counter[str], names: Iterable[str]) -> None:
    """Decrements the count of each name and removes counts of zero."""
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


def raise_socket_limit() -> int:
    """Raises this process's limit of open files as far as the system allows. Returns the maximum number of
    client sockets."""
    if sys.platform == "win32":
        return MAX_SOCKETS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_SOCKETS + SPARE_FILES
    granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < granted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    return max(16, granted - SPARE_FILES)
