"""The errors of packs and updates, each one sentence for the owner: what, why, what to do."""

from __future__ import annotations

from pathlib import Path

from app.common import remedy
from app.common.files import unwritable


class PackError(Exception):
    """A pack cannot be used, downloaded or made."""


def pack_disk_error(error: OSError, place: Path) -> PackError:
    """The error for a refusal of the disk at `place`."""
    return PackError(unwritable(error, place, "name another folder with SHOAL_PACKS"))


class UpdateError(Exception):
    """A new version cannot be found, downloaded or installed; the running version is not touched."""


class Checkout(UpdateError):
    """This copy has no releases: git updates it."""

    def __init__(self) -> None:
        super().__init__(
            "This is a developer copy of Shoal: git pull brings what is new, then start "
            f"{remedy.command()} again."
        )


def update_disk_error(error: OSError, place: Path) -> UpdateError:
    """The error for a refusal of the disk at `place`."""
    return UpdateError(unwritable(error, place))
