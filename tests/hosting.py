"""A host of files on real sockets, in a thread, that cuts, corrupts and delays on demand."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

SLICE = 2**14


@dataclass
class FaultyHost:
    """`cut` ends a body after so many bytes, once for each entry; `corrupt` makes so many answers wrong;
    `status` answers these first; `slow_s` follows each slice of 16 KB; each body stops once for `hang_s`."""

    files: dict[str, bytes]
    url: str = ""
    cut: dict[str, list[int]] = field(default_factory=dict)
    corrupt: dict[str, int] = field(default_factory=dict)
    status: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    ranges: bool = True
    slow_s: float = 0.0
    hang_s: float = 0.0

    async def send(self, request: web.Request, name: str, headers: dict[str, str]) -> web.StreamResponse:
        content, start = self.files[name], 0
        if self.corrupt.get(name, 0) > 0:
            self.corrupt[name] -= 1
            middle = len(content) // 2
            content = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        if self.ranges and (wanted := request.headers.get("Range", "")):
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            if start >= len(content):
                return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[start:]
        response = web.StreamResponse(status=206 if "Content-Range" in headers else 200, headers=headers)
        response.content_length = len(body)
        await response.prepare(request)
        end = self.cut[name].pop(0) if self.cut.get(name) else len(body)
        for at in range(0, min(end, len(body)), SLICE):
            await response.write(body[at : min(at + SLICE, end)])
            await asyncio.sleep(self.hang_s or self.slow_s)
            self.hang_s = 0.0
        if end < len(body):
            assert request.transport is not None
            request.transport.close()
        return response


@contextmanager
def serving_routes(*hosts: Iterable[web.RouteDef]) -> Iterator[list[str]]:
    """Each host in a thread, on a port that the system chose; gives their addresses."""
    loop = asyncio.new_event_loop()
    runners: list[web.AppRunner] = []

    async def start() -> None:
        for routes in hosts:
            application = web.Application()
            application.add_routes(routes)
            runners.append(web.AppRunner(application, shutdown_timeout=0.1))
            await runners[-1].setup()
            await web.TCPSite(runners[-1], "127.0.0.1", 0).start()

    async def stop() -> None:
        for runner in runners:
            await runner.cleanup()

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(start(), loop).result(120)
        yield [f"http://127.0.0.1:{runner.addresses[0][1]}" for runner in runners]
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def wait_until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
