"""Locks on files, by the system's own means. Standard library alone: the launcher uses them too, before
anything is installed."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_PAUSE_S = 0.1  # between two attempts at a held lock
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""What the system says of a lock that another process holds; any other error is the disk's."""


class LockHeldError(Exception):
    """Another process holds the lock; `holder` is its process id, "unknown" if it cannot be read."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"Process {holder} holds {path}.")
        self.holder = holder


@contextlib.contextmanager
def exclusive_lock(
    path: Path, wait_s: float = 0.0, waiting: Callable[[], object] = lambda: None
) -> Iterator[int]:
    """Holds an exclusive lock on the file `path` and yields its descriptor; the system releases the lock
    however the process ends. A child that inherits the descriptor (POSIX) keeps the lock until it has ended
    too. `waiting` is called once if another process holds the lock. Raises LockHeldError if it still does after
    `wait_s`, and OSError, also if `path` is a link, whose target would be overwritten."""
    options = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, options, 0o644)
    try:
        end, told = time.monotonic() + wait_s, False
        while not _taken(descriptor):
            if time.monotonic() >= end:
                raise LockHeldError(path, _holder(descriptor))
            if not told:
                waiting()
            told = True
            time.sleep(_PAUSE_S)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b" %d\n" % os.getpid())
        yield descriptor
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    os.lseek(descriptor, 1, os.SEEK_SET)
    return os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"


def _taken(descriptor: int) -> bool:
    """Tries to lock the file; returns whether that worked. Locks only the first byte, so that on Windows others
    can read the process id after it. Raises OSError on a disk that has no locks of either kind."""
    locking: Any
    try:
        if sys.platform == "win32":
            import msvcrt as locking

            os.lseek(descriptor, 0, os.SEEK_SET)
            locking.locking(descriptor, locking.LK_NBLCK, 1)
        else:
            import fcntl as locking

            try:
                locking.flock(descriptor, locking.LOCK_EX | locking.LOCK_NB)
            except OSError as error:
                if error.errno in _HELD:
                    raise
                locking.lockf(descriptor, locking.LOCK_EX | locking.LOCK_NB)  # as some network disks have it
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True
