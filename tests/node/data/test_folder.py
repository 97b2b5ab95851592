"""The data folder: another one is chosen, and all of it is removed with all that points to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.common import home as place
from app.desktop.login import LinuxAutostart
from app.node.data import removal
from app.node.data.home import use_folder
from app.node.record.errors import NodeError

ROOT = Path(__file__).parents[3]
CONTENT = {
    "models/starter-1/history.sqlite": b"curve" * 400_000,
    "models/starter-1/checkpoints/000007/adapter_model.safetensors": b"weights" * 100,
    "hub/models--a--b/snapshots/c/config.json": b"{}",
    "cache/gguf/x.gguf": b"g" * 5000,
    "logs/node.log": b"said\n",
    "settings.json": b'{"idle_s": 60}\n',
    "identity": b"i" * 32,
    "lock": b" 1\n",
}


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The usual data folder of a person whose home is below tmp_path."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SHOAL_HOME", raising=False)
    folder = tmp_path / "data" / "shoal"
    fill(folder)
    return folder


def fill(folder: Path) -> None:
    for name, content in CONTENT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "identity").chmod(0o600)


def shoal_data(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app.cli", "data", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)


def test_another_folder_is_used_and_nothing_copied(old: Path, tmp_path: Path) -> None:
    said = json.loads(shoal_data("--json").stdout)
    assert said["home"] == str(old) and said["kinds"]["cache"] == 5000
    usb = old.rename(tmp_path / "usb")
    used = json.loads(shoal_data("--use", str(usb), "--json").stdout)
    assert used == {**said, "home": str(usb)} and place.home() == usb
    assert place.home(tmp_path / "other") == tmp_path / "other", "--home wins"
    usb.rename(tmp_path / "unplugged")
    with pytest.raises(place.HomeError, match="connect its disk"):
        place.home()
    (tmp_path / "unplugged").rename(usb)
    use_folder(old, usb)
    assert place.home() == old and not place.choice_file().exists() and (usb / "identity").exists()


def test_what_cannot_be_used_is_said_and_nothing_is_changed(old: Path, tmp_path: Path) -> None:
    for to, current in ((old / "settings.json", old), (tmp_path / "new", tmp_path / "chosen")):
        with pytest.raises(NodeError, match="can't be the data folder" if current == old else "--home"):
            use_folder(to, current)
    assert place.home() == old and not (tmp_path / "new").exists()
    refused = shoal_data("--use", str(old / "settings.json"))
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1


def test_the_record_of_an_earlier_version_is_read(old: Path, tmp_path: Path) -> None:
    to = tmp_path / "disk"
    to.mkdir()
    place.choice_file().parent.mkdir(parents=True)
    place.choice_file().write_text(json.dumps({"home": str(to), "leaving": str(old)}))
    assert place.home() == to and (old / "identity").exists()
    place.choice_file().write_text("{damaged")
    assert place.home() == old


class Ring:
    """A keyring in memory, as the system's answers."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def set_password(self, service: str, name: str, secret: str) -> None:
        self.kept[service, name] = secret

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


async def _keep(folder: Path, ring: Ring) -> None:
    from app.swarm.identity import storage

    await storage.keep_in_keyring(storage.Identity.new(), folder, find=lambda: ring)  # type: ignore[arg-type,return-value]


def test_everything_goes_also_what_points_here(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    from app.swarm.identity import storage

    ring = Ring()
    asyncio.run(_keep(old, ring))
    assert len(ring.kept) == 1
    real = storage.delete_keyring_entry
    monkeypatch.setattr(storage, "delete_keyring_entry", lambda folder: real(folder, find=lambda: ring))  # type: ignore[arg-type,return-value]
    login = LinuxAutostart(tmp_path / "autostart")
    login.turn_on([sys.executable, "window"])
    to = tmp_path / "new"
    use_folder(old.rename(to), old)
    (to / "thesis.odt").write_bytes(b"mine")
    plan = removal.plan(to, login)
    assert plan.key and plan.login == login.where and plan.pointer and plan.stays == ("thesis.odt",)
    assert plan.bytes >= sum(len(content) for name, content in CONTENT.items() if name != "lock")
    done = removal.remove(to, login)
    assert done.failed == () and done.stays == (str(to / "thesis.odt"),)
    assert ring.kept == {} and login.command() is None and not place.choice_file().exists()
    assert [entry.name for entry in to.iterdir()] == ["thesis.odt"]


@pytest.mark.parametrize("moved", [False, True])
def test_the_engine_of_an_installed_app_goes_with_the_usual_folder_alone(
    moved: bool, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOAL_PACKS", raising=False)
    engine = old / "packs"
    fill(tmp_path / "other")
    (engine / "cpu-1.0").mkdir(parents=True)
    (engine / "cpu-1.0" / "torch").write_bytes(b"t" * 5000)
    (engine / "current.json").write_text('{"current": "cpu-1.0"}')
    home = old
    if moved:
        home = tmp_path / "new"
        fill(home)
        use_folder(home, old)
    login = LinuxAutostart(tmp_path / "autostart")
    assert removal.plan(tmp_path / "other", login).engine == ""
    removal.remove(tmp_path / "other", login)
    assert engine.is_dir()
    plan = removal.plan(home, login)
    assert plan.engine == str(engine) and plan.engine_bytes > 5000 and plan.stays == ()
    done = removal.remove(home, login)
    assert done.failed == () == done.stays and not home.exists() and not engine.exists()


def test_the_command_asks_and_names_what_goes_and_what_stays(old: Path) -> None:
    def run(*options: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "app.cli", "remove", *options],
            input=answer,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=120,
            env={
                **os.environ,
                "HOME": str(old.parent),
                "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            },
        )

    assert run().returncode == 2
    asked = run("--everything", answer="no\n")
    assert asked.returncode == 1 and (old / "identity").exists()
    for part in (str(old), "Downloaded models", "2.0 MB", "the program itself", "other folders"):
        assert part in asked.stderr
    done = run("--everything", "--yes")
    assert done.returncode == 0 and not old.exists(), done.stderr
