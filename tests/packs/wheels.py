"""Small packs made here: real wheels, a signed manifest, and a host that gives them out and can misbehave."""

from __future__ import annotations

import base64
import hashlib
import platform
import shutil
import sys
import zipfile
from collections.abc import Iterator
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
from tests.hosting import FaultyHost, serving_routes

KEY = nacl.signing.SigningKey(bytes(range(32)))
KEYS = (bytes(KEY.verify_key).hex(),)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
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
class Host(FaultyHost):
    """Gives out packs."""

    portal: bool = False
    """A network's login page stands in front of everything."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Files and their Range."""

    def offer(self, content: object, name: str = "cpu.json") -> str:
        """Puts a manifest there and returns its address."""
        self.files[name], self.files[f"{name}.sig"] = encoded(content)
        return f"{self.url}/{name}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["file"]
        self.asked.append((name, request.headers.get("Range", "")))
        if self.status:
            status, headers = self.status.pop(0)
            return web.Response(status=status, headers=headers)
        if self.portal:
            return web.Response(text="<html>Log in first</html>", content_type="text/html")
        if name not in self.files:
            return web.Response(status=404)
        if request.method == "HEAD":
            return web.Response(headers={"Content-Length": str(len(self.files[name]))})
        return await self.send(request, name, {"Content-Type": "text/html"} if name.endswith(".html") else {})


@contextmanager
def serving(host: Host) -> Iterator[Host]:
    with serving_routes([web.get("/{file}", host.answer)]) as (host.url,):
        yield host


def write_out(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in with_uv(files).items():
        (folder / name).write_bytes(content)
    return folder
