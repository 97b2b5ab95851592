"""Whom an installed app believes about new versions, and where it asks: resources/release.json, which the build
writes. A checkout has none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from app.install.updates.errors import Checkout, UpdateError

TRUST = Path(__file__).resolve().parents[3] / "resources" / "release.json"

Url = Annotated[str, msgspec.Meta(max_length=2000)]
Key = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class UpdateTrust(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose lists are believed (public keys, hexadecimal), and where they are: one address and its mirrors."""

    keys: Annotated[tuple[Key, ...], msgspec.Meta(min_length=1, max_length=8)]
    feeds: Annotated[tuple[Url, ...], msgspec.Meta(min_length=1, max_length=8)]

    @property
    def host(self) -> str:
        """For people."""
        return urlsplit(self.feeds[0]).hostname or self.feeds[0]

    @property
    def request(self) -> str:
        """What app.install.updates.asking sends every time, for people."""
        found = urlsplit(self.feeds[0])
        lines = (f"Host: {found.netloc}", "User-Agent: shoal", "Accept: */*", "Accept-Encoding: identity")
        return "\n".join([f"GET {found.path}.sig HTTP/1.1", *lines])


def trust(path: Path | None = None) -> UpdateTrust:
    """What the build wrote into resources. Raises Checkout where it wrote nothing, and UpdateError."""
    path = path or TRUST
    try:
        return msgspec.json.decode(path.read_bytes(), type=UpdateTrust)
    except FileNotFoundError:
        raise Checkout from None
    except (OSError, msgspec.MsgspecError) as error:
        raise UpdateError(f"{path} can't be read ({error}): install Shoal again.") from error


def trust_file(keys: tuple[str, ...], feeds: tuple[str, ...]) -> bytes:
    """What resources/release.json holds. Raises msgspec.ValidationError."""
    content = msgspec.json.encode({"keys": keys, "feeds": feeds})
    msgspec.json.decode(content, type=UpdateTrust)
    return msgspec.json.format(content, indent=1) + b"\n"
