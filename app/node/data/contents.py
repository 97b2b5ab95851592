"""Classifies the contents of a data folder, and keeps its size below the owner's limit.

Files not named here do not belong to Shoal: they are not removed, even if --home names a folder
of the user's own.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from enum import Enum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import msgspec

from app.common.files import discard, transaction
from app.common.text import in_bytes


class DataKind(Enum):
    """Kinds of data; each value is the label shown to people."""

    LEARNED = "What your model learned, and its history"
    MODELS = "Downloaded models"
    CACHE = "Files Shoal can make again"
    SWARM = "What the swarm needs"
    LOGS = "Logs"
    QUESTIONS = "Your questions"
    OWN = "Settings and this computer's name"


_NAMES = {
    DataKind.LEARNED: ("models", "kept", "swarm"),
    DataKind.MODELS: ("hub", "models-cache"),
    DataKind.CACHE: ("cache", "updates", "trials.json"),
    DataKind.SWARM: (
        "answers",
        "archive.jsonl",
        "relay",
        "relays.json",
        "outbox.sqlite",
        "outbox.sqlite-*",
        "thanks.json",
        "traffic.json",
        "waiting.json",
    ),
    DataKind.QUESTIONS: ("questions",),
    DataKind.LOGS: ("logs", "node.log"),
    DataKind.OWN: (
        "identity",
        "identity.json",
        "key-*.sealed",
        "key-*.secret",
        "private-swarm.secret",
        "format.json",
        "settings.json",
        "orders.json",
        "puzzles.json",
        "serving",
        "serving.json",
        "energy.json",  # of earlier versions
        "duels.json",
        "updates.json",
        "window.json",
        "window-state.json",
        "*.damaged",
        "damaged-*",
        "lock",
        "window.lock",
        "window.socket",
    ),
}
LOCKS = ("lock", "window.lock", "window.socket")


class DataSize(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    label: str
    bytes: int
    files: int


def kind_of_entry(name: str) -> DataKind | None:
    """Returns the kind of an entry of the data folder; None if it does not belong to Shoal.

    >>> kind_of_entry("models") is DataKind.LEARNED, kind_of_entry("holiday.jpg")
    (True, None)
    """
    if name.startswith("."):  # half written when its process was killed; see app.common.files
        name = name[1:].rpartition("-")[0]
    for one, patterns in _NAMES.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return one
    return None


def shoal_entries(home: Path) -> list[Path]:
    """Returns all entries of a data folder that belong to Shoal; empty if the folder is missing."""
    with suppress(OSError):
        return sorted(entry for entry in home.iterdir() if kind_of_entry(entry.name) is not None)
    return []


def foreign_entries(home: Path) -> list[Path]:
    """Returns the entries of a data folder that do not belong to Shoal."""
    with suppress(OSError):
        return sorted(entry for entry in home.iterdir() if kind_of_entry(entry.name) is None)
    return []


def sizes(home: Path) -> tuple[DataSize, ...]:
    """Returns the size of each kind of data present, largest first."""
    found: dict[DataKind, list[int]] = {}
    for entry in shoal_entries(home):
        of = kind_of_entry(entry.name)
        assert of is not None
        found.setdefault(of, []).extend(size for _, size in files_of_entry(entry))
    rows = [
        DataSize(kind=of.name.lower(), label=of.value, bytes=sum(each), files=len(each))
        for of, each in found.items()
        if each
    ]
    return tuple(sorted(rows, key=lambda row: -row.bytes))


def files_of_entry(entry: Path) -> Iterator[tuple[Path, int]]:
    """Yields the files of an entry with their sizes in bytes. Links are not followed; files that vanish
    meanwhile are skipped."""
    if entry.is_dir() and not entry.is_symlink():
        with suppress(OSError):
            for name in sorted(os.listdir(entry)):
                yield from files_of_entry(entry / name)
    else:
        with suppress(OSError):
            yield entry, entry.lstat().st_size


def remove(home: Path) -> list[Path]:
    """Deletes all entries of Shoal, and the folder itself if it is empty then. Returns what is left in it,
    including what the system refused to delete."""
    for entry in shoal_entries(home):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with suppress(OSError):
                entry.unlink()
    with suppress(OSError):
        home.rmdir()
    return [*shoal_entries(home), *foreign_entries(home)]


GB = 10**9
"""Bytes per gigabyte; the owner's disk limit is set in GB."""
ROUNDS_WITH_ANSWERS = 20
"""Number of latest rounds that keep their answers, which the window shows."""
LOG_BYTES_KEPT = 64 * 1024
_PATIENCE_S = 2.0


