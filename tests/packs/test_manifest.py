"""What a manifest may say, and who may say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import nacl.signing
import pytest

from app.install import InstallError
from app.install.packs import manifest, place
from app.install.packs.manifest import PackManifest
from tests.packs.wheels import KEY, KEYS, encoded, plain, signed, with_uv


def refused(content: object, keys: tuple[str, ...] = KEYS, key: nacl.signing.SigningKey = KEY) -> str:
    raw, signature = encoded(content, key)
    with pytest.raises(InstallError) as caught:
        manifest.read_manifest(raw, signature, keys)
    said = str(caught.value)
    assert said.endswith(".") and "\n" not in said
    return said


def test_a_signed_manifest_is_read(files: dict[str, bytes]) -> None:
    raw, signature = encoded(plain(files))
    found = manifest.read_manifest(raw, signature, ("00" * 32, *KEYS), "base")
    assert found.manifest.folder == "cpu-1.0" and found.content == raw and found.base == "base"
    assert [wheel.size for wheel in found.manifest.wheels] == [
        len(content) for content in with_uv(files).values()
    ]


def test_only_the_makers_are_believed(files: dict[str, bytes]) -> None:
    raw, signature = encoded(plain(files))
    stranger = nacl.signing.SigningKey(b"s" * 32)
    assert "isn't signed" in refused(plain(files), key=stranger)
    for wrong in (b"", b"zz", b"\xff" * 40, signature[:-3], signature + b"00", b"00" * 64):
        with pytest.raises(InstallError, match="isn't signed"):
            manifest.read_manifest(raw, wrong, KEYS)
    with pytest.raises(InstallError, match="isn't signed"):
        manifest.read_manifest(raw + b" ", signature, KEYS)
    with pytest.raises(InstallError, match="isn't signed"):
        manifest.read_manifest(raw, signature, ())


HOSTILE: list[dict[str, Any]] = [
    {"version": "../1.0"},
    {"version": "1..0"},
    {"version": "1.0/x"},
    {"version": "1.0\n"},
    {"name": "../cpu"},
    {"name": "cpu-1"},
    {"name": ""},
    {"kind": "shoal-feed-1"},
    {"surprise": 1},
    {"disk": 2**60},
    {"disk": 1},
    {"pythons": []},
    {"pythons": ["3.11; rm"]},
    {"imports": []},
    {"imports": ["os; import evil"]},
    {"imports": ["-c"]},
    {"wheels": []},
    {"mirrors": ["ftp://example.org/"]},
    {"mirrors": ["file:///etc"]},
    {"mirrors": ["https://name:secret@example.org/"]},
    {"mirrors": ["elsewhere"]},
    {"system": "plan9"},
]
HOSTILE_WHEELS: list[dict[str, Any]] = [
    {"file": "../shoal_small-1.0-py3-none-any.whl"},
    {"file": "..\\shoal_small-1.0-py3-none-any.whl"},
    {"file": "/tmp/shoal_small-1.0-py3-none-any.whl"},
    {"file": "shoal_small-1.0.tar.gz"},
    {"file": "other-1.0-py3-none-any.whl"},
    {"file": "shoal_small-2.0-py3-none-any.whl"},
    {"url": "../shoal_small-1.0-py3-none-any.whl"},
    {"url": "file:///etc/passwd"},
    {"url": "https:///nowhere"},
    {"url": "https://example.org/a b"},
    {"size": 0},
    {"size": -1},
    {"size": 2**50},
    {"size": 1.5},
    {"sha256": "0" * 63},
    {"sha256": "A" * 64},
    {"name": "shoal_small --index-url=x"},
    {"version": "1.0 --hash"},
    {"pythons": ["2.7"]},
    {"extra": True},
]


@pytest.mark.parametrize("changed", HOSTILE)
def test_nothing_hostile_passes_even_when_signed(files: dict[str, bytes], changed: dict[str, Any]) -> None:
    assert "can't be understood" in refused(plain(files, **changed))


def test_a_pack_without_uv_is_refused(files: dict[str, bytes]) -> None:
    rows = [row for row in plain(files)["wheels"] if row["name"] != "uv"]
    assert "can't be understood" in refused(plain(files, wheels=rows))


@pytest.mark.parametrize("changed", HOSTILE_WHEELS)
def test_no_hostile_wheel_passes(files: dict[str, bytes], changed: dict[str, Any]) -> None:
    content = plain(files)
    content["wheels"][0].update(changed)
    assert "can't be understood" in refused(content)


def test_no_package_comes_twice_but_one_for_each_python(files: dict[str, bytes]) -> None:
    content = plain(files)
    content["wheels"].append(content["wheels"][0])
    assert "twice" in refused(content)
    first, again = content["wheels"][0], dict(content["wheels"][0])
    first["pythons"], again["pythons"] = ["3.11"], ["3.12"]
    content.update(pythons=["3.11", "3.12"], wheels=[first, again, content["wheels"][2]])
    found = msgspec.convert(content, PackManifest, strict=False)
    assert len(found.wheels_for("3.11")) == 2 == len(found.wheels_for("3.12"))


def test_a_manifest_has_an_end() -> None:
    with pytest.raises(InstallError, match="bytes"):
        manifest.read_manifest(b" " * (manifest.MANIFEST + 1), b"", KEYS)
    assert "can't be understood" in refused({"kind": 1})


def test_a_pack_for_another_computer_is_refused(
    files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = signed(files).manifest
    manifest.check_here(here)
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[here.machine]
    with pytest.raises(InstallError, match="take the pack for this computer"):
        manifest.check_here(signed(files, machine=other).manifest)
    monkeypatch.setattr(manifest, "system_version", lambda: "2.31")
    manifest.check_here(signed(files, least="2.28").manifest)
    with pytest.raises(InstallError, match=r"2\.35 or newer, and this system has 2\.31"):
        manifest.check_here(signed(files, least="2.35").manifest)


def test_whom_to_believe_comes_with_the_build(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="comes without engine packs"):
        manifest.trust(tmp_path / "release.json")
    (tmp_path / "release.json").write_text('{"keys": ["zz"]}')
    with pytest.raises(InstallError, match="can't be read"):
        manifest.trust(tmp_path / "release.json")
    (tmp_path / "release.json").write_bytes(msgspec.json.encode({"keys": KEYS, "manifests": {"cpu": "x"}}))
    assert manifest.trust(tmp_path / "release.json").keys == KEYS


@pytest.mark.parametrize(
    "content", ['{"current": "../../bin"}', '{"current": "/usr"}', "{", '{"current": 1}', '{"current": ""}']
)
def test_what_is_in_use_never_lies_outside(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_PACKS", str(tmp_path))
    (tmp_path / "current.json").write_text(content)
    assert place.folder() == tmp_path and place.current(tmp_path).current == "" and place.python() is None


def test_packs_belong_to_the_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SHOAL_PACKS", raising=False)
    before = place.folder()
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path))
    assert place.folder() == before and before.name == "packs"
