"""One set-up at a time: a lock on a file that the system releases when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from app.install.launcher.pythons import SetupError

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def lock(path: Path, waiting: Callable[[], None], every: float = 0.2) -> Iterator[int]:
    """Holds the lock file at `path`, yielding its descriptor. While another process has it, `waiting` is called
    once and the lock is tried again every so many seconds. The file stays behind: removing it would let two in
    at once.

    Handing the descriptor to a child process (POSIX) keeps the lock until that child has ended too, so a pip
    that outlives a killed launcher is waited for. Raises SetupError when the file cannot be made.
    """
    try:
        options = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | options, 0o644)
    except OSError as error:
        raise SetupError(
            f"Shoal cannot write into {path.parent} ({error.strerror}), where it keeps its Python environment; "
            "make that folder writable or copy Shoal into one of your own, then start it again."
        ) from error
    try:
        told = False
        while True:
            try:
                _take(descriptor)
                break
            except OSError:
                if not told:
                    waiting()
                told = True
                time.sleep(every)
        yield descriptor
    finally:
        os.close(descriptor)
