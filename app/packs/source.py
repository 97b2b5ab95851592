"""Where a manifest comes from: an address or a file, with its signature beside it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp

from app.packs import manifest as manifests
from app.packs.connection import READ, Fault, Patience, check_status, fault, host_of, session
from app.packs.errors import PackError
from app.packs.manifest import Signed, is_address


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


async def _two(where: str, patience: Patience) -> tuple[bytes, bytes]:
    """A manifest and its signature, after as many attempts as it takes."""
    async with session(patience) as client:
        found = []
        for address, most in ((where, manifests.MANIFEST), (f"{where}.sig", manifests.SIGNATURE)):
            failures = 0
            while True:
                try:
                    found.append(await small(client, address, most))
                    break
                except Fault as caught:
                    failures += 1
                    if not caught.again or failures >= patience.attempts:
                        raise
                    await asyncio.sleep(patience.pause_s(failures, caught.wait_s))
        return found[0], found[1]


async def small(client: aiohttp.ClientSession, address: str, most: int) -> bytes:
    """The whole of a file that has at most so many bytes. Raises Fault."""
    try:
        async with client.get(address) as response:
            check_status(response, address)
            content = b""
            async for chunk in response.content.iter_chunked(READ):
                content += chunk
                if len(content) > most:
                    raise Fault(
                        f"{host_of(address)} sends more than a manifest has: check the address.", again=False
                    )
            return content
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise fault(error, address) from error
