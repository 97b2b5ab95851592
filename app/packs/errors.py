"""What can go wrong with a pack, as one sentence: what, why, what to do."""

from __future__ import annotations

import errno
from pathlib import Path


class PackError(Exception):
    """The message is for the owner."""


def disk(error: OSError, place: Path) -> PackError:
    """What the disk refused."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PackError(
            f"The disk that holds {place} is full: make some room, then try again; what has come is kept."
        )
    if error.errno == errno.EROFS:
        return PackError(
            f"{place} is on a disk that cannot be written: name another folder with SHOAL_PACKS, then try "
            "again."
        )
    return PackError(
        f"{place} cannot be written ({error.strerror or error}): make that folder yours to write, or name "
        "another "
        "one with SHOAL_PACKS, then try again."
    )
