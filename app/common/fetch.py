"""Downloads files: resumes where the last attempt stopped, and checks size and digest.

A file is written as NAME.DIGEST.part and gets its name once its digest matches, so a killed process loses
nothing that arrived, and a wrong file is never kept. Proxies are the system's (HTTPS_PROXY and the settings of
Windows and macOS)."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import aiohttp

from app.common.connection import READ_BYTES, Fault, check_status, fault, host_of, session
from app.common.files import replace
from app.common.rate import RetryLimit


class Piece(Protocol):
    """A file of known size and digest. `digest` is "sha256:..." of its bytes, or "git:...", the SHA-1 of its
    git blob. `file` is a plain name without folders."""

    @property
    def file(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def digest(self) -> str: ...


class PieceOrder(NamedTuple):
    """A file to download, and the URLs that may have it, in order of preference."""

    piece: Piece
    sources: Sequence[str]


Heard = Callable[[Piece, int], object]
"""Called with a piece and the number of its bytes on disk."""
Waiting = Callable[[str, float], object]
"""Called before a pause with its reason and its length in seconds."""


def download(
    orders: Iterable[PieceOrder],
    to: Path,
    heard: Heard,
    waiting: Waiting,
    patience: RetryLimit | None = None,
    headers: Mapping[str, str] | None = None,
    came: Callable[[Piece], object] = lambda piece: None,
) -> None:
    """Downloads all pieces into the folder `to`, one after another. Files already there are kept, and partial
    ones resumed; `came` is called with each complete piece. `headers` are sent only to the first host of a URL,
    not to redirects. Raises Fault, and OSError if the disk refuses."""
    chosen = patience or RetryLimit()
    to.mkdir(parents=True, exist_ok=True)

    async def fetch(missing: list[PieceOrder]) -> None:
        async with session(chosen, headers) as client:
            for order in missing:
                await _one(client, order, to, heard, waiting, chosen)
                came(order.piece)

    missing = []
    for order in orders:
        if is_intact(to / order.piece.file, order.piece):
            heard(order.piece, order.piece.size)
            came(order.piece)
        else:
            missing.append(order)
    if missing:
        asyncio.run(fetch(missing))


def download_contents(
    questions: Iterable[tuple[str, int]],
    patience: RetryLimit,
    waiting: Waiting = lambda why, seconds: None,
    headers: Mapping[str, str] | None = None,
) -> list[bytes]:
    """Downloads small files, each given as (URL, maximum bytes), and returns their contents. Raises Fault."""

    async def work() -> list[bytes]:
        async with session(patience, headers) as client:
            return [
                await download_content(client, address, most, patience, waiting) for address, most in questions
            ]

    return asyncio.run(work())


async def download_content(
    client: aiohttp.ClientSession,
    address: str,
    most: int,
    patience: RetryLimit,
    waiting: Waiting = lambda why, seconds: None,
) -> bytes:
    """Downloads one file of at most `most` bytes and returns its content, retrying up to `patience`. Raises
    Fault."""
    failures = 0
    while True:
        try:
            return await _small(client, address, most)
        except Fault as caught:
            failures += 1
            if not caught.again or failures >= patience.attempts:
                raise
            await _pause(caught, failures, patience, waiting)


def copy_piece(source: Path, piece: Piece, to: Path) -> Path:
    """Copies a piece from a local file into the folder `to` and returns its path. Raises Fault if size or
    digest differ, and OSError."""
    part = partial_path(to, piece)
    shutil.copyfile(source, part)
    if not is_intact(part, piece):
        part.unlink()
        raise Fault(f"{source} is damaged or another file: copy it there again.", again=False, damaged=True)
    replace(part, to / piece.file)
    return to / piece.file


def partial_path(folder: Path, piece: Piece) -> Path:
    """Returns the path of a piece's partial file. Its name contains the digest, so another version never
    resumes it."""
    return folder / f"{piece.file}.{piece.digest.partition(':')[2][:12]}.part"


def is_intact(path: Path, piece: Piece) -> bool:
    """Returns whether `path` exists with the piece's size and digest."""
    if not path.is_file() or path.stat().st_size != piece.size:
        return False
    with path.open("rb") as file:
        return _again(file, piece).right


