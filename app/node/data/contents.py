"""The contents of a data folder, by kind.

Anything not named here is not ours: it is neither moved nor removed, even if somebody gave a folder of their
own with --home."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec


class DataKind(Enum):
    """The value is what people call it."""

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
        "energy.json",
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
    """The size of one kind of data."""

    kind: str
    label: str
    bytes: int
    files: int


def kind(name: str) -> DataKind | None:
    """The kind of an entry of the data folder; None if it is not ours.

    >>> kind("models") is DataKind.LEARNED, kind(".settings.json-4711") is DataKind.OWN, kind("holiday.jpg")
    (True, True, None)
    """
    if name.startswith("."):  # half written when its process was killed; see app.common.files
        name = name[1:].rpartition("-")[0]
    for one, patterns in _NAMES.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return one
    return None


def ours(home: Path) -> list[Path]:
    """Everything of ours in a data folder; empty if the folder is missing."""
    with suppress(OSError):
        return sorted(entry for entry in home.iterdir() if kind(entry.name) is not None)
    return []


def others(home: Path) -> list[Path]:
    """Entries that somebody else put there."""
    with suppress(OSError):
        return sorted(entry for entry in home.iterdir() if kind(entry.name) is None)
    return []


def sizes(home: Path) -> tuple[DataSize, ...]:
    """The size of each kind, the largest first, without kinds that are missing."""
    found: dict[DataKind, list[int]] = {}
    for entry in ours(home):
        of = kind(entry.name)
        assert of is not None
        found.setdefault(of, []).extend(size for _, size in files(entry))
    rows = [
        DataSize(kind=of.name.lower(), label=of.value, bytes=sum(each), files=len(each))
        for of, each in found.items()
        if each
    ]
    return tuple(sorted(rows, key=lambda row: -row.bytes))


def files(entry: Path) -> Iterator[tuple[Path, int]]:
    """The files of an entry with their sizes. Links are not followed; files that vanish meanwhile are left
    out."""
    if entry.is_dir() and not entry.is_symlink():
        with suppress(OSError):
            for name in sorted(os.listdir(entry)):
                yield from files(entry / name)
    else:
        with suppress(OSError):
            yield entry, entry.lstat().st_size


def remove(home: Path) -> list[Path]:
    """Deletes everything of ours, and the folder itself if nothing else is in it. Returns what is left there,
    including what the system refused to delete."""
    for entry in ours(home):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with suppress(OSError):
                entry.unlink()
    with suppress(OSError):
        home.rmdir()
    return [*ours(home), *others(home)]
