"""Which files a pack consists of: what pip would install, with address, size and digest, signed."""

from __future__ import annotations

import asyncio
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import aiohttp
import msgspec
import nacl.signing

from app.packs import fetch
from app.packs.manifest import Manifest, Trust, is_address, offer, plain, read
from app.packs.source import load

AT_ONCE = 8
"""Hosts are asked for so many sizes at a time."""
_LEAST = re.compile(r"(?:manylinux|macosx)_(\d+)_(\d+)_")
_OLDER = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


Row = dict[str, Any]
"""A wheel of a manifest, as plain data."""


class ReleaseError(Exception):
    """Says what is missing and what to do, in one sentence."""


class Wanted(NamedTuple):
    """`parts` are requirement files with the options that pip gets for each; `pythons` are interpreters, the
    preferred first; `disk` is 0 where it follows from the files."""

    name: str
    version: str
    title: str
    parts: Sequence[tuple[Path, Sequence[str]]]
    without: set[str]
    imports: tuple[str, ...]
    pythons: Sequence[str]
    disk: int
    mirrors: tuple[str, ...]
    carry: bool


class Found(NamedTuple):
    """What pip would install."""

    name: str
    version: str
    url: str
    sha256: str

    @property
    def file(self) -> str:
        return unquote(urlsplit(self.url).path).rpartition("/")[2]


def make(wanted: Wanted, secret: bytes, out: Path, pips: Sequence[str]) -> Manifest:
    """Writes NAME.json and NAME.json.sig into `out`, and the files that the pack brings itself. Raises
    ReleaseError and what app.packs says about a manifest that it would not take."""
    out.mkdir(parents=True, exist_ok=True)
    resolved = {}
    for python in wanted.pythons:
        version = _version(python)
        resolved[version] = [
            found
            for requirements, options in wanted.parts
            for found in resolve(python, requirements, [*options, *pips])
            if plain(found.name) not in {plain(name) for name in wanted.without}
        ]
    wheels = merged(resolved, _sizes({found.url for rows in resolved.values() for found in rows}))
    for row in wheels:
        if row["url"].startswith("file:"):
            shutil.copyfile(url2pathname(urlsplit(row["url"]).path), out / row["file"])
            row["url"] = row["file"]
    most = max(sum(row["size"] for row in wheels if one in row.get("pythons", [one])) for one in resolved)
    facts: dict[str, Any] = {
        "kind": "shoal-pack-1",
        "name": wanted.name,
        "version": wanted.version,
        "title": wanted.title,
        "system": {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux"),
        "machine": {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine()),
        "least": least(row["file"] for row in wheels),
        "pythons": list(resolved),
        "disk": wanted.disk or 5 * most,
        "imports": wanted.imports,
        "mirrors": wanted.mirrors,
        "wheels": wheels,
    }
    if wanted.carry:
        carried = msgspec.json.decode(msgspec.json.encode(facts), type=Manifest)
        fetch.fetch(carried, carried.wheels, str(out), out, _say, lambda why, _: print(why, file=sys.stderr))
        facts["wheels"] = [{**row, "url": row["file"]} for row in wheels]
    content = msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n"
    signature = nacl.signing.SigningKey(secret).sign(content).signature.hex().encode() + b"\n"
    made = read(content, signature, (public_key(secret),)).manifest
    (out / f"{wanted.name}.json").write_bytes(content)
    (out / f"{wanted.name}.json.sig").write_bytes(signature)
    return made


def resolve(python: str, requirements: Path, options: Sequence[str]) -> list[Found]:
    """What this Python's pip would install for a requirement file: wheels only. Raises ReleaseError."""
    fixed = [
        "--dry-run",
        "--ignore-installed",
        "--quiet",
        "--no-input",
        "--only-binary",
        ":all:",
        "--report",
        "-",
    ]
    report = json.loads(_run([python, "-m", "pip", "install", *fixed, *options, "-r", str(requirements)]))
    rows = []
    for one in report["install"]:
        info: dict[str, Any] = one["download_info"]
        digest = info.get("archive_info", {}).get("hashes", {}).get("sha256", "")
        name = one["metadata"]["name"]
        if not digest and not info["url"].startswith("file:"):
            raise ReleaseError(f"The index names no SHA-256 for {name}: take one that does.")
        found = Found(name, one["metadata"]["version"], info["url"], digest or _digest(info["url"]))
        if not found.file.endswith(".whl"):
            raise ReleaseError(
                f"There is no wheel of {name} {found.version} for {python}: build one, then add it."
            )
        rows.append(found)
    return rows


def merged(resolved: dict[str, list[Found]], sizes: dict[str, int]) -> list[Row]:
    """Each file once, with the Pythons it is for; none where all take it."""
    takers: dict[Found, list[str]] = {}
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
        for found, pythons in sorted(takers.items(), key=lambda item: (plain(item[0].name), item[1]))
    ]


