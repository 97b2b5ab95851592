"""One way of changing an SQLite file: all of it or nothing. Used by every room that keeps one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Takes the write lock, commits at the end, and undoes everything when the block or the commit fails. `db`
    is opened with `isolation_level=None`. Raises what the block or SQLite raised."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk makes SQLite roll back by itself
            db.execute("ROLLBACK")
        raise


def alone(db: sqlite3.Connection) -> None:
    """From here on one process at a time, whose commits outlive a power cut. The lock goes with the process."""
    for setting in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL"):
        db.execute(f"PRAGMA {setting}")


def tables(db: sqlite3.Connection, schema: str, version: int) -> bool:
    """Makes the tables where there are none. Whether the file is of this version. Within a transaction."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found == 0:
        for statement in schema.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version={version}")
    return found in (0, version)
