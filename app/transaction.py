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
