"""Files signed by the makers of Shoal: the manifest of an engine pack, and the list of new versions.

Each is a JSON file made at release time, with an Ed25519 signature over its exact bytes beside it: 128
hexadecimal digits in FILE.sig. Both are loaded here, from an address or a file, and nothing in them is used
before the signature is verified. The trusted keys and addresses are in resources/release.json, which the build
writes."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from app.common.rate import RetryLimit
from app.common.signing import verifies
from app.install import InstallError

SIGNATURE = 256
"""Maximum bytes of FILE.sig."""

Url = Annotated[str, msgspec.Meta(max_length=2000)]
Key = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
"""A public key, hexadecimal."""


def load(where: str, most: int, option: str, patience: RetryLimit) -> tuple[bytes, bytes]:
    """Loads a signed file of at most `most` bytes (a local one may have one more) and its signature, both
    unverified. `option` names the file on the command line. Raises InstallError."""
    if not is_address(where):
        path = Path(where).expanduser().absolute()
        try:
            with path.open("rb") as one, path.with_name(f"{path.name}.sig").open("rb") as two:
                return one.read(most + 1), two.read(SIGNATURE)
        except OSError as error:
            raise InstallError(
                f"{error.filename} can't be read ({error.strerror}): name the right file with {option}, with "
                "its signature beside it."
            ) from error
    from app.common import fetch  # with aiohttp, which a window that only reads what is known does without
    from app.common.connection import Fault, host_of

    try:
        signature, content = fetch.download_contents([(f"{where}.sig", SIGNATURE), (where, most)], patience)
    except Fault as caught:
        if caught.gone and option == "--feed":
            raise InstallError(
                f"{host_of(where)} has no list of new versions (any more): look where you got this Shoal."
            ) from caught
        raise InstallError(str(caught)) from caught
    return content, signature


def is_signed(content: bytes, signature: bytes, keys: Sequence[str]) -> bool:
    """Whether the owner of one of `keys` signed `content`; `signature` is the content of FILE.sig."""
    try:
        mark = bytes.fromhex(signature[:SIGNATURE].decode("ascii").strip())
    except ValueError:
        return False
    return any(verifies(bytes.fromhex(key), content, mark) for key in keys)


def is_address(text: str) -> bool:
    """
    >>> is_address("https://example.org/a"), is_address("a.json"), is_address("C:/a.json")
    (True, False, False)
    """
    return text.startswith(("https://", "http://"))


def check_address(text: str) -> None:
    """Raises ValueError unless `text` is a complete web address without user name, password, space or
    unprintable character."""
    found = urlsplit(text) if is_address(text) else None
    if found is None or not found.hostname or "@" in found.netloc or not text.isprintable() or " " in text:
        raise ValueError(f"{text[:100]!r} is no address")


def this_platform() -> tuple[str, str]:
    """Returns (system, machine) of this computer, as signed lists name them."""
    machine = platform.machine().lower()
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    return system, {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
