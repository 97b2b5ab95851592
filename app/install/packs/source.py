"""Where a manifest comes from: an address or a file, with its signature beside it."""

from __future__ import annotations

from pathlib import Path

from app.common import fetch
from app.common.connection import Fault
from app.common.rate import Patience
from app.install.packs import manifest as manifests
from app.install.packs.errors import PackError
from app.install.packs.manifest import SignedManifest, is_address


def load(where: str, keys: tuple[str, ...], patience: Patience | None = None) -> SignedManifest:
    """The manifest at an address or in a file, checked. Raises PackError."""
    if is_address(where):
        wanted = ((where, manifests.MANIFEST), (f"{where}.sig", manifests.SIGNATURE))
        try:
            content, signature = fetch.ask(wanted, patience or Patience())
        except Fault as caught:
            raise PackError(str(caught)) from caught
        return manifests.read(content, signature, keys, where)
    path = Path(where).expanduser().absolute()
    try:
        with path.open("rb") as one, path.with_name(f"{path.name}.sig").open("rb") as two:
            content, signature = one.read(manifests.MANIFEST + 1), two.read(manifests.SIGNATURE)
    except OSError as error:
        raise PackError(
            f"{error.filename} can't be read ({error.strerror}): name the manifest with --manifest, with its "
            "signature beside it."
        ) from error
    return manifests.read(content, signature, keys, str(path.parent))
