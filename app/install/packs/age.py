"""Which release of a pack is older. Whoever gives packs out could offer an old manifest again: it is still
signed, and what was found wrong in it since then still is. So a pack is never older than the one that this
version of Shoal was released with, nor than one of its name that was here before.

A manifest has no end: a pack on a stick works years later. That nothing newer is offered to somebody is told by
the releases of Shoal itself, which name the pack that belongs to them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from app.common import files, remedy
from app.install.packs.errors import PackError
from app.install.packs.manifest import PackManifest

SEEN = "seen.json"


def check(root: Path, manifest: PackManifest, oldest: Mapping[str, int], older: bool) -> None:
    """`oldest`: what this version of Shoal was released with, by name. `older` allows less than was here
    before. Raises PackError."""
    least = oldest.get(manifest.name, 0)
    if manifest.made < least:
        raise PackError(
            f"{manifest.title} of {_day(manifest.made)} is older than this Shoal, which belongs to one of "
            f"{_day(least)}, so nothing was installed: take the pack that came out with it."
        )
    seen = 0 if older else _seen(root).get(manifest.name, 0)
    if manifest.made < seen:
        raise PackError(
            f"{manifest.title} of {_day(manifest.made)} is older than one that was here, of {_day(seen)}, so "
            f"nothing was installed: take the newest; {remedy.command('pack install --older')} takes this one "
            "anyway."
        )


def remember(root: Path, manifest: PackManifest) -> None:
    """Raises OSError."""
    seen = _seen(root)
    if seen.get(manifest.name) != manifest.made:
        files.write_json(root / SEEN, {**seen, manifest.name: manifest.made})


def _seen(root: Path) -> dict[str, int]:
    return files.read_json(root / SEEN, dict[str, int]) or {}


def _day(made: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(made))
