"""What starts Shoal at login, and what opens its links, when it has another place than it had."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.common.process.surroundings import environment_outside_app
from app.desktop.links import FILE, ICON, KEY, DesktopEntry, NoLinks, WindowsLinks, entry, links
from app.desktop.login import AutostartError, LinuxAutostart, read_entry
from app.install.updates import installed
from tests.desktop.test_autostart import Registry
from tests.hosting import wait_until

POSIX = pytest.mark.skipif(os.name == "nt", reason="paths as POSIX has them")


def test_what_runs_is_told_by_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed.form() == "checkout" and installed.program({})[-1].endswith("shoal")
    assert installed.terminal_command({}) == "./shoal"
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    program = tmp_path / "usr" / "lib" / "shoal" / "shoal"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setattr(sys, "executable", str(program))
    assert installed.form("win32") == "nsis" and installed.form("darwin") == "dmg"
    assert installed.form("linux") == "folder" and installed.removal({}).endswith(str(program.parent))
    if sys.platform == "linux":
        assert installed.terminal_command({}) == str(program)
    link = tmp_path / "bin"
    link.symlink_to(program)
    monkeypatch.setattr(installed, "DEBIANS", link)
    assert installed.form("linux") == "deb" and installed.program({}) == [str(link)]
    if sys.platform == "linux":
        assert installed.terminal_command({}) == "bin", "on everybody's path"
    program.with_name(installed.ONE_FILE).touch()
    assert installed.form("linux") == "elf"
    if sys.platform == "linux":
        one = tmp_path / "Shoal of mine"
        assert installed.program({"SHOAL_ONEFILE": str(one)}) == [str(program)], "a variable that names nothing"
        one.touch()
        assert installed.program({"SHOAL_ONEFILE": str(one)}) == [str(one)]
        assert installed.terminal_command({"SHOAL_ONEFILE": str(one)}) == f"'{one}'"


@pytest.mark.parametrize(
    ("folder", "typed"),
    [("C:/Shoal", "C:/Shoal/shoal-cli.exe"), ("C:/Users/Jo Do/Shoal", '"C:/Users/Jo Do/Shoal/shoal-cli.exe"')],
)
def test_on_windows_the_program_for_consoles_is_typed(
    folder: str, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "form", lambda: "nsis")
    monkeypatch.setattr(sys, "executable", f"{folder}/shoal.exe")
    assert installed.terminal_command({}).replace(os.sep, "/") == typed


def test_programs_of_the_system_get_the_systems_environment() -> None:
    bundle = {
        "LD_LIBRARY_PATH": "/b",
        "QT_PLUGIN_PATH": "/b",
        "_PYI_ARCHIVE_FILE": "/b/shoal",
        "PATH": "/usr/bin",
    }
    assert environment_outside_app(bundle) == {"PATH": "/usr/bin"}
    assert environment_outside_app({**bundle, "LD_LIBRARY_PATH_ORIG": "/own"})["LD_LIBRARY_PATH"] == "/own"


@POSIX
def test_starting_at_login_follows_a_program_that_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.ui.shell.login import AutostartSwitch

    system = LinuxAutostart(tmp_path / "autostart")
    login = AutostartSwitch(tmp_path / "home", system)
    new, old = tmp_path / "new place" / "Shoal", tmp_path / "old" / "Shoal"
    for path in (new, old):
        path.parent.mkdir()
        path.touch()
    monkeypatch.setattr(installed, "program", lambda: [str(new)])
    assert not login.update_program() and system.command() is None, "nothing is turned on by itself"
    system.turn_on([str(old), "window", "--background", "--home", "/disk/größer"])
    assert not login.update_program(), "it is there, so it stays"
    old.unlink()
    assert login.update_program()
    assert system.command() == [str(new), "window", "--background", "--home", "/disk/größer"]
    assert not login.update_program()
    system.turn_on([str(old)])
    assert login.update_program()
    assert (system.command() or [])[:3] == [str(new), "window", "--background"]
    system.turn_off()
    assert not login.update_program() and system.command() is None
    (tmp_path / "autostart" / "shoal.desktop").mkdir()
    assert not login.update_program(), "a system that refuses is not worth a word at the start"


@POSIX
def test_a_single_file_opens_links_until_it_is_removed(tmp_path: Path) -> None:
    one = tmp_path / "Shoal 100%"
    one.touch()
    made = DesktopEntry(register=True, data=tmp_path / "data")
    assert made.update_program([str(one)]) and not made.update_program([str(one)])
    assert made.where == (str(tmp_path / "data" / "applications" / FILE), str(tmp_path / "data" / ICON))
    moved = tmp_path / "elsewhere"
    one.rename(moved)
    assert made.update_program([str(moved)])
    text = (tmp_path / "data" / "applications" / FILE).read_text()
    assert read_entry(text) == [str(moved), "window", "--"] and "x-scheme-handler/shoal" in text
    made.forget()
    assert made.where == ()
    assert sorted(path.name for path in (tmp_path / "data" / "applications").iterdir()) in (
        [],
        ["mimeinfo.cache"],
    )


@POSIX
def test_others_register_nothing_and_follow_what_is_there(tmp_path: Path) -> None:
    made = DesktopEntry(register=False, data=tmp_path / "data")
    assert not made.update_program(["/usr/bin/shoal"]) and not (tmp_path / "data").exists()
    file = tmp_path / "data" / "applications" / FILE
    file.parent.mkdir(parents=True)
    file.write_text(entry(["/gone/Shoal"]))
    assert made.update_program(["/bin/sh"]) and read_entry(file.read_text()) == ["/bin/sh", "window", "--"]
    for odd in (["relative"], ["/two\nlines"], ["/a=b"]):
        with pytest.raises(AutostartError):
            entry(odd)
        assert not made.update_program(odd)
    (tmp_path / "file").touch()
    assert not DesktopEntry(register=True, data=tmp_path / "file").update_program(["/bin/sh"])


@pytest.mark.skipif(not shutil.which("desktop-file-validate"), reason="desktop-file-validate is not installed")
def test_the_entry_is_valid(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(entry(["/opt/my shoal/50%/Sh`oal"]))
    checked = subprocess.run(["desktop-file-validate", str(file)], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.skipif(
    not (shutil.which("gio") and shutil.which("update-desktop-database")),
    reason="gio and update-desktop-database are needed (packages libglib2.0-bin, desktop-file-utils)",
)
def test_a_desktop_hands_links_to_the_file(tmp_path: Path) -> None:
    """As GNOME and Xfce do it: one word, behind the --, however odd it is."""
    said = tmp_path / "said"
    one = tmp_path / "my Shoal"
    one.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{said}.new" && mv "{said}.new" "{said}"\n')
    one.chmod(0o755)
    DesktopEntry(register=True, data=tmp_path / "data").update_program([str(one)])
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    for link in ("shoal://join/ws/10.0.0.1:8777?swarm=shoal", "shoal://--help", "shoal://x%20--join%20y;id"):
        said.unlink(missing_ok=True)
        subprocess.run(["gio", "open", link], env=environment, check=True, timeout=60)
        wait_until(said.exists)
        assert said.read_text().splitlines()[:2] == ["window", "--"]
        assert len(said.read_text().splitlines()) == 3 and said.read_text().splitlines()[2].startswith(
            "shoal://"
        )


def test_windows_follows_and_the_others_leave_it_to_the_system(tmp_path: Path) -> None:
    registry = Registry()
    made = WindowsLinks(registry)
    assert not made.update_program(["C:\\Shoal\\shoal.exe"]), "the installer registers, not the app"
    registry.set(KEY, "", '"C:\\gone\\shoal.exe" window -- "%1"')
    program = tmp_path / "my apps" / "shoal.exe"
    program.parent.mkdir()
    program.touch()
    assert made.update_program([str(program)])
    assert registry.get(KEY, "") == f'"{program}" window -- "%1"'
    assert not made.update_program(["C:\\other.exe"]), "it is there, so it stays"
    assert isinstance(links("darwin"), NoLinks) and not links("darwin").update_program(["/x"])
