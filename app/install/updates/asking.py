"""Asking for the list of new versions: the signature first, which is 129 bytes, and the list only where it is
another one. The request says "shoal" and nothing else: no version, no number, nothing by which a computer
could be told from another, so neither ETag nor cookies."""

from __future__ import annotations

import hashlib
import time
from datetime import datetime
from pathlib import Path

import msgspec

from app.common import fetch
from app.common.connection import Fault, host_of
from app.common.rate import Patience
from app.install.packs.manifest import is_address
from app.install.updates import feed as feeds
from app.install.updates import installed, known
from app.install.updates.errors import UpdateError
from app.install.updates.feed import Feed, ReleaseFile
from app.install.updates.installed import ordered
from app.install.updates.known import Known, UpdateOffer
from app.install.updates.trust import UpdateTrust

PATIENCE = Patience(attempts=2, first_s=2.0, longest_s=10.0, silent_s=20.0)


def ask(
    home: Path, trust: UpdateTrust, form: str, now: datetime | None = None, patience: Patience = PATIENCE
) -> Known:
    """Asks, and remembers what it came to. Raises UpdateError; that is remembered too."""
    before, asked = _newest_seen(home, trust), time.time()
    try:
        feed, content = _newest(home, trust, before, now or feeds.today(), patience)
    except UpdateError as error:
        known.write(home, msgspec.structs.replace(before, asked=asked, sentence=str(error)))
        raise
    found = Known(
        serial=feed.serial,
        digest=_digest(content),
        keys=trust.keys,
        asked=asked,
        answered=asked,
        offer=offer(feed, form, installed.version()),
    )
    known.write(home, found)
    return found


def _newest_seen(home: Path, trust: UpdateTrust) -> Known:
    """What is remembered; where that file is damaged or older, at least the list that was kept, which is
    signed: else an older one would be taken."""
    before, (content, signature) = known.read(home), known.kept(home)
    try:
        feed = feeds.signed(content, signature, trust.keys)
    except UpdateError:
        return before
    if feed.serial <= before.serial:
        return before
    return msgspec.structs.replace(before, serial=feed.serial, digest=_digest(content), keys=trust.keys)


def offer(feed: Feed, form: str, version: str) -> UpdateOffer | None:
    """What the list has for this installation; None where that is the newest."""
    if ordered(feed.version) <= ordered(version):
        return None
    file, obstacle = chosen(feed, form), ""
    page = f"download it from {feed.page}" if feed.page else "download it where you got this one"
    if ordered(version) < ordered(feed.least):
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


def believed(home: Path, keys: tuple[str, ...], now: datetime) -> Feed | None:
    """The kept list, if it still holds: signed, not expired, and the newest that was ever seen."""
    content, signature = known.kept(home)
    newest = known.read(home).serial
    if not content:
        return None
    try:
        found = feeds.verify(content, signature, keys, now)
    except UpdateError:
        return None
    return found if found.serial == newest else None


def chosen(feed: Feed, form: str) -> ReleaseFile | None:
    """The file for this computer and this kind of installation."""
    return feed.file_for(*installed.here(), form)


def _newest(
    home: Path, trust: UpdateTrust, before: Known, now: datetime, patience: Patience
) -> tuple[Feed, bytes]:
    """From the first place whose list can be believed. Raises the first place's error where none has one."""
    first: UpdateError | None = None
    for where in trust.feeds:
        try:
            content, signature = _load(home, where, patience)
            feed = feeds.verify(content, signature, trust.keys, now)
            if set(before.keys) & set(trust.keys):
                _check_not_older(feed, content, before)
        except UpdateError as error:
            first = first or error
        else:
            known.keep(home, content, signature)
            return feed, content
    assert first is not None
    raise first


def _load(home: Path, where: str, patience: Patience) -> tuple[bytes, bytes]:
    if is_address(where):
        return _ask(where, *known.kept(home), patience)
    path = Path(where)
    try:
        return path.read_bytes()[: feeds.FEED + 1], path.with_name(f"{path.name}.sig").read_bytes()
    except OSError as error:
        raise UpdateError(
            f"{error.filename} can't be read ({error.strerror}): name the list with --feed, with its "
            "signature beside it."
        ) from error


def _ask(where: str, content: bytes, signature: bytes, patience: Patience) -> tuple[bytes, bytes]:
    try:
        (fresh,) = fetch.ask([(f"{where}.sig", feeds.SIGNATURE)], patience)
        if content and fresh == signature:
            return content, signature
        (found,) = fetch.ask([(where, feeds.FEED)], patience)
    except Fault as caught:
        if caught.gone:
            raise UpdateError(
                f"{host_of(where)} has no list of new versions (any more): look where you got this Shoal."
            ) from caught
        raise UpdateError(str(caught)) from caught
    return found, fresh


def _check_not_older(feed: Feed, content: bytes, before: Known) -> None:
    """Raises UpdateError for a list from before the newest one that was seen."""
    if feed.serial < before.serial or (feed.serial == before.serial and _digest(content) != before.digest):
        raise UpdateError(
            f"The list of new versions is number {feed.serial}, and number {before.serial} was here before: "
            "somebody gives out an old one, so nothing is taken from it. Try again later, or on another "
            "network."
        )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
