"""Fetching the new version's file into HOME/updates, as engine packs are fetched: continued where it stopped,
counted to the byte, believed by its digest, which stands in the signed list."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urljoin

from app.common import fetch, files
from app.common.connection import Fault
from app.common.rate import Patience
from app.common.text import in_bytes
from app.install.packs.manifest import is_address
from app.install.updates import known
from app.install.updates.errors import UpdateError, disk
from app.install.updates.feed import Feed, ReleaseFile

SPARE = 64 * 2**20
Heard = Callable[[int], None]


def bring(
    home: Path,
    feed: Feed,
    file: ReleaseFile,
    where: str,
    heard: Heard,
    waiting: fetch.Waiting,
    patience: Patience | None = None,
) -> Path:
    """The file, whole and right. `where` is the list's own address or path. Raises UpdateError; what has come
    is kept, files of other versions are not."""
    folder = home / known.FOLDER
    try:
        clear(home, file)
        if fetch.right(folder / file.file, file):
            heard(file.size)
            return folder / file.file
        _check_room(folder, file)
        if not is_address(where) and not is_address(file.url):
            return fetch.copy(Path(where).parent / file.file, file, folder)
        order = fetch.PieceOrder(file, sources(feed, file, where))
        fetch.bring([order], folder, lambda _, count: heard(count), waiting, patience)
        return folder / file.file
    except Fault as caught:
        if caught.gone:
            sentence = f"{file.file} isn't there any more: look for new versions again, then download it."
            raise UpdateError(sentence) from caught
        raise UpdateError(str(caught)) from caught
    except FileNotFoundError as error:
        raise UpdateError(
            f"{error.filename} isn't there: copy all files of the release beside the list."
        ) from error
    except OSError as error:
        raise disk(error, folder) from error


def sources(feed: Feed, file: ReleaseFile, where: str) -> list[str]:
    first = file.url if is_address(file.url) else urljoin(where, quote(file.file))
    return [first, *(f"{mirror.rstrip('/')}/{quote(file.file)}" for mirror in feed.mirrors)]


def ready(home: Path, file: ReleaseFile) -> Path | None:
    """The file where it lies whole and right."""
    path = home / known.FOLDER / file.file
    with contextlib.suppress(OSError):
        if fetch.right(path, file):
            return path
    return None


def clear(home: Path, keep: ReleaseFile | None = None) -> None:
    """Deletes what was fetched, all but `keep` and what has come of it; what cannot be deleted stays."""
    known.sweep(home, () if keep is None else (keep.file, fetch.part_of(home / known.FOLDER, keep).name))


def _check_room(folder: Path, file: ReleaseFile) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    part = fetch.part_of(folder, file)
    missing = file.size - (part.stat().st_size if part.exists() else 0)
    if (free := files.free(folder)) < missing + SPARE:
        raise UpdateError(
            f"The disk that holds {folder} has {in_bytes(free)} free, and {in_bytes(missing + SPARE)} "
            "are needed: free up some space, then try again."
        )
