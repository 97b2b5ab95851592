"""Checks for new versions: downloads the signed notice, 2 kB. HOME/updates.json holds what the last check
found, which the window shows, and the notice's number, so that an older one is refused.

The requests say "shoal" and nothing else that would identify a computer: no version, no number, no ETag, no
cookies."""

from __future__ import annotations

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
    """The stored result of checks. `serial` is that of the newest notice accepted so far. `asked` and
    `answered` are Unix times of the last attempt and the last success; `sentence` says why the last attempt
    failed."""

    serial: int = 0
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
    before, asked = read_known(home), time.time()
    try:
        feed = _newest(trust, before.serial, now or feeds.now_utc(), patience)
    except InstallError as error:
        write_known(home, msgspec.structs.replace(before, asked=asked, sentence=str(error)))
        raise
    found = Known(
        serial=feed.serial,
        asked=asked,
        answered=asked,
        offer=offer(feed, installed.version()),
    )
    write_known(home, found)
    return found


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


def _newest(trust: Trust, least: int, now: datetime, patience: RetryLimit) -> Feed:
    """Returns the notice of the first address that has a valid one with the number `least` or a later one.
    Raises the first address's error if none has."""
    first: InstallError | None = None
    for where in trust.feeds:
        try:
            feed = feeds.verify(*load(where, feeds.FEED, "--feed", patience), trust.keys, now)
            if feed.serial >= least:
                return feed
            raise InstallError(
                f"The list of new versions is number {feed.serial}, and number {least} was here before: "
                "somebody gives out an old one, so nothing is taken from it. Try again later, or on another "
                "network."
            )
        except InstallError as error:
            first = first or error
    assert first is not None
    raise first
