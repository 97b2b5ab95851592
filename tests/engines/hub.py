"""A stand-in for a model hub's HTTP interface: real sockets, two hosts (the hub, and the store it redirects
to), faults on demand. It answers as the hub does: /api/models/ID/revision/R?blobs=true, /ID/resolve/R/FILE."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.hosting import FaultyHost, serving_routes

COMMIT = "0123456789abcdef0123456789abcdef01234567"

Answer = web.StreamResponse


@dataclass
class Asked:
    """A request that came."""

    host: str
    path: str
    range: str
    token: str
    agent: str


@dataclass
class StandIn(FaultyHost):
    """Large files (LFS) are those of at least `large` bytes."""

    id: str = "Some/Model"
    commit: str = COMMIT
    large: int = 20_000
    store: str = ""
    file_status: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    token: str = ""
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
        return await self.tagged(request, name)

    async def stored(self, request: web.Request) -> Answer:
        self.note(request, "store")
        return await self.tagged(request, request.match_info["file"])

    async def tagged(self, request: web.Request, name: str) -> Answer:
        digest = hashlib.sha256(self.files[name]).hexdigest()
        return await self.send(request, name, {"ETag": f'"{digest}"', "Accept-Ranges": "bytes"})


@contextmanager
def serving(stand_in: StandIn) -> Iterator[StandIn]:
    """Both hosts."""
    model = "{id:[^/]+/[^/]+}"
    with serving_routes(
        [
            web.get(f"/api/models/{model}/revision/{{revision}}", stand_in.model),
            web.get(f"/{model}/resolve/{{revision}}/{{file}}", stand_in.resolve),
        ],
        [web.get("/store/{file}", stand_in.stored)],
    ) as (stand_in.url, stand_in.store):
        yield stand_in


def model_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
