"""Checks for new versions: downloads the list's signature, 129 bytes, and the list only if the signature has
changed.

The request says "shoal" and nothing else that would identify a computer: no version, no number, no ETag, no
cookies."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from app.common import files
from app.common.rate import RetryLimit
from app.install import InstallError, disk_error
from app.install.packs import place
from app.install.signed import load, this_platform
from app.install.updates import feed as feeds
from app.install.updates import installed
from app.install.updates.feed import Feed, ReleaseFile, Trust
from app.install.updates.installed import version_key

# The memory of new versions between two questions.
#
# HOME/updates.json         the newest list that was seen, when somebody last asked, and what it came to
# HOME/updates/             what was fetched: feed.json with feed.json.sig, and the new version's file
# HOME/updates/.lock        held while it is fetched or handed over
#
# The window shows what stands in updates.json; anyone who installs believes nothing of it and checks the signed
# list again.

KNOWN_FILE = "updates.json"
FOLDER = "updates"
DAY_S = 24 * 3600.0
AGAIN_S = 4 * 3600.0
"""Seconds until the next attempt after a failed one."""
_KEPT = ("feed.json", "feed.json.sig", "installer.log", ".lock")
_BUSY = "Another Shoal is downloading or installing the new version: wait for it, then try again."


class UpdateOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A newer version than this one. `obstacle` says why it cannot be installed from here, empty if it can;
    `notes` are lines by language."""

    version: str
    date: str = ""
    notes: dict[str, list[str]] = {}
    page: str = ""
    file: str = ""
    size: int = 0
    obstacle: str = ""


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
    """Saves a verified list of releases and its signature. Raises InstallError."""
    folder = home / FOLDER
    try:
        files.write(folder / "feed.json", content)
        files.write(folder / "feed.json.sig", signature)
    except OSError as error:
        raise disk_error(error, folder) from error


def stored_feed(home: Path) -> tuple[bytes, bytes]:
    """Loads the list of releases and the signature that `store_feed` saved, or two empty values."""
    folder = home / FOLDER
    try:
        return (folder / "feed.json").read_bytes(), (folder / "feed.json.sig").read_bytes()
    except OSError:
        return b"", b""


def clear_folder(home: Path, keep: Sequence[str] = ()) -> None:
    """Deletes downloads except those named in `keep`, as far as possible."""
    folder = home / FOLDER
    with contextlib.suppress(OSError):
        for entry in list(folder.iterdir()):
            if entry.name not in (*_KEPT, *keep) and entry.is_file():
                with contextlib.suppress(OSError):
                    entry.unlink()


def notes_in(lines: dict[str, list[str]], wanted: Sequence[str]) -> list[str]:
    """Returns the release notes in the first of these languages that has any.

    >>> notes_in({"en": ["New"], "de": ["Neu"]}, ["fr", "de"]), notes_in({"en": ["New"]}, ["de"])
    (['Neu'], ['New'])
    """
    for language in (*wanted, "en"):
        if lines.get(language):
            return lines[language]
    return next(iter(lines.values()), [])


@contextlib.contextmanager
def one_at_a_time(home: Path) -> Iterator[None]:
    """Locks HOME/updates for this process. Raises InstallError."""
    with place.alone(home / FOLDER, lambda: None, 2.0, _BUSY):
        yield


PATIENCE = RetryLimit(attempts=2, first_s=2.0, longest_s=10.0, silent_s=20.0)


def ask(
    home: Path, trust: Trust, form: str, now: datetime | None = None, patience: RetryLimit = PATIENCE
) -> Known:
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
        offer=offer(feed, form, installed.version()),
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


def offer(feed: Feed, form: str, version: str) -> UpdateOffer | None:
    """Returns the list's offer for this installation; None if this version is the newest."""
    if version_key(feed.version) <= version_key(version):
        return None
    file, obstacle = file_for(feed, form), ""
    page = f"download it from {feed.page}" if feed.page else "download it where you got this one"
    if version_key(version) < version_key(feed.least):
        obstacle = f"Version {version} is too old to update itself: {page}, and install it over this one."
    elif file is None:
        obstacle = f"Version {feed.version} isn't made for this kind of installation: {page}."
    return UpdateOffer(
        version=feed.version,
        date=feed.date.isoformat(),
        notes={language: list(lines) for language, lines in feed.notes.items()},
        page=feed.page,
        file=file.file if file else "",
        size=file.size if file else 0,
        obstacle=obstacle,
    )


def valid_stored_feed(home: Path, keys: tuple[str, ...], now: datetime) -> Feed | None:
    """Returns the stored list if it is signed, not expired, and the newest ever seen; else None."""
    content, signature = stored_feed(home)
    newest = read_known(home).serial
    if not content:
        return None
    try:
        found = feeds.verify(content, signature, keys, now)
    except InstallError:
        return None
    return found if found.serial == newest else None


def file_for(feed: Feed, form: str) -> ReleaseFile | None:
    """Returns the file for this computer and this kind of installation; None if the list has none."""
    return feed.file_for(*this_platform(), form)


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
