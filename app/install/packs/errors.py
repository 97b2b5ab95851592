"""What can go wrong with a pack, as one sentence: what, why, what to do."""

from __future__ import annotations

from pathlib import Path

from app.common.files import unwritable


class PackError(Exception):
    """The message is for the owner."""


def disk(error: OSError, place: Path) -> PackError:
    """What the disk refused."""
    return PackError(unwritable(error, place, "name another folder with SHOAL_PACKS"))