class _Digest:
    """Incremental hash of the bytes read so far, compared with the piece's digest."""

    def __init__(self, piece: Piece) -> None:
        kind, _, self._wanted = piece.digest.partition(":")
        self._hash: Any = hashlib.sha256() if kind == "sha256" else hashlib.sha1(usedforsecurity=False)
        if kind == "git":
            self._hash.update(b"blob %d\0" % piece.size)
        self.bytes = 0

    def update(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self.bytes += len(chunk)

    @property
    def right(self) -> bool:
        return bool(self._hash.hexdigest() == self._wanted)


async def _one(
    client: aiohttp.ClientSession,
    order: PieceOrder,
    to: Path,
    heard: Heard,
    waiting: Waiting,
    patience: RetryLimit,
) -> None:
    """Downloads one piece from the first source that works. Attempts that brought new bytes reset the failure
    count."""
    piece, sources = order.piece, list(order.sources)
    part, failures, damaged, at = partial_path(to, piece), 0, 0, 0
    for old in to.glob(f"{piece.file}.*.part"):
        if old != part:
            old.unlink()  # its host has another file of that name now
    while True:
        had = part.stat().st_size if part.exists() else 0
        try:
            await _attempt(client, piece, sources[at % len(sources)], part, heard)
            replace(part, to / piece.file)
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
                await _pause(caught, failures, patience, waiting)


async def _pause(caught: Fault, failures: int, patience: RetryLimit, waiting: Waiting) -> None:
    pause = patience.pause_s(failures, caught.wait_s)
    waiting(str(caught), pause)
    await patience.sleep(pause)


async def _attempt(client: aiohttp.ClientSession, piece: Piece, source: str, part: Path, heard: Heard) -> None:
    """Resumes a partial file from one source until it is complete and verified. Raises Fault; the partial file
    is emptied if its content is wrong."""
    with part.open("ab+", buffering=0) as file:
        digest = _again(file, piece)
        if digest.bytes > piece.size:
            file.truncate(0)
            digest = _Digest(piece)
        heard(piece, digest.bytes)
        if digest.bytes < piece.size:
            headers = {"Range": f"bytes={digest.bytes}-"} if digest.bytes else {}
            try:
                async with client.get(source, headers=headers) as response:
                    check_status(response, source)
                    if digest.bytes and not _begins_at(response, digest.bytes):
                        file.truncate(0)  # a host without range requests sends everything again
                        digest = _Digest(piece)
                    async for chunk in response.content.iter_chunked(READ_BYTES):
                        if digest.bytes + len(chunk) > piece.size:
                            file.truncate(0)
                            raise _damaged(piece, source)
                        _write(file, chunk)
                        digest.update(chunk)
                        heard(piece, digest.bytes)
            except (aiohttp.ClientError, TimeoutError) as error:
                raise fault(error, source) from error
        if digest.bytes < piece.size:
            raise Fault(
                f"{host_of(source)} ended the connection early. Nothing is lost: try again.",
                again=True,
            )
        os.fsync(file.fileno())
        if not digest.right:
            file.truncate(0)
            raise _damaged(piece, source)


async def _small(client: aiohttp.ClientSession, address: str, most: int) -> bytes:
    try:
        async with client.get(address) as response:
            check_status(response, address)
            content = b""
            async for chunk in response.content.iter_chunked(READ_BYTES):
                content += chunk
                if len(content) > most:
                    raise Fault(
                        f"{host_of(address)} sends more than such a file has: check the address.", again=False
                    )
            return content
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise fault(error, address) from error


def _again(file: Any, piece: Piece) -> _Digest:
    """Hashes the bytes already in a partial file."""
    digest = _Digest(piece)
    file.seek(0)
    while chunk := file.read(READ_BYTES):
        digest.update(chunk)
    return digest


def _write(file: Any, chunk: bytes) -> None:
    """Writes all bytes of `chunk`: an unbuffered file may write fewer, for example on a disk that is nearly
    full."""
    view = memoryview(chunk)
    while view:
        view = view[file.write(view) :]


def _damaged(piece: Piece, source: str) -> Fault:
    return Fault(
        f"{piece.file} from {host_of(source)} is damaged or another file than was promised, and wasn't used: "
        "try again later.",
        again=True,
        damaged=True,
    )


def _begins_at(response: aiohttp.ClientResponse, start: int) -> bool:
    found = re.match(r"bytes ([0-9]+)-", response.headers.get("Content-Range", ""))
    return response.status == 206 and found is not None and int(found[1]) == start
