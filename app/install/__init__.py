"""Installing and updating Shoal: set-up of a checkout, engine packs, new versions.

Packs and updates raise InstallError, a sentence for the user: what, why, what to do."""

from __future__ import annotations

from pathlib import Path


class InstallError(Exception):
    """A pack or a new version cannot be found, downloaded, made or used; the one in use stays unchanged."""


class Checkout(InstallError):
    """This copy has no releases: it is a checkout, updated by git."""

    def __init__(self) -> None:
        from engines import remedy  # the launcher imports this room before anything is installed

        super().__init__(
            "This is a developer copy of Shoal: git pull brings what is new, then start "
            f"{remedy.command()} again."
        )


def disk_error(error: OSError, place: Path) -> InstallError:
    """Returns the InstallError for a disk that refused to write at `place`."""
    from app.common.files import unwritable_sentence

    return InstallError(unwritable_sentence(error, place))