class ThinningResult(msgspec.Struct, frozen=True, kw_only=True):
    """The folder's size before and after thinning, in bytes. `sentence` tells the owner about it; empty if
    nothing was deleted."""

    before: int
    after: int
    sentence: str = ""


def folder_size(home: Path) -> int:
    """Returns the bytes of all files of Shoal in the folder."""
    return sum(row.bytes for row in sizes(home))


def delete_old_data(home: Path, cap: int) -> ThinningResult:
    """Deletes old data until the folder is within `cap` bytes (0: no limit) or nothing else may be deleted: the
    texts of old answers in the histories, logs, then files that can be made again. Never checkpoints, curves,
    rounds, settings or downloaded models.
    Skips files in use while a node runs: a history that is being written, and the newest file of the cache."""
    before = now = folder_size(home) if cap else 0
    for give_up in _in_order(home) if cap else ():
        if now <= cap:
            break
        with suppress(OSError, sqlite3.Error):
            give_up()
        now = folder_size(home)
    return ThinningResult(before=before, after=now, sentence=_sentence(before, now, cap))


def _in_order(home: Path) -> Iterator[Callable[[], None]]:
    for rounds in home.glob("models/*/points"):  # earlier versions kept rounds to go back to
        yield partial(discard, rounds)
    histories = (*home.glob("models/*/history.sqlite"), *home.glob("models/*/skills/*/history.sqlite"))
    for history in sorted(histories, key=_age):
        yield lambda history=history: forget_answers(history)  # type: ignore[misc]
    logs = sorted(home.glob("logs/*"), key=lambda path: (".old" not in path.name, path.name))
    for log in logs:
        yield log.unlink if ".old" in log.name or log.suffix != ".log" else lambda log=log: shorten(log)  # type: ignore[misc]
    cached = sorted((file for file, _ in files_of_entry(home / "cache") if file.is_file()), key=_age)
    for file in cached[:-1]:
        yield file.unlink


def forget_answers(history: Path) -> None:
    """Deletes the texts of all but the latest ROUNDS_WITH_ANSWERS rounds' answers and frees their space. The
    questions' coordinates and the rewards stay. Raises sqlite3.Error while another process writes."""
    with closing(sqlite3.connect(history, isolation_level=None, timeout=_PATIENCE_S)) as db:
        known = {row[1] for row in db.execute("PRAGMA table_info(groups)")}
        texts = [f"{name} = NULL" for name in ("completions", "question") if name in known]
        with transaction(db):
            gone = db.execute(
                f"UPDATE groups SET {', '.join(texts)} WHERE completions IS NOT NULL"
                " AND round <= (SELECT max(round) FROM rounds) - ?",
                (ROUNDS_WITH_ANSWERS,),
            ).rowcount
        if gone:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def shorten(log: Path) -> None:
    """Cuts a log to its last LOG_BYTES_KEPT bytes, starting at a whole line. Processes that append to it are
    not disturbed."""
    with log.open("r+b") as file:
        length = file.seek(0, 2)
        if length <= LOG_BYTES_KEPT:
            return
        file.seek(length - LOG_BYTES_KEPT)
        end = file.read().partition(b"\n")[2]
        file.seek(0)
        file.write(end)
        file.truncate()


def _age(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _sentence(before: int, after: int, cap: int) -> str:
    if before <= cap or not cap:
        return ""
    freed = f"Shoal deleted {in_bytes(before - after)} of old answers, logs and cached files."
    if after <= cap:
        return f"The data folder was over its limit of {cap / GB:g} GB. {freed}"
    return (
        f"The data folder takes {in_bytes(after)}; its limit is {cap / GB:g} GB. {freed} "
        "The rest is what your model learned, and models you downloaded. "
        "Delete models you don't need, or raise the limit."
    )
