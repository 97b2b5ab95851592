"""The memory of new versions between two questions.

HOME/updates.json         the newest list that was seen, when somebody last asked, and what it came to
HOME/updates/             what was fetched: feed.json with feed.json.sig, and the new version's file
HOME/updates/.lock        held while it is fetched or handed over

The window shows what stands in updates.json; whoever installs believes nothing of it and checks the signed list
again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from app.common import files
from app.install.packs import place
from app.install.packs.errors import PackError
from app.install.updates.errors import UpdateError, disk

FILE = "updates.json"
FOLDER = "updates"
DAY_S = 24 * 3600.0
AGAIN_S = 4 * 3600.0
"""After an attempt that failed."""
_KEPT = ("feed.json", "feed.json.sig", "installer.log", ".lock")
_BUSY = "Another Shoal is downloading or installing the new version: wait for it, then try again."


class UpdateOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A version that is newer than this one. `obstacle` is why it cannot be installed from here, empty where it
    can; `notes` are lines by language."""

    version: str
    date: str = ""
    notes: dict[str, list[str]] = {}
    page: str = ""
    file: str = ""
    size: int = 0
    obstacle: str = ""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """`serial` and `digest` belong to the newest list that was ever believed, by one of `keys`. `asked` is
    the last attempt and `answered` the last one that succeeded, in seconds since 1970; `sentence` is why the
    last one did not."""

    serial: int = 0
    digest: str = ""
    keys: tuple[str, ...] = ()
    asked: float = 0.0
    answered: float = 0.0
    sentence: str = ""
    offer: UpdateOffer | None = None

    def due(self, now: float) -> bool:
        """Whether a day has passed, or some hours after an attempt that failed. A clock that was set back does
        not stop it for ever.

        >>> Known().due(0.0 + DAY_S), Known(asked=50.0, answered=50.0).due(100.0), Known(asked=9e9).due(100.0)
        (True, False, True)
        """
        wait = DAY_S if self.answered >= self.asked else AGAIN_S
        return not 0 <= now - self.asked < wait


def read(home: Path) -> Known:
    """A file that says nothing sensible says nothing."""
    return files.read_json(home / FILE, Known) or Known()


def write(home: Path, known: Known) -> None:
    """Raises UpdateError."""
    try:
        files.write_json(home / FILE, known)
    except OSError as error:
        raise disk(error, home) from error


def keep(home: Path, content: bytes, signature: bytes) -> None:
    """The list that was believed, for the next time. Raises UpdateError."""
    folder = home / FOLDER
    try:
        files.write(folder / "feed.json", content)
        files.write(folder / "feed.json.sig", signature)
    except OSError as error:
        raise disk(error, folder) from error


def kept(home: Path) -> tuple[bytes, bytes]:
    """What `keep` wrote; empty where there is nothing."""
    folder = home / FOLDER
    try:
        return (folder / "feed.json").read_bytes(), (folder / "feed.json.sig").read_bytes()
    except OSError:
        return b"", b""


def sweep(home: Path, keep: Sequence[str] = ()) -> None:
    """Deletes what was fetched, all but these names; what cannot be deleted stays."""
    folder = home / FOLDER
    with contextlib.suppress(OSError):
        for entry in list(folder.iterdir()):
            if entry.name not in (*_KEPT, *keep) and entry.is_file():
                with contextlib.suppress(OSError):
                    entry.unlink()


def notes(lines: dict[str, list[str]], wanted: Sequence[str]) -> list[str]:
    """The lines in the first of these languages that there are.

    >>> notes({"en": ["New"], "de": ["Neu"]}, ["fr", "de"]), notes({"en": ["New"]}, ["de"])
    (['Neu'], ['New'])
    """
    for language in (*wanted, "en"):
        if lines.get(language):
            return lines[language]
    return next(iter(lines.values()), [])


@contextlib.contextmanager
def alone(home: Path) -> Iterator[None]:
    """Holds HOME/updates for this process. Raises UpdateError."""
    try:
        with place.alone(home / FOLDER, lambda: None, 2.0, _BUSY):
            yield
    except PackError as error:
        raise UpdateError(str(error)) from error
