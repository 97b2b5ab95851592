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
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import aiohttp

from app.packs import manifest as manifests
from app.packs.errors import PackError, disk
from app.packs.manifest import Manifest, Signed, Wheel, is_address

READ = 2**18
_AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Where distributions keep whom to trust: a bundled OpenSSL looks where its builder's did."""


@dataclass(frozen=True)
class Patience:
    """So many attempts without a new byte, with growing pauses; `silent_s` without one ends an attempt."""

    attempts: int = 6
    first_s: float = 1.0
    longest_s: float = 30.0
    silent_s: float = 30.0

    def pause_s(self, failures: int, asked: float | None) -> float:
        """
        >>> [Patience().pause_s(failures, None) for failures in (1, 3, 9)], Patience().pause_s(1, 7.0)
        ([1.0, 4.0, 30.0], 7.0)
        """
        usual = min(self.longest_s, self.first_s * 2.0 ** (failures - 1))
        return usual if asked is None else max(usual, min(asked, 300.0))


class Fault(PackError):
    """An attempt that failed. `again`: it may go better later; else only another host can help. `damaged`: what
    came was not what the manifest names."""

    def __init__(
        self, sentence: str, *, again: bool, damaged: bool = False, wait_s: float | None = None
    ) -> None:
        super().__init__(sentence)
        self.again, self.damaged, self.wait_s = again, damaged, wait_s


Tell = Callable[[int, str], None]
"""Bytes that are here, of all wheels, and the file they belong to."""
Waiting = Callable[[str, float], None]
"""Why it pauses, and for how long."""


def load(where: str, keys: tuple[str, ...], patience: Patience | None = None) -> Signed:
    """The manifest at an address or in a file, checked. Raises PackError."""
    if is_address(where):
        content, signature = asyncio.run(_two(where, patience or Patience()))
        return manifests.read(content, signature, keys, where)
    path = Path(where).expanduser().absolute()
    try:
        with path.open("rb") as one, path.with_name(f"{path.name}.sig").open("rb") as two:
            content, signature = one.read(manifests.MANIFEST + 1), two.read(manifests.SIGNATURE)
    except OSError as error:
        raise PackError(
            f"{error.filename} cannot be read ({error.strerror}): name the manifest with --manifest, with its "
            "signature beside it."
        ) from error
    return manifests.read(content, signature, keys, str(path.parent))


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


def have(wheels: tuple[Wheel, ...], folder: Path) -> int:
    """Bytes that have come already, by their sizes alone."""
    total = 0
    for wheel in wheels:
        for path in (folder / wheel.file, part_of(folder, wheel)):
            if path.is_file():
                total += min(wheel.size, path.stat().st_size)
                break
    return total


def part_of(folder: Path, wheel: Wheel) -> Path:
    """The file that a wheel grows in. Another digest has another."""
    return folder / f"{wheel.file}.{wheel.sha256[:12]}.part"


def right(path: Path, wheel: Wheel) -> bool:
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


async def _two(where: str, patience: Patience) -> tuple[bytes, bytes]:
    """A manifest and its signature, after as many attempts as it takes."""
    async with _session(patience) as session:
        found = []
        for address, most in ((where, manifests.MANIFEST), (f"{where}.sig", manifests.SIGNATURE)):
            failures = 0
            while True:
                try:
                    found.append(await _small(session, address, most))
                    break
                except Fault as fault:
                    failures += 1
                    if not fault.again or failures >= patience.attempts:
                        raise
                    await asyncio.sleep(patience.pause_s(failures, fault.wait_s))
        return found[0], found[1]


async def _small(session: aiohttp.ClientSession, address: str, most: int) -> bytes:
    try:
        async with session.get(address) as response:
            _check_status(response, address)
            content = b""
            async for chunk in response.content.iter_chunked(READ):
                content += chunk
                if len(content) > most:
                    raise Fault(
                        f"{_host(address)} sends more than a manifest has: check the address.", again=False
                    )
            return content
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _fault(error, address) from error


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
    async with _session(patience) as session:
        for wheel in missing:
            first = wheel.url if is_address(wheel.url) else urljoin(base, quote(wheel.url))
            sources = [first, *(f"{mirror.rstrip('/')}/{quote(wheel.file)}" for mirror in manifest.mirrors)]

            def heard(count: int, name: str = wheel.file, before: int = before) -> None:
                tell(before + count, name)

            await _one(session, wheel, sources, to, heard, waiting, patience)
            before += wheel.size


