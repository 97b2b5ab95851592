"""Atomic file writes (re-exported from engines.files), JSON files that may be damaged, and SQLite
transactions."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

import msgspec

from engines.files import REMOVING_PREFIX as REMOVING_PREFIX
from engines.files import LockHeldError as LockHeldError
from engines.files import discard as discard
from engines.files import exclusive_lock as exclusive_lock
from engines.files import flush as flush
from engines.files import free_bytes as free_bytes
from engines.files import read_json as read_json
from engines.files import replace as replace
from engines.files import size_on_disk as size_on_disk
from engines.files import staged as staged
from engines.files import write as write
from engines.files import write_json as write_json

LOG_BYTES = 2**20
"""Maximum size of a log file in bytes before it is rotated; one older file is kept."""
Content = TypeVar("Content")


def read_or_set_aside(path: Path, kind: type[Content]) -> tuple[Content | None, str]:
    """Reads a JSON file. Returns (content, ""), (None, "") if there is no file, or (None, sentence) for a
    damaged one, which is renamed out of the way."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind), ""
    except FileNotFoundError:
        return None, ""
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        aside = path.with_name(f"damaged-{path.name}-{token_hex(2)}")
        kept = "It starts as at first."
        with contextlib.suppress(OSError):
            path.rename(aside)
            kept = f"It starts as at first; the old one is kept as {aside.name}."
        why = str(error).rstrip(".")
        return None, f"{path.name} can't be read ({why}). {kept}"


def prepare_log(log: Path) -> Path:
    """Prepares a log file for appending and returns its path: creates the folder, rotates an overlong log, and
    removes a symbolic link, whose target is not a log. Raises OSError."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.is_symlink():
        log.unlink()
    if log.exists() and log.stat().st_size > LOG_BYTES:
        replace(log, log.with_suffix(".old.log"))
    return log


def unwritable_sentence(error: OSError, path: Path, other: str = "") -> str:
    """Returns a sentence that says why `path` cannot be written and what to do; `other` names an alternative,
    such as choosing another folder.

    >>> print(unwritable_sentence(OSError(errno.ENOSPC, "No space left on device"), Path("hub")))
    The disk that holds hub is full: free up some space, then try again. Nothing is lost.
    >>> denied = OSError(errno.EACCES, "Permission denied")
    >>> print(unwritable_sentence(denied, Path("hub"), "name another folder"))
    hub can't be written (Permission denied): make that folder writable, or name another folder, then try again.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk that holds {path} is full: free up some space, then try again. Nothing is lost."
    if error.errno == errno.EROFS and other:
        return f"{path} is on a disk that can't be written: {other}, then try again."
    if other:
        return (
            f"{path} can't be written ({error.strerror or error}): make that folder writable, or {other}, then "
            "try again."
        )
    return f"{path} can't be written ({error.strerror or error}): make that folder writable, then try again."


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Takes the write lock, commits at the end of the block, and rolls back if the block or the commit fails.
    `db` must be opened with `isolation_level=None`. Raises what the block or SQLite raised."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk makes SQLite roll back by itself
            db.execute("ROLLBACK")
        raise


def sole_writer(db: sqlite3.Connection) -> None:
    """Makes this process the only one that can write the database, with commits that survive a power cut. The
    lock is released when the process ends."""
    for setting in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL"):
        db.execute(f"PRAGMA {setting}")


def create_tables(db: sqlite3.Connection, schema: str, version: int) -> bool:
    """Creates the tables of `schema` in an empty database. Returns whether the database has this version."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found == 0:
        for statement in schema.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version={version}")
    return found in (0, version)
