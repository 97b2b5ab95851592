"""Removing everything, on a person's folder of its own: what was there before is there again, and nothing
else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.desktop.links import DesktopEntry
from app.desktop.login import LinuxAutostart
from app.install.updates import installed
from app.node.data import removal
from app.swarm.identity import keyrings
from tests.packs.wheels import Host
from tests.updates.releases import LIST, PUBLIC
from tests.updates.test_window import today

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at the folders of Linux")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with things that are not ours."""
    for name in (
        "SHOAL_HOME",
        "SHOAL_PACKS",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "SHOAL_UNPACKED",
    ):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "ada größer"
    monkeypatch.setenv("HOME", str(home))
    for name in (
        "thesis.odt",
        ".config/autostart/other.desktop",
        ".local/share/applications/other.desktop",
        ".cache/other/file",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    return home


def shoal(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *words],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def files(home: Path) -> dict[str, bytes]:
    """Every file, and every folder that bears our name."""
    found = {str(one.relative_to(home)): one.read_bytes() for one in home.rglob("*") if one.is_file()}
    ours = {str(one.relative_to(home)): b"" for one in home.rglob("*") if one.is_dir() and "hoal" in one.name}
    return found | ours


def furnish(home: Path, host: Host) -> None:
    """Everything that Shoal may put on a computer, besides what learning writes."""
    host.files.update(today())
    program = home / "Downloads" / "Shoal"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    feed = ["--feed", f"{host.url}/{LIST}", "--key", PUBLIC]
    done = shoal("update", *feed)
    assert done.returncode == 0, done.stderr
    LinuxAutostart().turn_on([str(program), "window", "--background"])
    DesktopEntry(register=True).update_program([str(program)])
    unpacked = home / ".cache" / "shoal" / "app" / "0.2.0-abc"
    unpacked.mkdir(parents=True)
    (unpacked / "shoal").write_bytes(b"x" * 5000)
    pack = home / ".local" / "share" / "shoal" / "packs" / "cpu-1.0"
    pack.mkdir(parents=True)
    (pack / "torch").write_bytes(b"t" * 5000)
    (pack.parent / "current.json").write_text('{"current": "cpu-1.0"}')
    (pack.parent.parent / "trials.json").write_text("{}")


def test_what_goes_is_told_with_sizes_and_then_goes(person: Path, host: Host) -> None:
    before = files(person)
    furnish(person, host)
    told = shoal("remove", "--list")
    assert told.returncode == 0
    for words in (
        "autostart/shoal.desktop",
        "applications/shoal-file.desktop",
        "icons/hicolor/scalable/apps/shoal-file.svg",
        ".cache/shoal/app",
        "packs (",
        "Files Shoal can make again: ",
        "access token for models in the system's keyring (entry Shoal)",
        f"to delete it: delete the folder {ROOT}",
    ):
        assert words in " ".join(told.stdout.split()), words  # a long folder breaks lines
    plan = removal.plan(person / ".local" / "share" / "shoal")
    assert plan.unpacked_bytes == 5000 and len(plan.links) == 2 and plan.form == "checkout"
    there = files(person)
    asked = shoal("remove", "--everything")
    assert asked.returncode == 1 and "--yes" in asked.stderr and files(person) == there
    done = shoal("remove", "--everything", "--yes")
    assert done.returncode == 0, done.stderr
    left = files(person)
    assert left.pop("Downloads/Shoal"), "the file itself is its owner's to delete"
    left.pop(".local/share/applications/mimeinfo.cache", None)  # the desktop's, of all programs
    assert left == before


@pytest.mark.long
def test_a_moved_data_folder_and_its_pointer_go_too(person: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    before = files(person)
    shoal("data")
    (person / ".local" / "share" / "shoal").mkdir(parents=True)
    (person / ".local" / "share" / "shoal" / "settings.json").write_text("{}")
    (person / ".local" / "share" / "shoal").rename(tmp_path / "disk" / "Shoal")
    assert shoal("data", "--use", str(tmp_path / "disk" / "Shoal")).returncode == 0
    LinuxAutostart().turn_on(["/opt/Shoal", "window"])
    done = shoal("remove", "--everything", "--yes")
    assert done.returncode == 0, done.stderr
    assert files(person) == before and not list((tmp_path / "disk").iterdir())
    again = shoal("remove", "--everything", "--yes")
    assert again.returncode == 0, again.stderr
    plan = json.loads(shoal("remove", "--list", "--json").stdout)
    assert plan["sizes"] == [] and plan["login"] == plan["pointer"] == ""


class Ring:
    """A keyring in memory."""

    def __init__(self, kept: dict[tuple[str, str], str], locked: bool = False) -> None:
        self.kept, self.locked = kept, locked

    def get_password(self, service: str, name: str) -> str | None:
        if self.locked:
            raise RuntimeError("locked")
        return self.kept.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[(service, name)]


def test_the_access_token_goes_and_other_programs_entries_stay() -> None:
    ours, others = ("Shoal", "Hugging Face access token"), ("Mail", "ada")
    ring = Ring({ours: "hf_x", others: "word"})
    assert keyrings.forget_token(find=lambda: ring) == "" and ring.kept == {others: "word"}  # type: ignore[arg-type,return-value]
    assert keyrings.forget_token(find=lambda: ring) == "" == keyrings.forget_token(find=lambda: None)  # type: ignore[arg-type,return-value]
    said = keyrings.forget_token(find=lambda: Ring({}, locked=True))  # type: ignore[arg-type,return-value]
    assert "may still be in the keyring" in said and said.endswith(".")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("deb", "sudo apt purge shoal"),
        ("nsis", "Installed apps, Shoal, Uninstall"),
        ("dmg", "move /Applications/Shoal.app to the Trash"),
        ("elf", "delete /Applications/Shoal.app"),
        ("checkout", "delete the folder /Applications/Shoal.app"),
    ],
)
def test_every_installation_says_how_the_program_goes(
    form: str, words: str, person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.ui.settings.storage import removal_text

    monkeypatch.setattr(installed, "form", lambda *_: form)
    monkeypatch.setattr(installed, "program", lambda *_: ["/Applications/Shoal.app/Contents/MacOS/shoal"])
    monkeypatch.setattr(installed, "SOURCE", Path("/Applications/Shoal.app"))
    plan = removal.plan(person / ".local" / "share" / "shoal")
    assert words in plan.removal
    said = removal_text(plan)
    assert (
        "sudo apt purge shoal"
        if form == "deb"
        else "Apps, Shoal"
        if form == "nsis"
        else "/Applications/Shoal.app"
    ) in said


@pytest.mark.long
def test_after_learning_nothing_is_left_either(person: Path, host: Host) -> None:
    """With a real node, its trainer and its sandbox."""
    before = files(person)
    done = shoal("run", "--solo", "--rounds", "2", "--json", OMP_WAIT_POLICY="PASSIVE")
    assert done.returncode == 0, done.stderr
    assert (person / ".local" / "share" / "shoal" / "models").is_dir()
    outside = {name for name in files(person) if not name.startswith(".local/share/shoal")} - set(before)
    assert outside == set(), "everything lies in the data folder"
    furnish(person, host)
    done = shoal("remove", "--everything", "--yes")
    assert done.returncode == 0, done.stderr
    left = files(person)
    left.pop("Downloads/Shoal")
    left.pop(".local/share/applications/mimeinfo.cache", None)
    assert left == before
