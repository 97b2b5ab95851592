"""Groups on their way into the backplane: while one is under way, neither its id nor its author's number may be
sent again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine
from typing import Any

from app.relay.presence.tally import RelayTally
from app.relay.store.backplane import CheckedGroup
from app.relay.store.window import Added


class Flights:
    """The groups of one relay that are under way. How long they took is noted in `tally`."""

    def __init__(self, tally: RelayTally) -> None:
        self._tally = tally
        self._flights: dict[bytes | tuple[bytes, int], asyncio.Future[Added]] = {}
        """By id and by key and number."""

    def same(self, record: CheckedGroup) -> Coroutine[Any, Any, Added] | None:
        """The answer to a group whose id or number is on its way already; None where neither is."""
        flights = self._flights
        same = flights and (flights.get(record.id) or flights.get((record.key, record.key_seq)))
        return _as_duplicate(same) if same else None

    def begin(self, record: CheckedGroup, added: Awaitable[Added]) -> Coroutine[Any, Any, Added]:
        """What becomes of it; to give up waiting for that does not undo the publishing."""
        names = (record.id, (record.key, record.key_seq))
        began = time.perf_counter()
        flight = asyncio.ensure_future(added)
        for name in names:
            self._flights[name] = flight

        def landed(flight: asyncio.Future[Added]) -> None:
            for name in names:
                self._flights.pop(name, None)
            # The exception has been seen then, also when nobody waits any more.
            if not flight.cancelled() and flight.exception() is None:
                self._tally.waited += 1
                self._tally.waited_s += time.perf_counter() - began

        flight.add_done_callback(landed)
        return _outcome(flight)


async def _outcome(flight: asyncio.Future[Added]) -> Added:
    return await asyncio.shield(flight)


async def _as_duplicate(flight: asyncio.Future[Added]) -> Added:
    added = await asyncio.shield(flight)
    return "duplicate" if added == "accepted" else added
