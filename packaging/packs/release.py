"""Makes an engine pack's manifest: what pip would install, with URL, size and digest, signed."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

import aiohttp
import msgspec
from resolving import ReleaseError, ResolvedFile, least, locked, output, resolve

from app.common import fetch, signing
from app.install.packs.manifest import PackManifest, Trust, normalise_name, offer, read_manifest
from app.install.packs.offered import load_manifest
from app.install.signed import is_address, this_platform

AT_ONCE = 8
"""Maximum requests for file sizes at a time."""
Row = dict[str, Any]
"""A wheel of a manifest, as plain data."""


class PackContents(NamedTuple):
    """The contents of a pack: names of packages, patterns for names of PyTorch's dependencies to include, and
    names to leave out."""

    names: frozenset[str]
    patterns: tuple[str, ...]
    left_out: frozenset[str]

    @classmethod
    def read(cls, files: Sequence[Path], without: Sequence[str]) -> PackContents:
        words = [
            plain_pattern(line.partition("#")[0].strip())
            for file in files
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
        left_out = frozenset(normalise_name(name) for name in without)
        names = frozenset(word for word in words if word and "*" not in word) - left_out
        return cls(names, tuple(word for word in words if "*" in word), left_out)


class PackRequest(NamedTuple):
    """The pack to make. `requirements`, if any, replace `listed`; `pins` are files with the versions of
    `listed`. With a `system` such as "linux-x86_64", uv resolves and `pythons` are versions; with an empty
    one pip resolves and they are interpreters. `disk` is 0 to compute it from the files."""

    name: str
    version: str
    title: str
    requirements: Sequence[Path]
    listed: PackContents
    pins: Sequence[Path]
    imports: tuple[str, ...]
    system: str
    pythons: Sequence[str]
    uv: str
    disk: int
    mirrors: tuple[str, ...]
    carry: bool


def make(wanted: PackRequest, secret: bytes, out: Path, more: Sequence[str]) -> PackManifest:
    """Writes NAME.json and NAME.json.sig into `out`, with the files that the pack brings itself, and returns
    the manifest. `more` are options for pip or uv. Raises ReleaseError, and InstallError for a manifest that
    the app would not accept."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        asked = [(path, True) for path in wanted.requirements] or _chosen(wanted, Path(work))
        resolved: dict[str, list[ResolvedFile]] = {}
        for python in wanted.pythons:
            rows = [
                found
                for requirements, whole in asked
                for found in _resolved(wanted, python, requirements, whole, more)
            ]
            resolved[python if wanted.system else _version(python)] = rows
    for rows in resolved.values():
        _check_torch(wanted, rows)
    wheels = merged(resolved, _sizes({found.url for rows in resolved.values() for found in rows}))
    for row in wheels:
        if row["url"].startswith("file:"):
            shutil.copyfile(url2pathname(urlsplit(row["url"]).path), out / row["file"])
            row["url"] = row["file"]
    most = max(sum(row["size"] for row in wheels if one in row.get("pythons", [one])) for one in resolved)
    system, _, machine = (wanted.system or "-".join(this_platform())).partition("-")
    facts: dict[str, Any] = {
        "kind": "shoal-pack-1",
        "name": wanted.name,
        "version": wanted.version,
        "title": wanted.title,
        "made": int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()),
        "system": system,
        "machine": machine,
        "least": least(row["file"] for row in wheels),
        "pythons": list(resolved),
        "disk": wanted.disk or 5 * most,
        "imports": wanted.imports,
        "mirrors": wanted.mirrors,
        "wheels": wheels,
    }
    if wanted.carry:
        carried = msgspec.json.decode(msgspec.json.encode(facts), type=PackManifest)
        orders = [fetch.PieceOrder(wheel, wheel.addresses("", wanted.mirrors)) for wheel in carried.wheels]
        fetch.download(orders, out, _say, lambda why, _: print(why, file=sys.stderr))
        facts["wheels"] = [{**row, "url": row["file"]} for row in wheels]
    content = msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n"
    signature = signing.sign(secret, content).hex().encode() + b"\n"
    made = read_manifest(content, signature, (public_key(secret),)).manifest
    (out / f"{wanted.name}.json").write_bytes(content)
    (out / f"{wanted.name}.json.sig").write_bytes(signature)
    return made


def _chosen(wanted: PackRequest, work: Path) -> list[tuple[Path, bool]]:
    """Writes requirement files for what is listed; returns each with whether its dependencies are followed.
    Raises ReleaseError for a name without a version."""
    pinned = {
        normalise_name(found[0]): line
        for file in wanted.pins
        for line in (row.partition("#")[0].strip() for row in file.read_text(encoding="utf-8").splitlines())
        if (found := re.match(r"[A-Za-z0-9._-]+", line))
    }
    if unknown := sorted(wanted.listed.names - pinned.keys()):
        raise ReleaseError(f"{', '.join(unknown)} has no version in packaging/requirements: add it there.")
    exact = work / "exact.txt"
    exact.write_text("".join(f"{pinned[name]}\n" for name in sorted(wanted.listed.names)), encoding="utf-8")
    if not wanted.listed.patterns:
        return [(exact, False)]
    whole = work / "whole.txt"
    whole.write_text(f"{pinned['torch']}\n", encoding="utf-8")
    return [(exact, False), (whole, True)]


