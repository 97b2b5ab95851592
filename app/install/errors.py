"""The errors of an update, as one sentence: what, why, what to do."""

from __future__ import annotations

from pathlib import Path

from app.common import remedy
from app.common.files import unwritable

# The errors of a pack, as one sentence: what, why, what to do.


class PackError(Exception):
    """The message is for the owner."""


def pack_disk_error(error: OSError, place: Path) -> PackError:
    """What the disk refused."""
    return PackError(unwritable(error, place, "name another folder with SHOAL_PACKS"))


class UpdateError(Exception):
    """The message is for the owner. Whatever runs here goes on running as it is."""


class Checkout(UpdateError):
    """This copy has no releases: git brings what is new."""

    def __init__(self) -> None:
        super().__init__(
            "This is a developer copy of Shoal: git pull brings what is new, then start "
            f"{remedy.command()} again."
        )


def update_disk_error(error: OSError, place: Path) -> UpdateError:
    """What the disk refused."""
    return UpdateError(unwritable(error, place))
