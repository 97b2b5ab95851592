"""Whether a node may work just now. It opens and closes as the rules say; the node waits for either."""

from __future__ import annotations

import asyncio


class Gate:
    """For one event loop; `put` may be called from anywhere within it."""

    def __init__(self, open: bool = True) -> None:
        self._open, self._closed = asyncio.Event(), asyncio.Event()
        self.put(open)

    @property
    def open(self) -> bool:
        return self._open.is_set()

    def put(self, open: bool) -> None:
        """Opens or closes it."""
        now, other = (self._open, self._closed) if open else (self._closed, self._open)
        other.clear()
        now.set()

    async def opened(self) -> None:
        """Returns when it is open."""
        await self._open.wait()

    async def closed(self) -> None:
        """Returns when it is closed."""
        await self._closed.wait()
