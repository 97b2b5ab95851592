"""Which packs there are for this computer, the one that suits it best first: those that this version of Shoal
names, and those that came with its installer."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from app.common import files
from app.install.launcher.stamp import APPLE_SILICON
from app.install.packs import manifest, place, source
from app.install.packs.errors import PackError
from app.install.packs.events import Offered
from app.install.packs.manifest import PackOffer, PackTrust

LAST = 9


def offered(trust: PackTrust, root: Path, carried: Path | None, card: bool) -> list[Offered]:
    """`card`: an NVIDIA driver runs here. Of packs without a PackOffer nothing but the name is known."""
    found: dict[str, Offered] = {}
    for name in trust.manifests:
        known = trust.offers.get(name)
        found[name] = _row(name, known, root) if known else Offered(name=name)
    for path in manifests_in(carried, card) if carried is not None else []:
        with contextlib.suppress(PackError):  # it is of another system, or damaged: its installation says so
            one = source.load(str(path), trust.keys).manifest
            manifest.check_here(one)
            found[one.name] = _row(one.name, manifest.offer(one), root, str(path.parent))
    return sorted(
        (one for one in found.values() if rank(one.name, card) < LAST),
        key=lambda one: (not one.carried, rank(one.name, card), one.name),
    )


def rank(name: str, card: bool, apple: bool = APPLE_SILICON) -> int:
    """How well a pack suits this computer: small numbers are better, LAST is not at all.

    >>> [rank(name, card=True, apple=False) for name in ("cuda", "cpu", "cpu_llamacpp", "mlx")]
    [0, 1, 2, 9]
    >>> [rank(name, card=False, apple=True) for name in ("cuda", "cpu", "mlx")]
    [9, 1, 0]
    """
    kind = name.partition("_")[0]
    if kind == "cuda":
        return 0 if card else LAST
    if kind == "mlx":
        return 0 if apple else LAST
    return 1 if name == "cpu" else 2


def manifests_in(folder: Path, card: bool) -> list[Path]:
    """The manifests in a folder or one below it, the one that suits this computer best first."""
    for signed in (folder.glob("*.json.sig"), folder.glob("*/*.json.sig")):
        with contextlib.suppress(OSError):
            names = [path.with_suffix("") for path in signed]
            if names:
                return sorted(names, key=lambda path: (rank(path.stem, card), path))
    return []


def chosen_in(folder: Path, card: bool) -> Path:
    """The manifest to take out of a folder that somebody chose. Raises PackError."""
    found = manifests_in(folder, card)
    if not found:
        raise PackError(
            f"{folder} holds no engine: choose the folder with the engine's files; one of them has a name such "
            "as cpu.json."
        )
    return found[0]


def _row(name: str, offer: PackOffer, root: Path, carried: str = "") -> Offered:
    wheels = root / ".work" / f"{name}-{offer.version}" / "wheels"
    return Offered(
        name=name,
        version=offer.version,
        title=offer.title,
        bytes=offer.bytes,
        disk=offer.disk,
        have=min(files.size(wheels), offer.bytes),
        carried=carried,
    )


def newer(offers: Sequence[Offered], current: str) -> str:
    """The name of the offer that belongs to this version of Shoal instead of the pack in use, which has another
    version; empty where there is none.

    >>> newer([Offered(name="cpu", version="2.0")], "cpu-1.0-r1")
    'cpu'
    >>> newer([Offered(name="cpu", version="1.0")], "cpu-1.0-r1"), newer([Offered(name="cpu")], "cpu-1.0")
    ('', '')
    """
    if not current:
        return ""
    name, version, _ = place.parts(current)
    return next((one.name for one in offers if one.name == name and one.version not in ("", version)), "")
