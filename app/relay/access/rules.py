"""What the operator of a relay decides when starting it, beyond who carries the groups and who may sign in."""

from __future__ import annotations

import socket

import msgspec

from app.relay.access.origin import Network


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """`proxies` may say where clients come from; `operators` are the keys whose orders count; `contact` stands
    on the status page; `checks`: whether groups are scored again; `metrics` is where the metrics are asked for,
    listening already; `public` the URL that nodes use, where another than was bound; `sockets` the most open
    connections, None for what the system grants."""

    proxies: tuple[Network, ...] = ()
    operators: frozenset[bytes] = frozenset()
    contact: str = ""
    checks: bool = True
    metrics: socket.socket | None = None
    public: str | None = None
    sockets: int | None = None
    teacher: str = ""
    """What the link to a classroom's page ends with; empty where there is none."""
