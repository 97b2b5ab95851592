"""A pack's files: what is here is kept, the rest comes from the host or a mirror. Hosts that cut, corrupt and
refuse: tests/models/test_download.py."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from app.common import fetch
from app.common.connection import Fault
from app.common.fetch import partial_path
from app.common.rate import RetryLimit
from app.install import InstallError
from app.install.packs import offered
from app.install.packs.manifest import SignedManifest
from tests.packs.wheels import KEYS, Host, plain, signed, write_out

QUICK = RetryLimit(attempts=3, first_s=0.01, longest_s=0.05, silent_s=10.0)
LARGE = "shoal_large-1.0-py3-none-any.whl"
SMALL = "shoal_small-1.0-py3-none-any.whl"


def bring(
    host: Host, to: Path, pack: SignedManifest | None = None, **options: Any
) -> tuple[list[int], list[str]]:
    """How the bytes grew, and why it paused."""
    grew: list[int] = []
    paused: list[str] = []
    content = {name: body for name, body in host.files.items() if name.endswith(".whl")}
    pack = pack or signed(content, f"{host.url}/cpu.json")
    orders = [
        fetch.PieceOrder(wheel, wheel.addresses(pack.base, pack.manifest.mirrors))
        for wheel in pack.manifest.wheels
        if wheel.name != "uv"
    ]
    done = 0

    def came(piece: fetch.Piece) -> None:
        nonlocal done
        done += piece.size

    fetch.download(
        orders,
        to,
        lambda _, have: grew.append(done + have),
        lambda why, _: paused.append(why),
        options.get("patience", QUICK),
        came=came,
    )
    return grew, paused


def refused(host: Host, to: Path, pack: SignedManifest | None = None, **options: Any) -> str:
    with pytest.raises(Fault) as caught:
        bring(host, to, pack, **options)
    said = str(caught.value)
    assert said.endswith(".") and "\n" not in said
    return said


def test_everything_arrives_and_is_asked_for_once(host: Host, files: dict[str, bytes], tmp_path: Path) -> None:
    grew, paused = bring(host, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    assert grew == sorted(grew) and grew[-1] == sum(map(len, files.values())) and not paused
    asked = len(host.asked)
    grew, _ = bring(host, tmp_path)
    assert len(host.asked) == asked and grew[-1] == sum(map(len, files.values()))


def test_what_a_killed_process_left_is_continued(host: Host, files: dict[str, bytes], tmp_path: Path) -> None:
    wheels = {wheel.file: wheel for wheel in signed(files).manifest.wheels}
    partial_path(tmp_path, wheels[LARGE]).write_bytes(files[LARGE][:123_456])
    partial_path(tmp_path, wheels[SMALL]).write_bytes(files[SMALL])
    bring(host, tmp_path)
    assert host.asked == [(LARGE, "bytes=123456-")]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_damage_on_this_disk_is_noticed(host: Host, files: dict[str, bytes], tmp_path: Path) -> None:
    bring(host, tmp_path)
    (tmp_path / SMALL).write_bytes(files[SMALL][:-1] + b"?")
    bring(host, tmp_path)
    assert (tmp_path / SMALL).read_bytes() == files[SMALL]


def test_a_missing_file_is_not_asked_for_again(host: Host, tmp_path: Path) -> None:
    pack = signed(dict(host.files), f"{host.url}/cpu.json")
    del host.files[SMALL]
    assert f"doesn't have {SMALL}" in refused(host, tmp_path, pack)
    assert [name for name, _ in host.asked] == [SMALL]


def test_a_mirror_steps_in(host: Host, files: dict[str, bytes], tmp_path: Path) -> None:
    dead = socket.socket()
    dead.bind(("127.0.0.1", 0))  # nobody listens
    base = f"http://127.0.0.1:{dead.getsockname()[1]}/cpu.json"
    pack = signed(files, base, mirrors=[f"{host.url}/"])
    _, paused = bring(host, tmp_path, pack)
    assert "can't be reached" in paused[0] and (tmp_path / LARGE).read_bytes() == files[LARGE]
    assert "can't be reached: check the network" in refused(host, tmp_path / "two", signed(files, base))
    nowhere = signed(files, "https://shoal.invalid/cpu.json")
    assert "shoal.invalid can't be reached" in refused(host, tmp_path / "three", nowhere)
    dead.close()


def test_a_manifest_comes_from_an_address_or_a_file(
    host: Host, files: dict[str, bytes], tmp_path: Path
) -> None:
    address = host.offer(plain(files))
    host.status = [(502, {})]
    found = offered.load_manifest(address, KEYS, QUICK)
    assert found.base == address
    folder = write_out(host.files, tmp_path / "a folder, größer")
    assert offered.load_manifest(str(folder / "cpu.json"), KEYS) == SignedManifest(
        manifest=found.manifest, content=found.content, base=str(folder)
    )
    with pytest.raises(InstallError, match="can't be read"):
        offered.load_manifest(str(folder / "other.json"), KEYS)
    with pytest.raises(InstallError, match=r"doesn't have cuda\.json"):
        offered.load_manifest(f"{host.url}/cuda.json", KEYS, QUICK)
    host.files["cpu.json"] += b" " * 2**21
    with pytest.raises(InstallError, match="sends more"):
        offered.load_manifest(address, KEYS, QUICK)
