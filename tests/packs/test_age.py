"""Old manifests offered again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.install import InstallError
from app.install.packs import offered as age
from app.install.packs import place
from app.install.packs.installing import PackInstaller
from app.install.packs.manifest import PackManifest, SignedManifest
from tests.packs.wheels import signed, wheel, write_out

DAY = 86_400
NEW, OLD = 20_000 * DAY, 19_000 * DAY


def pack(version: str, made: int, tmp_path: Path) -> tuple[SignedManifest, Path]:
    files = dict([wheel("shoal_small", version, fill=100)])
    return signed(files, version=version, made=made), write_out(files, tmp_path / version)


def installer(root: Path, **options: Any) -> PackInstaller:
    return PackInstaller(root, lambda _: None, oldest=options.pop("oldest", {}), **options)


def test_an_older_pack_never_takes_a_newer_ones_place(tmp_path: Path) -> None:
    root = tmp_path / "packs"
    assert installer(root).install(*pack("2.0", NEW, tmp_path)) == "cpu-2.0"
    old, folder = pack("1.0", OLD, tmp_path)
    with pytest.raises(
        InstallError, match=r"of 2022-01-08 is older than one that was here, of 2024-10-04"
    ) as caught:
        installer(root).install(old, folder)
    assert "--older" in str(caught.value) and place.packs(root) == ["cpu-2.0"]
    assert installer(root, older=True).install(old, folder) == "cpu-1.0"
    installer(root).remove()
    assert installer(root).install(old, folder) == "cpu-1.0"  # whoever removes everything begins anew


def test_nothing_older_than_this_version_of_shoal_is_taken(tmp_path: Path) -> None:
    old, folder = pack("1.0", OLD, tmp_path)
    root = tmp_path / "packs"
    for options in ({}, {"older": True}):
        with pytest.raises(InstallError, match="older than this Shoal, which belongs to one of 2024-10-04"):
            installer(root, oldest={"cpu": NEW}, **options).install(old, folder)
    installer(root, oldest={"cuda": NEW}).install(old, folder)
    installer(root, oldest={"cpu": NEW}).install(*pack("2.0", NEW, tmp_path))


def test_a_memory_that_is_damaged_is_none(tmp_path: Path) -> None:
    manifest: PackManifest = pack("1.0", OLD, tmp_path)[0].manifest
    for content in (b"", b"[]", b'{"cpu": "x"}', b"\xff"):
        (tmp_path / age.SEEN).write_bytes(content)
        age.check_not_older(tmp_path, manifest, {}, False)
    age.remember_release(tmp_path, manifest)
    assert (tmp_path / age.SEEN).read_text().split() == ["{", '"cpu":', str(OLD), "}"]