async def _one(
    session: aiohttp.ClientSession,
    wheel: Wheel,
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
            await _attempt(session, wheel, sources[at % len(sources)], part, heard)
            part.replace(to / wheel.file)
            return
        except Fault as fault:
            came = (part.stat().st_size if part.exists() else 0) > had
            failures = 1 if came else failures + 1
            damaged += fault.damaged
            if not fault.again:
                sources = [source for source in sources if source != sources[at % len(sources)]]
            elif not came:
                at += 1
            if not sources or damaged > 2 or failures >= patience.attempts:
                raise
            if fault.again:
                pause = patience.pause_s(failures, fault.wait_s)
                waiting(str(fault), pause)
                await asyncio.sleep(pause)


async def _attempt(
    session: aiohttp.ClientSession, wheel: Wheel, source: str, part: Path, heard: Callable[[int], None]
) -> None:
    """Continues a part to its end. Raises Fault; the part stays unless it is worth nothing."""
    with part.open("ab+", buffering=0) as file:
        digest, count = _again(file, wheel)
        heard(count)
        if count < wheel.size:
            headers = {"Range": f"bytes={count}-"} if count else {}
            try:
                async with session.get(source, headers=headers) as response:
                    _check_status(response, source)
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
                raise _fault(error, source) from error
        if count < wheel.size:
            raise Fault(
                f"{_host(source)} ended the connection early: it goes on when you try again.", again=True
            )
        os.fsync(file.fileno())
        if digest.hexdigest() != wheel.sha256:
            file.truncate(0)
            raise _damaged(wheel, source)


def _again(file: Any, wheel: Wheel) -> tuple[Any, int]:
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


def _session(patience: Patience) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        trust_env=True,
        auto_decompress=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "shoal"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=patience.silent_s, sock_read=patience.silent_s),
        connector=aiohttp.TCPConnector(ssl=_context()),
    )


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not paths.cafile and not paths.capath and not context.cert_store_stats()["x509_ca"]:
        for path in _AUTHORITIES:
            if os.path.isfile(path):
                context.load_verify_locations(path)
                break
    return context


def _check_status(response: aiohttp.ClientResponse, address: str) -> None:
    """Raises Fault for an answer that brings nothing."""
    host, status = _host(address), response.status
    if status in (200, 206):
        return
    if status == 407:
        raise _login()
    if status in (404, 410):
        name = urlsplit(address).path.rpartition("/")[2]
        raise Fault(f"{host} does not have {name} (any more): update Shoal, then try again.", again=False)
    asked = response.headers.get("Retry-After", "")
    raise Fault(
        f"{host} answers {status}: try again later.",
        again=status in (408, 416, 425, 429) or status >= 500,
        wait_s=float(asked) if re.fullmatch(r"[0-9]{1,5}", asked) else None,
    )


def _fault(error: Exception, address: str) -> Fault:
    """What the network said, as a sentence."""
    host = _host(address)
    if isinstance(error, Fault):
        return error
    if isinstance(error, aiohttp.ClientHttpProxyError):
        if error.status == 407:
            return _login()
        return Fault(f"The proxy refuses to connect to {host} ({error.status}): ask who runs it.", again=True)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return Fault(
            "The proxy cannot be reached: check the system's proxy setting, then try again.", again=True
        )
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return Fault(
            f"The certificate of {host} is not accepted: check the clock; behind a company's proxy, name its "
            "certificate file in SSL_CERT_FILE.",
            again=False,
        )
    if isinstance(error, aiohttp.InvalidURL):
        return Fault(f"{address[:200]!r} is no address: check it.", again=False)
    if isinstance(error, aiohttp.ClientConnectionError | TimeoutError | OSError) and not isinstance(
        error, aiohttp.ServerDisconnectedError | aiohttp.ServerTimeoutError
    ):
        return Fault(
            f"{host} cannot be reached: check the network connection, then try again; what has come is kept.",
            again=True,
        )
    return Fault(f"The connection to {host} broke off: it goes on when you try again.", again=True)


def _login() -> Fault:
    return Fault(
        "The proxy asks for a name and a password: put them into its address "
        "(HTTPS_PROXY=http://name:password@proxy:port), then try again.",
        again=False,
    )


def _damaged(wheel: Wheel, source: str) -> Fault:
    return Fault(
        f"{wheel.file} from {_host(source)} is damaged or another file than the manifest names, and was not "
        "used: "
        "try again later.",
        again=True,
        damaged=True,
    )


def _begins_at(response: aiohttp.ClientResponse, start: int) -> bool:
    found = re.match(r"bytes ([0-9]+)-", response.headers.get("Content-Range", ""))
    return response.status == 206 and found is not None and int(found[1]) == start


def _host(address: str) -> str:
    return urlsplit(address).hostname or address[:100]
