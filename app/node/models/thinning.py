"""The owner's limit on the size of the data folder: what is deleted first if it is exceeded.

In this order: the texts of old answers in the histories, logs, files that can be made again. Never checkpoints,
curves, rounds, settings or downloaded models; a limit below those is reported, and nothing more is deleted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import msgspec

from app.common import files
from app.common.files import transaction
from app.common.text import in_bytes
from app.node.data import contents

GB = 10**9
"""Bytes of the unit that the owner's limit is given in."""
ROUNDS_KEPT = 20
"""Number of latest rounds that keep their answers, because the window shows them."""
LOG_KEPT = 64 * 1024
_PATIENCE_S = 2.0


class ThinningResult(msgspec.Struct, frozen=True, kw_only=True):
    """The folder's size before and after, in bytes; `sentence` is for the owner, empty if nothing was
    deleted."""

    before: int
    after: int
    sentence: str = ""


def size(home: Path) -> int:
    return sum(row.bytes for row in contents.sizes(home))


def thin(home: Path, cap: int) -> ThinningResult:
    """Deletes until the folder is within `cap` bytes (0: no limit), or nothing more may be deleted. While a
    node runs it skips files in use: a history being written is left for the next time, and so is the newest
    file of the cache.
    """
    before = now = size(home) if cap else 0
    for give_up in _in_order(home) if cap else ():
        if now <= cap:
            break
        with suppress(OSError, sqlite3.Error):
            give_up()
        now = size(home)
    return ThinningResult(before=before, after=now, sentence=_sentence(before, now, cap))


def _in_order(home: Path) -> Iterator[Callable[[], None]]:
    for rounds in home.glob("models/*/points"):  # earlier versions kept rounds to go back to
        yield partial(files.discard, rounds)
    for history in sorted(home.glob("models/*/history.sqlite"), key=_age):
        yield lambda history=history: forget_answers(history)  # type: ignore[misc]
    logs = sorted(home.glob("logs/*"), key=lambda path: (".old" not in path.name, path.name))
    for log in logs:
        yield log.unlink if ".old" in log.name or log.suffix != ".log" else lambda log=log: shorten(log)  # type: ignore[misc]
    cached = sorted((file for file, _ in contents.files(home / "cache") if file.is_file()), key=_age)
    for file in cached[:-1]:
        yield file.unlink


def forget_answers(history: Path, keep: int = ROUNDS_KEPT) -> None:
    """Deletes the texts of all but the latest rounds' answers and frees their space. Which questions were
    answered, by coordinates, and what was right, stays. Raises sqlite3.Error while another process writes."""
    with closing(sqlite3.connect(history, isolation_level=None, timeout=_PATIENCE_S)) as db:
        known = {row[1] for row in db.execute("PRAGMA table_info(groups)")}
        texts = [f"{name} = NULL" for name in ("completions", "question") if name in known]
        with transaction(db):
            gone = db.execute(
                f"UPDATE groups SET {', '.join(texts)} WHERE completions IS NOT NULL"
                " AND round <= (SELECT max(round) FROM rounds) - ?",
                (keep,),
            ).rowcount
        if gone:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def shorten(log: Path, keep: int = LOG_KEPT) -> None:
    """Keeps only the end of a log, from the start of a line. Processes that append to it can go on."""
    with log.open("r+b") as file:
        length = file.seek(0, 2)
        if length <= keep:
            return
        file.seek(length - keep)
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
