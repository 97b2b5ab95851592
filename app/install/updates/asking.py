"""Checks for new versions: downloads the notice's signature, 129 bytes, and the notice only if the signature
has changed. HOME/updates.json holds what the last check found, which the window shows; HOME/updates holds the
newest notice with its signature, so that an older one is refused even if updates.json is lost.

The request says "shoal" and nothing else that would identify a computer: no version, no number, no ETag, no
cookies."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from app.common import files
from app.common.rate import RetryLimit
from app.install import InstallError, disk_error
from app.install.signed import load
from app.install.updates import feed as feeds
from app.install.updates import installed
from app.install.updates.feed import Feed, Trust
from app.install.updates.installed import version_key

KNOWN_FILE = "updates.json"
FOLDER = "updates"
DAY_S = 24 * 3600.0
AGAIN_S = 4 * 3600.0
"""Seconds until the next attempt after a failed one."""


class UpdateOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A newer version than this one; `notes` are lines by language, `page` is where people download it."""

    version: str
    date: str = ""
    notes: dict[str, list[str]] = {}
    page: str = ""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The stored result of checks. `serial` and `digest` belong to the newest list accepted so far, signed by
    one of `keys`. `asked` and `answered` are Unix times of the last attempt and the last success; `sentence`
    says why the last attempt failed."""

    serial: int = 0
    digest: str = ""
    keys: tuple[str, ...] = ()
    asked: float = 0.0
    answered: float = 0.0
    sentence: str = ""
    offer: UpdateOffer | None = None

    def due(self, now: float) -> bool:
        """Whether a check is due: a day after the last, or some hours after a failed one. A clock that was set
        back does not block it permanently.

        >>> Known().due(0.0 + DAY_S), Known(asked=50.0, answered=50.0).due(100.0), Known(asked=9e9).due(100.0)
        (True, False, True)
        """
        wait = DAY_S if self.answered >= self.asked else AGAIN_S
        return not 0 <= now - self.asked < wait


def read_known(home: Path) -> Known:
    """Loads HOME/updates.json; returns an empty Known if it is missing or malformed."""
    return files.read_json(home / KNOWN_FILE, Known) or Known()


def write_known(home: Path, known: Known) -> None:
    """Saves HOME/updates.json. Raises InstallError."""
    try:
        files.write_json(home / KNOWN_FILE, known)
    except OSError as error:
        raise disk_error(error, home) from error


def store_feed(home: Path, content: bytes, signature: bytes) -> None:
    """Saves a verified notice and its signature. Raises InstallError."""
    folder = home / FOLDER
    try:
        if folder.is_symlink():
            folder.unlink()  # another program's: what is written lands here and nowhere else
        files.write(folder / "feed.json", content)
        files.write(folder / "feed.json.sig", signature)
    except OSError as error:
        raise disk_error(error, folder) from error


def stored_feed(home: Path) -> tuple[bytes, bytes]:
    """Loads the notice and the signature that `store_feed` saved, or two empty values."""
    folder = home / FOLDER
    if folder.is_symlink():
        return b"", b""
    try:
        return (folder / "feed.json").read_bytes(), (folder / "feed.json.sig").read_bytes()
    except OSError:
        return b"", b""


def notes_in(lines: dict[str, list[str]], wanted: Sequence[str]) -> list[str]:
    """Returns the release notes in the first of these languages that has any.

    >>> notes_in({"en": ["New"], "de": ["Neu"]}, ["fr", "de"]), notes_in({"en": ["New"]}, ["de"])
    (['Neu'], ['New'])
    """
    for language in (*wanted, "en"):
        if lines.get(language):
            return lines[language]
    return next(iter(lines.values()), [])


PATIENCE = RetryLimit(attempts=2, first_s=2.0, longest_s=10.0, silent_s=20.0)


def ask(home: Path, trust: Trust, now: datetime | None = None, patience: RetryLimit = PATIENCE) -> Known:
    """Checks for a new version and saves the result. Raises InstallError; a failure is saved too."""
    before, asked = _newest_seen(home, trust), time.time()
    try:
        feed, content = _newest(home, trust, before, now or feeds.now_utc(), patience)
    except InstallError as error:
        write_known(home, msgspec.structs.replace(before, asked=asked, sentence=str(error)))
        raise
    found = Known(
        serial=feed.serial,
        digest=_digest(content),
        keys=trust.keys,
        asked=asked,
        answered=asked,
        offer=offer(feed, installed.version()),
    )
    write_known(home, found)
    return found


def _newest_seen(home: Path, trust: Trust) -> Known:
    """Returns the stored result; if that file is damaged or out of date, one made from the stored list, which
    is signed. Otherwise an older list would be accepted."""
    before, (content, signature) = read_known(home), stored_feed(home)
    try:
        feed = feeds.signed(content, signature, trust.keys)
    except InstallError:
        return before
    if feed.serial <= before.serial:
        return before
    return msgspec.structs.replace(before, serial=feed.serial, digest=_digest(content), keys=trust.keys)


def offer(feed: Feed, version: str) -> UpdateOffer | None:
    """Returns what the notice announces; None if `version` is the newest."""
    if version_key(feed.version) <= version_key(version):
        return None
    return UpdateOffer(
        version=feed.version,
        date=feed.date.isoformat(),
        notes={language: list(lines) for language, lines in feed.notes.items()},
        page=feed.page,
    )


def _newest(home: Path, trust: Trust, before: Known, now: datetime, patience: RetryLimit) -> tuple[Feed, bytes]:
    """Returns the list and its bytes from the first address whose list is valid. Raises the first address's
    error if none is."""
    first: InstallError | None = None
    for where in trust.feeds:
        try:
            content, signature = load(where, feeds.FEED, "--feed", patience, stored_feed(home))
            feed = feeds.verify(content, signature, trust.keys, now)
            if set(before.keys) & set(trust.keys):
                _check_not_older(feed, content, before)
        except InstallError as error:
            first = first or error
        else:
            store_feed(home, content, signature)
            return feed, content
    assert first is not None
    raise first


def _check_not_older(feed: Feed, content: bytes, before: Known) -> None:
    """Raises InstallError for a list older than the newest one seen."""
    if feed.serial < before.serial or (feed.serial == before.serial and _digest(content) != before.digest):
        raise InstallError(
            f"The list of new versions is number {feed.serial}, and number {before.serial} was here before: "
            "somebody gives out an old one, so nothing is taken from it. Try again later, or on another "
            "network."
        )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
