"""What can be had, told before anything is fetched; and whether what is there still works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.install import InstallError
from app.install.packs import manifest, offered, place, programs
from app.install.packs.installing import PackInstaller
from app.install.packs.manifest import Trust
from tests.packs.wheels import KEYS, encoded, plain, signed, wheel, with_uv, write_out


def carried(folder: Path, files: dict[str, bytes], *names: str) -> Path:
    """An offline pack for each name."""
    for name in names:
        files[f"{name}.json"], files[f"{name}.json.sig"] = encoded(plain(files, name=name))
    return write_out(files, folder)


def test_sizes_are_told_and_what_came_is_counted(files: dict[str, bytes], tmp_path: Path) -> None:
    one = manifest.offer(signed(files).manifest)
    assert one.bytes == sum(len(content) for content in with_uv(files).values()) and one.disk == 50_000_000
    wheels = tmp_path / ".work" / "cpu-1.0" / "wheels"
    wheels.mkdir(parents=True)
    (wheels / "half.part").write_bytes(b"x" * 100)
    trust = Trust(keys=KEYS, manifests={"cpu": "http://a/cpu.json", "mlx": "http://a/m"}, offers={"cpu": one})
    (row,) = offered.offered(trust, tmp_path, None, card=False)
    assert (row.name, row.version, row.bytes, row.have, row.carried) == ("cpu", "1.0", one.bytes, 100, "")
    assert offered.offered(Trust(keys=KEYS, manifests={"cpu": "a"}), tmp_path, None, card=False)[0].bytes == 0


def test_what_came_with_the_installer_comes_first(files: dict[str, bytes], tmp_path: Path) -> None:
    stick = carried(tmp_path / "stick", files, "cpu", "cpu_llamacpp")
    trust = Trust(keys=KEYS, manifests={"cpu": "http://a/cpu.json", "cpu_other": "http://a/other.json"})
    rows = offered.offered(trust, tmp_path / "packs", stick, card=False)
    assert [(row.name, row.carried) for row in rows] == [
        ("cpu", str(stick)),
        ("cpu_llamacpp", str(stick)),
        ("cpu_other", ""),
    ]
    strangers = offered.offered(Trust(keys=("ab" * 32,)), tmp_path / "packs", stick, card=False)
    assert strangers == [], "and what is not signed is not offered"


def test_the_folder_that_was_chosen_may_be_the_one_above(files: dict[str, bytes], tmp_path: Path) -> None:
    stick = carried(tmp_path / "stick" / "engine", files, "cpu")
    assert offered.chosen_in(stick, False) == offered.chosen_in(stick.parent, False) == stick / "cpu.json"
    with pytest.raises(InstallError, match="holds no engine"):
        offered.chosen_in(tmp_path, False)


def test_an_engine_that_vanished_or_broke_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packs = tmp_path / "packs"
    monkeypatch.setenv("SHOAL_PACKS", str(packs))
    assert place.engine_problem() == "" and "isn't installed" in programs.engine_fault(packs)
    monkeypatch.setattr(place, "installed", lambda: True)
    assert "isn't installed" in place.engine_problem() and not packs.exists()
    files = dict([wheel("shoal_small")])
    PackInstaller(packs, lambda _: None).install(signed(files), write_out(files, tmp_path / "stick"))
    assert place.engine_problem() == programs.engine_fault(packs) == ""
    (module,) = packs.rglob("shoal_small/__init__.py")
    module.write_text("raise OSError('half of it is gone')")
    assert "half of it is gone" in programs.engine_fault(packs) and place.engine_problem() == ""
    shutil.rmtree(packs / "cpu-1.0")
    assert "isn't installed" in programs.engine_fault(packs)
