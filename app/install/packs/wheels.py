"""A pack's wheels: fetched, copied from beside their manifest, or found in a folder that the owner names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urljoin

from app.common import fetch
from app.common.connection import Fault
from app.common.rate import Patience
from app.install.errors import PackError, pack_disk_error
from app.install.packs.manifest import PackManifest, Wheel, is_address

Tell = Callable[[int, str], None]
"""Bytes that are here, of all wheels, and the file they belong to."""


def fetch_wheels(
    manifest: PackManifest,
    wheels: tuple[Wheel, ...],
    base: str,
    to: Path,
    tell: Tell,
    waiting: fetch.Waiting,
    patience: Patience | None = None,
) -> None:
    """Downloads all `wheels` into `to`, complete and correct. Raises PackError; what has arrived is kept."""
    have = 0

    def heard(piece: fetch.Piece, count: int) -> None:
        tell(have + count, piece.file)

    def came(piece: fetch.Piece) -> None:
        nonlocal have
        have += piece.size

    try:
        to.mkdir(parents=True, exist_ok=True)
        for wheel in wheels:
            if not is_address(base) and not is_address(wheel.url) and not fetch.right(to / wheel.file, wheel):
                fetch.copy(_beside(Path(base), wheel.url), wheel, to)
        orders = [fetch.PieceOrder(wheel, _sources(manifest, wheel, base)) for wheel in wheels]
        fetch.bring(orders, to, heard, waiting, patience, came=came)
    except Fault as caught:
        raise PackError(str(caught)) from caught
    except OSError as error:
        raise pack_disk_error(error, to) from error


def check_wheels(wheels: tuple[Wheel, ...], folder: Path, tell: Tell) -> None:
    """Checks that a folder, as an offline installer brings it, has all wheels undamaged, and reports their
    bytes. Raises PackError."""
    have = 0
    for wheel in wheels:
        path = _beside(folder, wheel.file)
        if not fetch.right(path, wheel):
            raise PackError(f"{path} is damaged or another file than the manifest names: copy it there again.")
        have += wheel.size
        tell(have, wheel.file)


def _beside(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise PackError(f"{name} isn't in {folder}: copy all files of the pack there, then try again.")
    return folder / name


def _sources(manifest: PackManifest, wheel: Wheel, base: str) -> list[str]:
    first = wheel.url if is_address(wheel.url) else urljoin(base, quote(wheel.url))
    return [first, *(f"{mirror.rstrip('/')}/{quote(wheel.file)}" for mirror in manifest.mirrors)]
