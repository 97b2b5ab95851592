"""What can go wrong with an update, as one sentence: what, why, what to do."""

from __future__ import annotations

import errno
from pathlib import Path

from app import remedy


class UpdateError(Exception):
    """The message is for the owner. Whatever runs here goes on running as it is."""


class Checkout(UpdateError):
    """This copy has no releases: git brings what is new."""

    def __init__(self) -> None:
        super().__init__(
            "This copy of Shoal is a checkout: git pull brings what is new, then start "
            f"{remedy.command()} again."
        )


def disk(error: OSError, place: Path) -> UpdateError:
    """What the disk refused."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UpdateError(
            f"The disk that holds {place} is full: make some room, then try again; what has come is kept."
        )
    return UpdateError(
        f"{place} cannot be written ({error.strerror or error}): make that folder yours to write, then try "
        "again."
    )
