"""What the operator of a relay decides when starting it, beyond who carries the groups and who may sign in."""

from __future__ import annotations

import msgspec

from app.relay.origin import Network


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """`proxies` may say where clients come from; `operators` are the keys whose orders count; `contact` stands
    on the status page; `metrics` is the listener of the metrics, host and port; `public` the address that nodes
    use, where that is another than was bound; `sockets` the most open connections, None for what the system
    grants."""

    proxies: tuple[Network, ...] = ()
    operators: frozenset[bytes] = frozenset()
    contact: str = ""
    checks: bool = True
    metrics: tuple[str, int] | None = None
    public: str | None = None
    sockets: int | None = None
