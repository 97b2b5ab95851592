"""The signed notice of the newest version (app.install.signed). `serial` protects against replaying an older
one, `expires` against serving one forever."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from app.common.signing import sign
from app.install import Checkout, InstallError
from app.install.packs import manifest
from app.install.packs.manifest import Trust
from app.install.signed import Url, check_address, is_signed


def trust(path: Path | None = None) -> Trust:
    """Returns the trusted keys and the list's addresses. Raises InstallError, or Checkout if the build wrote
    none."""
    if not (path or manifest.TRUST).exists() or not (found := manifest.trust(path)).feeds:
        raise Checkout
    return found


FEED = 2**16
"""Maximum bytes of a list; a usual one has two thousand."""
AHEAD = timedelta(days=1)
"""How far a list's date may be ahead of this computer's clock; clocks and time zones differ."""

_VERSION = r"^[0-9]{1,6}(\.[0-9]{1,6}){0,3}((a|b|rc)[0-9]{1,4})?\Z"

Version = Annotated[str, msgspec.Meta(pattern=_VERSION)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Lines = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=300)], ...], msgspec.Meta(max_length=20)
]


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """The notice of the newest version. `notes` are lines by language; `page` is where people download it.
    Earlier notices have more fields, which are ignored."""

    kind: Literal["shoal-release-1"] = "shoal-release-1"
    serial: Annotated[int, msgspec.Meta(gt=0, lt=2**53)]
    made: Moment
    expires: Moment
    version: Version
    date: date
    notes: dict[Annotated[str, msgspec.Meta(pattern=r"^[a-z]{2}\Z")], Lines] = {}
    page: Url = ""

    def __post_init__(self) -> None:
        if self.expires <= self.made:
            raise ValueError("it expires before it was made")
        if self.page:
            check_address(self.page)
        for line in (line for lines in self.notes.values() for line in lines):
            if not line.isprintable():
                raise ValueError("its notes are more than lines of text")


def encode(feed: Feed, secret: bytes) -> tuple[bytes, bytes]:
    """Returns a list's bytes and signature, for FILE and FILE.sig; `secret` is the key's seed of 32 bytes.
    Raises InstallError for a list that the app would refuse."""
    content = msgspec.json.format(msgspec.json.encode(feed), indent=1) + b"\n"
    read_feed(content)
    return content, sign(secret, content).hex().encode() + b"\n"


def verify(content: bytes, signature: bytes, keys: tuple[str, ...], now: datetime) -> Feed:
    """Decodes a list that one of `keys` signed and that has not expired. Raises InstallError."""
    if len(content) > FEED or not is_signed(content, signature, keys):
        raise InstallError(
            "The list of new versions isn't signed by the makers of this Shoal, so nothing is taken from "
            "it: try again later, or on another network."
        )
    feed = read_feed(content)
    if feed.made > now + AHEAD:
        raise InstallError(
            f"The list of new versions was made on {feed.made:%Y-%m-%d}, and by this computer's clock it is "
            f"{now:%Y-%m-%d}: set the clock, then try again."
        )
    if feed.expires < now:
        raise InstallError(
            f"The list of new versions held until {feed.expires:%Y-%m-%d} and wasn't renewed, so nothing is "
            "taken from it: check this computer's clock, or try again later. Shoal stays as it is."
        )
    return feed


def read_feed(content: bytes) -> Feed:
    """Decodes a list whose signature was verified. Raises InstallError."""
    try:
        return msgspec.json.decode(content, type=Feed)
    except msgspec.MsgspecError as error:
        raise InstallError(
            f"The list of new versions can't be understood ({error}): download the newest Shoal where you got "
            "this one."
        ) from error


def now_utc() -> datetime:
    return datetime.now(UTC)
