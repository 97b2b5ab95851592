"""How Shoal is installed and updated: set-up of a checkout, engine packs, new versions. Packs and updates fail
with one error, a sentence for the owner: what, why, what to do."""

from __future__ import annotations

from pathlib import Path


class InstallError(Exception):
    """A pack or a new version cannot be found, downloaded, made or used; what was in use stays as it is."""


class Checkout(InstallError):
    """This copy has no releases: git updates it."""

    def __init__(self) -> None:
        from engines import remedy  # the launcher imports this room before anything is installed

        super().__init__(
            "This is a developer copy of Shoal: git pull brings what is new, then start "
            f"{remedy.command()} again."
        )


def disk_error(error: OSError, place: Path) -> InstallError:
    """The error for a refusal of the disk at `place`."""
    from app.common.files import unwritable

    return InstallError(unwritable(error, place))


def pack_disk_error(error: OSError, place: Path) -> InstallError:
    """The same for the folder of packs, which can be another one."""
    from app.common.files import unwritable

    return InstallError(unwritable(error, place, "name another folder with SHOAL_PACKS"))
