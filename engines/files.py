"""Atomic file operations: replace in one step, flush, measure, delete.

kill -9 at any moment leaves either the old content or the new one. app.common.files re-exports these functions
for the application, which engines must not import; nothing else replaces a file. Locks are in engines.locks."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

import msgspec

from engines.locks import LockHeldError as LockHeldError
from engines.locks import exclusive_lock as exclusive_lock

PATIENCE_S = 1.0
"""Maximum seconds to wait for a reader on Windows."""
REMOVING_PREFIX = ".removing-"
"""Name prefix of folders that are being deleted."""
_PAUSE_S = 0.02  # between two attempts while a reader holds a file (Windows)
Content = TypeVar("Content")


def replace(fresh: Path, path: Path, platform: str = sys.platform) -> None:
    """Renames `fresh` to `path` in one step. Windows refuses while another process reads the old file, so the
    call is retried there for PATIENCE_S. Raises OSError."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            os.replace(fresh, path)
            return
        except PermissionError:
            if platform != "win32" or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_S)


@contextlib.contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path` for its new content, which is flushed and renamed to `path` at the
    end of the block. If the block or the disk fails, the old content stays and the temporary file is deleted.
    Raises OSError."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        yield fresh
        flush(fresh)
        replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


def write(path: Path, content: bytes, *, private: bool = False) -> None:
    """Replaces the whole file in one step and creates its folders. `private`: only the owner may read it.
    Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with staged(path) as fresh:
        fresh.unlink(missing_ok=True)
        made = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with open(made, "wb") as file:
            file.write(content)


def write_json(path: Path, content: object, *, private: bool = False) -> None:
    """Writes the content as indented JSON. Raises OSError."""
    write(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n", private=private)


def read_json(path: Path, kind: type[Content], most: int = -1) -> Content | None:
    """Reads a JSON file of at most `most` bytes; returns None if it is missing or invalid."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(most), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def flush(path: Path) -> None:
    """Forces a file, or the entries of a folder, to disk. Raises OSError."""
    windows = os.name == "nt"
    if windows and path.is_dir():
        return  # Windows has no folder handle to flush, and persists names by itself
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(path: Path) -> None:
    """Deletes a file or a folder; a folder is renamed first, so that a half-deleted one is never taken for
    complete. Raises OSError."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path.with_name(f"{REMOVING_PREFIX}{token_hex(4)}")
    path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def size_on_disk(path: Path) -> int:
    """Returns the bytes of all files below a folder, hard links counted once; symbolic links are not
    followed."""
    seen: set[int] = set()
    total, waiting = 0, [str(path)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_symlink():
                    info = entry.stat()
                    if info.st_nlink == 1 or info.st_ino not in seen:
                        total += info.st_size
                        seen.add(info.st_ino)
    return total


DISK_SPARE = 500 * 10**6
"""Bytes of disk space that downloads must leave free: a full disk stops other programs too."""


def free_bytes(path: Path) -> int:
    """Returns the bytes free on the disk that holds `path`, or will hold it. Raises OSError."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


@contextlib.contextmanager
def folder_lock(partial: Path, wait_s: float = 0.0) -> Iterator[bool]:
    """Holds a lock on `partial`, a folder that is being filled. Yields False if another process still holds it
    after `wait_s`. The system releases the lock however the process ends."""
    partial.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(exclusive_lock(lock_of(partial), wait_s))
        except LockHeldError:
            yield False
            return
        yield True


def lock_of(partial: Path) -> Path:
    """Returns the lock file beside a folder that is being filled."""
    return partial.with_name(f"{partial.name}.lock")


def scaled(count: float) -> tuple[float, str]:
    """Returns a byte count as a value and a unit, in powers of 1000.
    >>> scaled(999), scaled(2_340), scaled(15_600_000)
    ((999, 'B'), (2.34, 'kB'), (15.6, 'MB'))
    """
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return count, unit
        count /= 1000
    return count, "GB"


def in_bytes(count: float) -> str:
    """Returns a byte count as text.
    >>> in_bytes(0), in_bytes(988_097_824), in_bytes(2_340_000_000)
    ('0 B', '988.1 MB', '2.3 GB')
    """
    value, unit = scaled(count)
    return f"{value:,.{0 if unit == 'B' else 1}f} {unit}"


def user_temp_folder() -> Path:
    """Returns this user's private folder in the system's temporary folder, for programs without a data
    folder."""
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"shoal-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        folder = Path(tempfile.mkdtemp(prefix="shoal-"))
    return folder