def least(files: Iterable[str]) -> str:
    """The oldest system that can use all of these: glibc's version on Linux, macOS's own; empty where none is
    named.

    >>> least(["a-1-py3-none-any.whl", "b-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    ...        "c-1-cp311-cp311-manylinux_2_28_x86_64.whl"]), least(["a-1-py3-none-any.whl"])
    ('2.28', '')
    """
    needed = []
    for file in files:
        tags = file.removesuffix(".whl").rpartition("-")[2].split(".")
        versions = [(int(found[1]), int(found[2])) for tag in tags if (found := _LEAST.match(tag))]
        versions += [version for tag in tags for name, version in _OLDER.items() if tag.startswith(f"{name}_")]
        needed += [min(versions)] if versions else []
    return "{}.{}".format(*max(needed)) if needed else ""


def trust(keys: tuple[str, ...], manifests: dict[str, str], described: Sequence[Path], to: Path) -> None:
    """What the app reads to know whom to believe, where packs are, and what to tell of them. `described` are
    manifests. Raises PackError for one that is not theirs, and ReleaseError for one that has no address."""
    found = [load(str(path), keys).manifest for path in described]
    if strange := [one.name for one in found if one.name not in manifests]:
        raise ReleaseError(f"{', '.join(strange)} has no address: give one with --manifest.")
    offers = {one.name: offer(one) for one in found}
    content = msgspec.json.encode(Trust(keys=keys, manifests=manifests, offers=offers))
    to.write_bytes(msgspec.json.format(content, indent=1) + b"\n")


def secret(path: Path) -> bytes:
    """Raises ReleaseError."""
    try:
        found = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        found = b""
    if len(found) != 32:
        raise ReleaseError(f"{path} holds no secret key: make one with packaging/packs/make keys.")
    return found


def public_key(secret: bytes) -> str:
    return bytes(nacl.signing.SigningKey(secret).verify_key).hex()


def _sizes(urls: set[str]) -> dict[str, int]:
    """Of files on other hosts by asking, of those on this disk by looking. Raises ReleaseError."""
    here = {
        url: Path(url2pathname(urlsplit(url).path)).stat().st_size for url in urls if url.startswith("file:")
    }
    return here | asyncio.run(_asked(sorted(url for url in urls if is_address(url))))


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


def _version(python: str) -> str:
    return _run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()


def _digest(url: str) -> str:
    import hashlib

    with open(url2pathname(urlsplit(url).path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _say(have: int, file: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{have / 1e6:,.0f} MB {file}", end="", file=sys.stderr)


def _run(command: Sequence[str]) -> str:
    """Standard output. Raises ReleaseError with the last line of what went wrong."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise ReleaseError(
            f"{command[0]} does not start ({error.strerror}): name another with --python."
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing said"]
        raise ReleaseError(f"{' '.join(command[:4])} failed ({said[-1][:300]}).")
    return done.stdout
