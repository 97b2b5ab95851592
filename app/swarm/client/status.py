"""The state of a node's connection to its swarm, for views, and its changes, for the history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class ConnectionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The connection to a relay changed: `connected`, `lost`, or not made (`refused`). `sentence` says it to
    people; `retry_s` is the time until the next try, in seconds."""

    state: Literal["connected", "lost", "refused"]
    url: str
    relay: str | None
    swarm: str | None
    sentence: str
    retry_s: float | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen picture. `peers` to `families` are the relay's own figures, None until it has sent them.
    `created` groups are `waiting` for a relay's final answer, or `acknowledged` (stored there, or counted as
    too old), or finally `refused` by it, or were `dropped` because the outbox was full. `held` are kept in
    memory only, because no swarm is known yet. `next_try_s` is None while connected.
    """

    connected: bool
    url: str | None
    relay: str | None
    swarm: str | None
    peers: int | None
    relays: int | None
    rollouts_min: float | None
    window: int | None
    stored: int | None
    families: Mapping[str, int] | None
    clock_offset_ms: int
    publish_per_min: int
    held: int
    created: int
    waiting: int
    acknowledged: int
    refused: int
    dropped: int
    sentence: str
    next_try_s: float | None
    in_class: bool = False
    """Whether the owner joined as a student and this relay is a class's."""
    learning: bool | None = None
    """Whether its teacher lets everybody learn; None outside a class, or before it is known."""
