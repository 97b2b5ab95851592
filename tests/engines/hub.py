"""A stand-in for a model hub's HTTP interface: real sockets, two hosts (the hub, and the store it redirects
to), faults on demand. It answers as the hub does: /api/models/ID/revision/R?blobs=true, /ID/resolve/R/FILE."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SLICE = 2**14

Answer = web.StreamResponse
Fault = Callable[[web.Request, bytes], "Answer | None"]


@dataclass
class Asked:
    """A request that came."""

    host: str
    path: str
    range: str
    token: str
    agent: str


@dataclass
class StandIn:
    """`files` by name; large ones (LFS) are those of at least `large` bytes. `cut` ends a body after so many
    bytes, once for each entry; `status` answers these before anything else; `slow_s` follows each slice."""

    files: dict[str, bytes]
    id: str = "Some/Model"
    commit: str = COMMIT
    large: int = 20_000
    url: str = ""
    store: str = ""
    cut: dict[str, list[int]] = field(default_factory=dict)
    corrupt: dict[str, int] = field(default_factory=dict)
    """So many answers for that file have a wrong byte."""
    status: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    file_status: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    ranges: bool = True
    compress: bool = False
    slow_s: float = 0.0
    token: str = ""
    hang_s: float = 0.0
    """Every body stops there for so long, once it has sent a slice."""
    claims: dict[str, int] = field(default_factory=dict)
    """Sizes that the description lies about."""
    asked: list[Asked] = field(default_factory=list)

    def note(self, request: web.Request, host: str) -> None:
        self.asked.append(
            Asked(
                host,
                request.path,
                request.headers.get("Range", ""),
                request.headers.get("Authorization", ""),
                request.headers.get("User-Agent", ""),
            )
        )

    def describe(self) -> dict[str, Any]:
        siblings = []
        for name, content in self.files.items():
            row: dict[str, Any] = {
                "rfilename": name,
                "size": self.claims.get(name, len(content)),
                "blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
            }
            if len(content) >= self.large:
                row["lfs"] = {
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "size": row["size"],
                    "pointerSize": 134,
                }
            siblings.append(row)
        return {"id": self.id, "modelId": self.id, "sha": self.commit, "private": False, "siblings": siblings}

    async def model(self, request: web.Request) -> Answer:
        self.note(request, "hub")
        if (refused := self.refusal(request, self.status)) is not None:
            return refused
        if request.match_info["id"] != self.id:
            return web.Response(status=404, headers={"X-Error-Code": "RepoNotFound"})
        if request.match_info["revision"] not in ("main", self.commit):
            return web.Response(status=404, headers={"X-Error-Code": "RevisionNotFound"})
        return web.json_response(self.describe())

    def refusal(self, request: web.Request, waiting: list[tuple[int, dict[str, str]]]) -> Answer | None:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            code = {"X-Error-Code": "GatedRepo"} if "Authorization" not in request.headers else {}
            message = {} if code else {"X-Error-Message": "Invalid credentials in Authorization header"}
            return web.Response(status=401, headers={**code, **message})
        if waiting:
            status, headers = waiting.pop(0)
            return web.Response(status=status, headers=headers)
        return None

    async def resolve(self, request: web.Request) -> Answer:
        self.note(request, "hub")
        if (refused := self.refusal(request, self.file_status)) is not None:
            return refused
        name = request.match_info["file"]
        if name not in self.files or request.match_info["revision"] != self.commit:
            return web.Response(status=404, headers={"X-Error-Code": "EntryNotFound"})
        if len(self.files[name]) >= self.large:
            raise web.HTTPFound(f"{self.store}/store/{name}", headers={"X-Repo-Commit": self.commit})
        return await self.send(request, name)

    async def stored(self, request: web.Request) -> Answer:
        self.note(request, "store")
        return await self.send(request, request.match_info["file"])

    async def send(self, request: web.Request, name: str) -> Answer:
        content = self.files[name]
        if self.corrupt.get(name, 0) > 0:
            self.corrupt[name] -= 1
            middle = len(content) // 2
            content = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        start, wanted = 0, request.headers.get("Range", "")
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "Accept-Ranges": "bytes"}
        if wanted and self.ranges:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            if start >= len(content):
                return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[start:]
        if self.compress and "gzip" in request.headers.get("Accept-Encoding", ""):
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        response.content_length = len(body)
        await response.prepare(request)
        end = self.cut[name].pop(0) if self.cut.get(name) else None
        sent = 0
        while sent < len(body):
            piece = body[sent : sent + SLICE]
            if end is not None and sent + len(piece) > end:
                await response.write(piece[: end - sent])
                assert request.transport is not None
                request.transport.close()
                return response
            await response.write(piece)
            sent += len(piece)
            if self.hang_s:
                await asyncio.sleep(self.hang_s)
                self.hang_s = 0.0
            if self.slow_s:
                await asyncio.sleep(self.slow_s)
        return response


@contextmanager
def serving(stand_in: StandIn) -> Iterator[StandIn]:
    """Both hosts in a thread, on ports that the system chose."""
    loop = asyncio.new_event_loop()
    runners: list[web.AppRunner] = []

    async def start() -> None:
        for routes in (
            [
                web.get("/api/models/{id:[^/]+/[^/]+}/revision/{revision}", stand_in.model),
                web.get("/{id:[^/]+/[^/]+}/resolve/{revision}/{file}", stand_in.resolve),
            ],
            [web.get("/store/{file}", stand_in.stored)],
        ):
            application = web.Application()
            application.add_routes(routes)
            runner = web.AppRunner(application, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            runners.append(runner)
        ports = [runner.addresses[0][1] for runner in runners]
        stand_in.url, stand_in.store = (f"http://127.0.0.1:{port}" for port in ports)

    ready = threading.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        ready.set()
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(120)
    try:
        yield stand_in
    finally:

        async def stop() -> None:
            for runner in runners:
                await runner.cleanup()

        asyncio.run_coroutine_threadsafe(stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def model_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


def wait_until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)
