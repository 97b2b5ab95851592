"""Which packs there are for this computer: those that this version of Shoal names, and those that came with its
installer.

Anyone who gives packs out could offer an old manifest again: it is still signed, and what was found wrong in
it since then still is. So a pack is never older than the one that this version of Shoal was released with, nor
than one of its name that was here before. A manifest has no end: a pack on a stick works years later."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.common import files
from app.common.rate import RetryLimit
from app.install import InstallError
from app.install.launcher.stamp import APPLE_SILICON
from app.install.packs import manifest, place
from app.install.packs import manifest as manifests
from app.install.packs.manifest import PackManifest, PackOffer, SignedManifest, Trust
from app.install.packs.place import Offered
from app.install.signed import is_address, load
from engines import remedy


def load_manifest(where: str, keys: tuple[str, ...], patience: RetryLimit | None = None) -> SignedManifest:
    """Loads a manifest from an address or a file and verifies it. Raises InstallError."""
    content, signature = load(where, manifests.MANIFEST, "--manifest", patience or RetryLimit())
    base = where if is_address(where) else str(Path(where).expanduser().absolute().parent)
    return manifests.read_manifest(content, signature, keys, base)


SEEN = "seen.json"


def check_not_older(root: Path, manifest: PackManifest, oldest: Mapping[str, int], older: bool) -> None:
    """Raises InstallError for a pack older than the one released with this Shoal (`oldest`: release times by
    name) or, unless `older`, than the last one seen."""
    least = oldest.get(manifest.name, 0)
    if manifest.made < least:
        raise InstallError(
            f"{manifest.title} of {_day(manifest.made)} is older than this Shoal, which belongs to one of "
            f"{_day(least)}, so nothing was installed: take the pack that came out with it."
        )
    seen = 0 if older else _releases_seen(root).get(manifest.name, 0)
    if manifest.made < seen:
        raise InstallError(
            f"{manifest.title} of {_day(manifest.made)} is older than one that was here, of {_day(seen)}, so "
            f"nothing was installed: take the newest; {remedy.command('pack install --older')} takes this one "
            "anyway."
        )


def remember_release(root: Path, manifest: PackManifest) -> None:
    """Records that this release was seen. Raises OSError."""
    seen = _releases_seen(root)
    if seen.get(manifest.name) != manifest.made:
        files.write_json(root / SEEN, {**seen, manifest.name: manifest.made})


def _releases_seen(root: Path) -> dict[str, int]:
    return files.read_json(root / SEEN, dict[str, int]) or {}


def _day(made: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(made))


LAST = 9


def offered(trust: Trust, root: Path, carried: Path | None, card: bool) -> list[Offered]:
    """Returns the packs that can be installed. `card`: an NVIDIA driver runs here. Of packs without a PackOffer
    only the name is known."""
    found: dict[str, Offered] = {}
    for name in trust.manifests:
        known = trust.offers.get(name)
        found[name] = _row(name, known, root) if known else Offered(name=name)
    for path in manifests_in(carried, card) if carried is not None else []:
        with contextlib.suppress(InstallError):  # it is of another system, or damaged: its installation says so
            one = load_manifest(str(path), trust.keys).manifest
            manifest.check_here(one)
            found[one.name] = _row(one.name, manifest.offer(one), root, str(path.parent))
    return sorted(
        (one for one in found.values() if rank(one.name, card) < LAST),
        key=lambda one: (not one.carried, rank(one.name, card), one.name),
    )


def rank(name: str, card: bool, apple: bool = APPLE_SILICON) -> int:
    """Returns how well a pack suits this computer: lower is better, LAST means not at all.

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
    """Returns the manifests in a folder or one level below it, most suitable for this computer first."""
    for signed in (folder.glob("*.json.sig"), folder.glob("*/*.json.sig")):
        with contextlib.suppress(OSError):
            names = [path.with_suffix("") for path in signed]
            if names:
                return sorted(names, key=lambda path: (rank(path.stem, card), path))
    return []


def chosen_in(folder: Path, card: bool) -> Path:
    """Returns the most suitable manifest in a folder that the user chose. Raises InstallError."""
    found = manifests_in(folder, card)
    if not found:
        raise InstallError(
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
        have=min(files.size_on_disk(wheels), offer.bytes),
        carried=carried,
    )


def newer(offers: Sequence[Offered], current: str) -> str:
    """Returns the name of this version's offer if the pack in use has another version; else empty.

    >>> newer([Offered(name="cpu", version="2.0")], "cpu-1.0-r1")
    'cpu'
    >>> newer([Offered(name="cpu", version="1.0")], "cpu-1.0-r1"), newer([Offered(name="cpu")], "cpu-1.0")
    ('', '')
    """
    if not current:
        return ""
    name, version, _ = place.parts(current)
    return next((one.name for one in offers if one.name == name and one.version not in ("", version)), "")
