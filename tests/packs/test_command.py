"""`./shoal pack` as people and the window use it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import inside
from tests.packs.wheels import KEYS, Host, encoded, plain, write_out


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEYS[0] + "\n")
    return path


def pack(packs: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return inside.shoal("pack", *arguments, SHOAL_PACKS=str(packs))


def test_installing_listing_and_removing(host: Host, key: Path, tmp_path: Path) -> None:
    packs = tmp_path / "packs"
    done = pack(packs, "list")
    assert done.returncode == 0 and "No engine is installed" in done.stdout and not packs.exists()
    done = pack(packs, "install", "--manifest", host.offer(plain(host.files)), "--key", key)
    assert done.returncode == 0, done.stderr
    assert "The engine for tests is in use." in done.stderr and not done.stdout
    row = json.loads(pack(packs, "list", "--json").stdout)["packs"][0]
    assert (row["pack"], row["use"], row["whole"]) == ("cpu-1.0", "current", True)
    assert "cpu-1.0" in pack(packs).stdout

    done = pack(packs, "remove")
    assert done.returncode == 1 and "--yes" in done.stderr
    done = pack(packs, "remove", "--yes", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["freed"] > 300_000
    assert json.loads(pack(packs, "list", "--json").stdout)["packs"] == []


@pytest.mark.long
def test_an_offline_folder_holds_everything(host: Host, key: Path, tmp_path: Path) -> None:
    host.offer(plain(host.files))
    stick = write_out(host.files, tmp_path / "stick")
    done = pack(tmp_path / "packs", "install", "--offline", stick, "--key", key, "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and events[-1]["event"] == "done" and events[-1]["pack"] == "cpu-1.0"
    assert {"event", "stage", "percent", "have", "total", "sentence"} <= set(events[0])
    assert not host.asked and Path(events[-1]["python"]).exists()
    done = pack(tmp_path / "packs", "repair", "--offline", stick, "--key", key, "--json")
    assert json.loads(done.stdout.splitlines()[-1])["pack"] == "cpu-1.0-r1"
    rows = json.loads(pack(tmp_path / "packs", "list", "--json").stdout)["packs"]
    assert [row["pack"] for row in rows] == ["cpu-1.0-r1"] and not host.asked


@pytest.mark.long
def test_what_goes_wrong_is_one_sentence(host: Host, key: Path, tmp_path: Path) -> None:
    packs = tmp_path / "packs"
    address = host.offer(plain(host.files))
    strange = tmp_path / "strange"
    strange.write_text("ab" * 32)
    for arguments, said in (
        (("install", "--manifest", address, "--key", strange), "signed by the makers"),
        (("install", "--manifest", f"{host.url}/cuda.json", "--key", key), "doesn't have cuda.json"),
        (("install", "--manifest", address, "--key", tmp_path / "none"), "no public key"),
        (("repair", "--key", key), "no engine to repair"),
        (("remove", "../..", "--yes"), "There is no engine"),
    ):
        done = pack(packs, *arguments)
        assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    done = pack(packs, "install", "--manifest", address, "--key", strange, "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["event"] == "failed"
    assert pack(packs, "repair", "cpu").returncode == 2 and pack(packs, "fly").returncode == 2


def test_a_manifest_changed_after_signing_is_refused(host: Host, key: Path, tmp_path: Path) -> None:
    address = host.offer(plain(host.files))
    host.files["cpu.json"] = encoded(plain(host.files, title="Another"))[0]
    done = pack(tmp_path / "packs", "install", "--manifest", address, "--key", key)
    assert done.returncode == 1 and "signed" in done.stderr
    assert not any(name.endswith(".whl") for name, _ in host.asked)
