"""Bringing a pack's files here: continued where they stopped, counted to the byte, and believed by their
digest.

A file grows as NAME.part and gets its name when its SHA-256 is right, so whatever ends this process, nothing
that came is lost and nothing wrong is kept. Proxies are those of the system (HTTPS_PROXY and what Windows and
macOS say)."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urljoin

import aiohttp

from app.packs.connection import READ, Fault, Patience, check_status, fault, host_of, session
from app.packs.errors import PackError, disk
from app.packs.manifest import Manifest, Wheel, is_address


class Piece(Protocol):
    """A file of known size and digest. `file` is a plain name."""

    @property
    def file(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def sha256(self) -> str: ...


Tell = Callable[[int, str], None]
"""Bytes that are here, of all wheels, and the file they belong to."""
Waiting = Callable[[str, float], None]
"""Why it pauses, and for how long."""


def fetch(
    manifest: Manifest,
    wheels: tuple[Wheel, ...],
    base: str,
    to: Path,
    tell: Tell,
    waiting: Waiting,
    patience: Patience | None = None,
) -> None:
    """All `wheels` into `to`, whole and right. Raises PackError; what has come is kept."""
    try:
        to.mkdir(parents=True, exist_ok=True)
        missing, have = [], 0
        for wheel in wheels:
            if right(to / wheel.file, wheel):
                have += wheel.size
                tell(have, wheel.file)
            else:
                missing.append(wheel)
        if not is_address(base):
            missing = _beside(missing, Path(base), to, have, tell)
        if missing:
            asyncio.run(
                _all(manifest, missing, base, to, sum(wheel.size for wheel in wheels), tell, waiting, patience)
            )
    except OSError as error:
        raise disk(error, to) from error


def take(wheels: tuple[Wheel, ...], folder: Path, tell: Tell) -> None:
    """Whether a folder holds all of them: what an offline installer brings. Raises PackError."""
    have = 0
    for wheel in wheels:
        path = folder / wheel.file
        if not path.is_file():
            raise PackError(
                f"{wheel.file} is not in {folder}: copy all files of the pack there, then try again."
            )
        if not right(path, wheel):
            raise PackError(f"{path} is damaged or another file than the manifest names: copy it there anew.")
        have += wheel.size
        tell(have, wheel.file)


def bring(
    piece: Piece,
    sources: list[str],
    to: Path,
    heard: Callable[[int], None],
    waiting: Waiting,
    patience: Patience | None = None,
) -> Path:
    """One file into the folder `to`, whole and right, from the first of these addresses that gives it; what
    has come is kept. Raises PackError, and OSError for what the disk refuses."""

    async def work() -> None:
        chosen = patience or Patience()
        async with session(chosen) as client:
            await _one(client, piece, sources, to, heard, waiting, chosen)

    path = to / piece.file
    to.mkdir(parents=True, exist_ok=True)
    if not right(path, piece):
        asyncio.run(work())
    return path


def part_of(folder: Path, wheel: Piece) -> Path:
    """The file that a wheel grows in. Another digest has another."""
    return folder / f"{wheel.file}.{wheel.sha256[:12]}.part"


def right(path: Path, wheel: Piece) -> bool:
    """Whether the file is there, to the byte."""
    if not path.is_file() or path.stat().st_size != wheel.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == wheel.sha256


def _beside(wheels: list[Wheel], folder: Path, to: Path, have: int, tell: Tell) -> list[Wheel]:
    """Copies what lies beside a manifest on this disk, and returns the rest."""
    rest = []
    for wheel in wheels:
        if is_address(wheel.url):
            rest.append(wheel)
            continue
        part = part_of(to, wheel)
        try:
            shutil.copyfile(folder / wheel.url, part)
        except FileNotFoundError:
            raise PackError(
                f"{wheel.url} is not in {folder}: copy all files of the pack there, then try again."
            ) from None
        if not right(part, wheel):
            part.unlink()
            raise PackError(f"{folder / wheel.url} is damaged or another file: copy it there anew.")
        part.replace(to / wheel.file)
        have += wheel.size
        tell(have, wheel.file)
    return rest


async def _all(
    manifest: Manifest,
    missing: list[Wheel],
    base: str,
    to: Path,
    total: int,
    tell: Tell,
    waiting: Waiting,
    patience: Patience | None,
) -> None:
    patience = patience or Patience()
    before = total - sum(wheel.size for wheel in missing)
    async with session(patience) as client:
        for wheel in missing:
            first = wheel.url if is_address(wheel.url) else urljoin(base, quote(wheel.url))
            sources = [first, *(f"{mirror.rstrip('/')}/{quote(wheel.file)}" for mirror in manifest.mirrors)]

            def heard(count: int, name: str = wheel.file, before: int = before) -> None:
                tell(before + count, name)

            await _one(client, wheel, sources, to, heard, waiting, patience)
            before += wheel.size


async def _one(
    client: aiohttp.ClientSession,
    wheel: Piece,
    sources: list[str],
    to: Path,
    heard: Callable[[int], None],
    waiting: Waiting,
    patience: Patience,
) -> None:
    """One wheel, from whichever source gives it. Attempts that brought something do not count."""
    part, failures, damaged, at = part_of(to, wheel), 0, 0, 0
    while True:
        had = part.stat().st_size if part.exists() else 0
        try:
            await _attempt(client, wheel, sources[at % len(sources)], part, heard)
            part.replace(to / wheel.file)
            return
        except Fault as caught:
            came = (part.stat().st_size if part.exists() else 0) > had
            failures = 1 if came else failures + 1
            damaged += caught.damaged
            if not caught.again:
                sources = [source for source in sources if source != sources[at % len(sources)]]
            elif not came:
                at += 1
            if not sources or damaged > 2 or failures >= patience.attempts:
                raise
            if caught.again:
                pause = patience.pause_s(failures, caught.wait_s)
                waiting(str(caught), pause)
                await asyncio.sleep(pause)


async def _attempt(
    client: aiohttp.ClientSession, wheel: Piece, source: str, part: Path, heard: Callable[[int], None]
) -> None:
    """Continues a part to its end. Raises Fault; the part stays unless it is worth nothing."""
    with part.open("ab+", buffering=0) as file:
        digest, count = _again(file, wheel)
        heard(count)
        if count < wheel.size:
            headers = {"Range": f"bytes={count}-"} if count else {}
            try:
                async with client.get(source, headers=headers) as response:
                    check_status(response, source)
                    if count and not _begins_at(response, count):
                        file.truncate(0)  # a host that knows no ranges gives everything again
                        digest, count = hashlib.sha256(), 0
                    async for chunk in response.content.iter_chunked(READ):
                        if count + len(chunk) > wheel.size:
                            file.truncate(0)
                            raise _damaged(wheel, source)
                        _write(file, chunk)
                        digest.update(chunk)
                        count += len(chunk)
                        heard(count)
            except (aiohttp.ClientError, TimeoutError) as error:
                raise fault(error, source) from error
        if count < wheel.size:
            raise Fault(
                f"{host_of(source)} ended the connection early; what has come is kept, and it can go on.",
                again=True,
            )
        os.fsync(file.fileno())
        if digest.hexdigest() != wheel.sha256:
            file.truncate(0)
            raise _damaged(wheel, source)


def _again(file: Any, wheel: Piece) -> tuple[Any, int]:
    """The digest and the bytes of what an earlier attempt left. Too much of it is worth nothing."""
    digest, count = hashlib.sha256(), 0
    file.seek(0)
    while chunk := file.read(READ):
        digest.update(chunk)
        count += len(chunk)
    if count > wheel.size:
        file.truncate(0)
        return hashlib.sha256(), 0
    return digest, count


def _write(file: Any, chunk: bytes) -> None:
    """All of it: a raw file may take less, on a disk that is nearly full."""
    view = memoryview(chunk)
    while view:
        view = view[file.write(view) :]


def _damaged(wheel: Piece, source: str) -> Fault:
    return Fault(
        f"{wheel.file} from {host_of(source)} is damaged or another file than the manifest names, and was not "
        "used: "
        "try again later.",
        again=True,
        damaged=True,
    )


def _begins_at(response: aiohttp.ClientResponse, start: int) -> bool:
    found = re.match(r"bytes ([0-9]+)-", response.headers.get("Content-Range", ""))
    return response.status == 206 and found is not None and int(found[1]) == start
