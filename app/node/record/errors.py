"""The errors that end a node. Each message is one sentence that says what happened, why, and what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class NodeError(Exception):
    """The node cannot continue. The message is for the owner."""


class UsageError(NodeError):
    """The command line is wrong: it names something that does not exist, or combines options that exclude each
    other."""


class BusyError(NodeError):
    """Another node is using the data folder."""


class DiskFullError(NodeError):
    """There is not enough disk space for the next checkpoint."""


_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def says_disk_full(error: BaseException) -> bool:
    """Whether an error, or its cause, means that the disk is full.

    The safetensors library raises its own type, in which the system's number is only text. SQLite reports a
    write that a size limit refused as an I/O error.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _NUMBERS:
            return True
        if isinstance(cause, sqlite3.OperationalError):
            return cause.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
        if any(f"(os error {number})" in str(cause) for number in _NUMBERS):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


@contextmanager
def raising_disk_full(folder: Path) -> Iterator[None]:
    """Turns errors that mean a full disk into DiskFullError; other errors pass."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if not says_disk_full(error):
            raise
        raise DiskFullError(disk_full_sentence(folder)) from error


def disk_full_sentence(folder: Path) -> str:
    return (
        f"The disk that holds {folder} is full: free up some space or choose another --home, then start again."
    )
