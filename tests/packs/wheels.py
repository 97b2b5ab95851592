"""Small packs made here: real wheels, a signed manifest, and a host that gives them out and can misbehave."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import platform
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import nacl.signing
import pytest
from aiohttp import web

from app.install.packs.manifest import PackManifest, SignedManifest

KEY = nacl.signing.SigningKey(bytes(range(32)))
KEYS = (bytes(KEY.verify_key).hex(),)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SLICE = 2**14
ROOT = Path(__file__).parents[2]


def wheel(
    name: str, version: str = "1.0", *, fill: int = 20_000, code: str = "", program: str = ""
) -> tuple[str, bytes]:
    """A file name and its bytes: a package with a module, a script, and so many bytes that do not compress."""
    filler = hashlib.shake_128(name.encode()).digest(fill)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": (code or f"VERSION = {version!r}\n").encode(),
        f"{name}/filler.bin": filler,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if program:
        files[f"{name}-{version}.data/scripts/{name}"] = program.encode()
    rows = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}")
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,\n"]).encode()
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return f"{name}-{version}-py3-none-any.whl", out.getvalue()


@cache
def uv() -> Path:
    """uv as the launcher has installed it, or as it is on the PATH."""
    name = "uv.exe" if sys.platform == "win32" else "uv"
    found = next(ROOT.glob(f".venv-setup/uv-*/bin/{name}"), None) or shutil.which("uv")
    if found is None:
        pytest.skip("uv is not here: ./shoal test brings it")
    return Path(found)


@cache
def uv_wheel() -> tuple[str, bytes]:
    """A small wheel in uv's place, whose program hands everything on to uv."""
    return wheel("uv", program=f'#!/bin/sh\nexec "{uv()}" "$@"\n')


def with_uv(files: dict[str, bytes]) -> dict[str, bytes]:
    return dict([*files.items(), uv_wheel()])


def plain(files: dict[str, bytes], **changed: Any) -> dict[str, Any]:
    """A manifest as plain data: the files named beside it and uv, for this computer."""
    rows = []
    for file, content in ((name, body) for name, body in with_uv(files).items() if name.endswith(".whl")):
        name, version = file.split("-")[:2]
        digest = hashlib.sha256(content).hexdigest()
        row = {
            "name": name,
            "version": version,
            "file": file,
            "url": file,
            "size": len(content),
            "sha256": digest,
        }
        rows.append(row)
    return {
        "kind": "shoal-pack-1",
        "name": "cpu",
        "version": "1.0",
        "title": "The engine for tests",
        "system": {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux"),
        "machine": {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine()),
        "pythons": PYTHONS,
        "disk": 50_000_000,
        "wheels": rows,
        "imports": [row["name"] for row in rows if row["name"] != "uv"],
        **changed,
    }


def encoded(content: object, key: nacl.signing.SigningKey = KEY) -> tuple[bytes, bytes]:
    """A manifest's bytes and its signature."""
    raw = msgspec.json.encode(content)
    return raw, key.sign(raw).signature.hex().encode() + b"\n"


def signed(files: dict[str, bytes], base: str = "", **changed: Any) -> SignedManifest:
    raw = encoded(plain(files, **changed))[0]
    return SignedManifest(manifest=msgspec.json.decode(raw, type=PackManifest), content=raw, base=base)


@dataclass
class Host:
    """`cut` ends a body after so many bytes, once for each entry; `corrupt` makes so many answers wrong;
    `status` answers these first; `slow_s` follows each slice of 16 KB."""

    files: dict[str, bytes]
    url: str = ""
    cut: dict[str, list[int]] = field(default_factory=dict)
    corrupt: dict[str, int] = field(default_factory=dict)
    status: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    ranges: bool = True
    slow_s: float = 0.0
    longer: bool = False
    portal: bool = False
    """A network's login page stands in front of everything."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Files and their Range."""

    def offer(self, content: object, name: str = "cpu.json") -> str:
        """Puts a manifest there and returns its address."""
        self.files[name], self.files[f"{name}.sig"] = encoded(content)
        return f"{self.url}/{name}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name, wanted = request.match_info["file"], request.headers.get("Range", "")
        self.asked.append((name, wanted))
        if self.status:
            status, headers = self.status.pop(0)
            return web.Response(status=status, headers=headers)
        if self.portal:
            return web.Response(text="<html>Log in first</html>", content_type="text/html")
        if name not in self.files:
            return web.Response(status=404)
        content = self.files[name] + b"more" * self.longer
        if request.method == "HEAD":
            return web.Response(headers={"Content-Length": str(len(content))})
        if self.corrupt.get(name, 0) > 0:
            self.corrupt[name] -= 1
            content = content[:100] + bytes([content[100] ^ 1]) + content[101:]
        start, headers = 0, {"Content-Type": "text/html"} if name.endswith(".html") else {}
        if wanted and self.ranges:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[start:]
        response = web.StreamResponse(status=206 if "Content-Range" in headers else 200, headers=headers)
        response.content_length = len(body)
        await response.prepare(request)
        end = self.cut[name].pop(0) if self.cut.get(name) else len(body)
        for at in range(0, min(end, len(body)), SLICE):
            await response.write(body[at : min(at + SLICE, end)])
            if self.slow_s:
                await asyncio.sleep(self.slow_s)
        if end < len(body):
            assert request.transport is not None
            request.transport.close()
        return response


@contextmanager
def serving(host: Host) -> Iterator[Host]:
    """In a thread, on a port that the system chose."""
    loop = asyncio.new_event_loop()
    runner: list[web.AppRunner] = []

    async def start() -> None:
        application = web.Application()
        application.add_routes([web.get("/{file}", host.answer)])
        runner.append(web.AppRunner(application, shutdown_timeout=0.1))
        await runner[0].setup()
        await web.TCPSite(runner[0], "127.0.0.1", 0).start()
        host.url = f"http://127.0.0.1:{runner[0].addresses[0][1]}"

    ready = threading.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        ready.set()
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield host
    finally:
        asyncio.run_coroutine_threadsafe(runner[0].cleanup(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def wait_until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def write_out(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in with_uv(files).items():
        (folder / name).write_bytes(content)
    return folder