def _check_torch(wanted: PackRequest, rows: Sequence[ResolvedFile]) -> None:
    """Raises ReleaseError unless PyTorch's build fits the pack: an index's default build is for NVIDIA cards on
    Linux, and for processors elsewhere."""
    version = next((row.version for row in rows if row.name == "torch"), "")
    linux = (wanted.system or this_platform()[0]).startswith("linux")
    cards = "+cpu" not in version if linux else "+cu" in version
    if version and wanted.name == "cpu" and cards:
        raise ReleaseError(f"torch {version} is for NVIDIA cards: give uv --torch-backend cpu for this pack.")
    if version and wanted.name == "cuda" and not cards:
        raise ReleaseError(f"torch {version} is for processors: give uv --torch-backend cu130 for this pack.")


def _resolved(
    wanted: PackRequest, python: str, requirements: Path, whole: bool, more: Sequence[str]
) -> list[ResolvedFile]:
    options = [*more, *([] if whole else ["--no-deps"])]
    if wanted.system:
        rows = locked(wanted.uv, wanted.system, python, requirements, options)
    else:
        rows = resolve(python, requirements, options)
    if wanted.requirements:
        return [row for row in rows if normalise_name(row.name) not in wanted.listed.left_out]
    if not whole:
        return [row for row in rows if normalise_name(row.name) in wanted.listed.names]
    return [
        row for row in rows if any(fnmatchcase(normalise_name(row.name), one) for one in wanted.listed.patterns)
    ]


def merged(resolved: dict[str, list[ResolvedFile]], sizes: dict[str, int]) -> list[Row]:
    """Returns one row per file, with the Python versions that need it; without that field if all do."""
    takers: dict[ResolvedFile, list[str]] = {}
    for python, rows in resolved.items():
        for found in dict.fromkeys(rows):
            takers.setdefault(found, []).append(python)
    return [
        {
            "name": found.name,
            "version": found.version,
            "file": found.file,
            "url": found.url,
            "size": sizes[found.url],
            "sha256": found.sha256,
            **({"pythons": pythons} if len(pythons) < len(resolved) else {}),
        }
        for found, pythons in sorted(takers.items(), key=lambda item: (normalise_name(item[0].name), item[1]))
    ]


def write_trust(keys: tuple[str, ...], manifests: dict[str, str], described: Sequence[Path], to: Path) -> None:
    """Writes the file from which the app reads the public keys, the packs' URLs and their sizes. `described`:
    the manifests with the sizes. Raises InstallError for a manifest not signed with `keys`, and ReleaseError
    for one without a URL."""
    found = [load_manifest(str(path), keys).manifest for path in described]
    if strange := [one.name for one in found if one.name not in manifests]:
        raise ReleaseError(f"{', '.join(strange)} has no address: give one with --manifest.")
    offers = {one.name: offer(one) for one in found}
    to.write_bytes(Trust(keys=keys, manifests=manifests, offers=offers).encode())


def secret(path: Path) -> bytes:
    """Reads a secret key from a file. Raises ReleaseError."""
    try:
        found = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        found = b""
    if len(found) != 32:
        raise ReleaseError(f"{path} holds no secret key: make one with packaging/packs/make keys.")
    return found


def public_key(secret: bytes) -> str:
    return signing.public_key(secret).hex()


def _sizes(urls: set[str]) -> dict[str, int]:
    """Returns the sizes of files by URL, of remote ones by asking their hosts. Raises ReleaseError."""
    local = {
        url: Path(url2pathname(urlsplit(url).path)).stat().st_size for url in urls if url.startswith("file:")
    }
    return local | asyncio.run(_asked(sorted(url for url in urls if is_address(url))))


async def _asked(urls: list[str]) -> dict[str, int]:
    gate = asyncio.Semaphore(AT_ONCE)
    timeout = aiohttp.ClientTimeout(total=120)
    headers = {"Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(trust_env=True, timeout=timeout, headers=headers) as session:

        async def ask(url: str) -> int:
            async with gate, session.head(url, allow_redirects=True) as response:
                length = response.headers.get("Content-Length", "")
                if response.status != 200 or not length.isdigit():
                    raise ReleaseError(
                        f"{url} does not say how large it is ({response.status}): try again later."
                    )
                return int(length)

        try:
            return dict(zip(urls, await asyncio.gather(*map(ask, urls)), strict=True))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ReleaseError(f"A host cannot be asked for sizes ({error}): try again later.") from error


def plain_pattern(text: str) -> str:
    return text if "*" in text else normalise_name(text)


def _version(python: str) -> str:
    return output([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()


def _say(piece: fetch.Piece, have: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{have / 1e6:,.0f} MB {piece.file}", end="", file=sys.stderr)
