"""Starting at login: there and back on this system, and what is written for the other two."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.desktop.choose import NoAutostart, autostart
from app.desktop.login import (
    APPROVED_KEY,
    LABEL,
    RUN_KEY,
    AutostartError,
    LinuxAutostart,
    MacAutostart,
    WindowsAutostart,
    agent,
    entry,
    exec_line,
    read_agent,
    read_entry,
    read_exec,
    split,
)

COMMAND = ["/opt/My Shoal/shoal", "--background", "--home", "/home/zoë/50% $x `y` \"z\" \\ 'q'"]
words = st.lists(st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=20), max_size=5)


def test_linux_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    linux = autostart("linux")
    assert isinstance(linux, LinuxAutostart)
    assert linux.command() is None
    linux.turn_off()
    linux.turn_on(["/usr/bin/shoal"])
    linux.turn_on(COMMAND)
    assert linux.command() == COMMAND
    assert linux.where == str(tmp_path / "config" / "autostart" / "shoal.desktop")
    assert os.listdir(tmp_path / "config" / "autostart") == ["shoal.desktop"]
    linux.turn_off()
    assert linux.command() is None and os.listdir(tmp_path / "config" / "autostart") == []


@pytest.mark.parametrize("off", ["Hidden=true", "X-GNOME-Autostart-enabled=false"])
def test_an_entry_that_the_desktop_switched_off_is_off(off: str) -> None:
    text = entry(COMMAND)
    assert read_entry(text) == COMMAND
    assert read_entry(text.replace("X-GNOME-Autostart-enabled=true", off)) is None
    assert read_entry(text + f"[Desktop Action other]\n{off}\nExec=/bin/false\n") == COMMAND
    assert read_entry("") is None


@given(words)
def test_any_command_survives_the_desktop_entry(arguments: list[str]) -> None:
    command = ["/opt/My Shoal/shoal", *arguments]
    if any(character.isspace() and character != " " for word in arguments for character in word):
        return  # a line of its own in some eyes; no path of ours has one
    assert read_exec(exec_line(command)) == command
    assert read_entry(entry(command)) == command


def test_a_command_that_an_entry_cannot_hold_is_refused() -> None:
    for wrong in ([], ["shoal"], ["/opt/a=b"], ["/opt/shoal", "two\nlines"]):
        with pytest.raises(AutostartError, match=r"\.$"):
            exec_line(wrong)


@pytest.mark.skipif(
    shutil.which("desktop-file-validate") is None, reason="desktop-file-validate is not installed"
)
def test_the_entry_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "shoal.desktop"
    file.write_text(entry(COMMAND), encoding="utf-8")
    checked = subprocess.run(["desktop-file-validate", str(file)], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "")


class Registry:
    """The values of HKEY_CURRENT_USER, in memory."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], str | bytes] = {}

    def get(self, key: str, name: str) -> str | bytes | None:
        return self.values.get((key, name))

    def set(self, key: str, name: str, value: str | bytes) -> None:
        self.values[key, name] = value

    def delete(self, key: str, name: str) -> None:
        self.values.pop((key, name), None)


def test_windows_there_and_back() -> None:
    registry = Registry()
    windows = WindowsAutostart(registry)
    command = [r"C:\My Apps\shoal.exe", "--background"]
    assert windows.command() is None
    windows.turn_on(command)
    assert registry.values == {(RUN_KEY, "Shoal"): r'"C:\My Apps\shoal.exe" --background'}
    assert windows.command() == command
    registry.values[APPROVED_KEY, "Shoal"] = bytes([3]) + bytes(11)  # switched off in Task Manager
    assert windows.command() is None
    windows.turn_on(command)
    assert windows.command() == command
    windows.turn_off()
    assert registry.values == {}


def test_windows_refuses_a_command_that_it_would_not_carry_out() -> None:
    with pytest.raises(AutostartError, match="260"):
        WindowsAutostart(Registry()).turn_on(["C:\\" + "a" * 260])


@given(words)
def test_any_command_survives_the_registry(arguments: list[str]) -> None:
    if any(character.isspace() and character != " " for word in arguments for character in word):
        return
    command = [r"C:\My Apps\shoal.exe", *arguments]
    assert split(subprocess.list2cmdline(command)) == command


def test_mac_there_and_back(tmp_path: Path) -> None:
    mac = MacAutostart(tmp_path / "LaunchAgents")
    assert mac.command() is None
    mac.turn_off()
    mac.turn_on(COMMAND)
    assert mac.command() == COMMAND
    assert Path(mac.where).name == f"{LABEL}.plist"
    mac.turn_off()
    assert mac.command() is None and os.listdir(tmp_path / "LaunchAgents") == []


def test_the_launch_agent_starts_once_at_login() -> None:
    keys = plistlib.loads(agent(COMMAND))
    assert keys["ProgramArguments"] == COMMAND and keys["RunAtLoad"] is True and keys["KeepAlive"] is False
    assert read_agent(plistlib.dumps({**keys, "Disabled": True})) is None
    for nonsense in (b"", b"no list", plistlib.dumps([1]), plistlib.dumps({"RunAtLoad": True})):
        assert read_agent(nonsense) is None
    with pytest.raises(AutostartError, match="full path"):
        agent(["shoal"])


def test_an_unknown_system_says_so() -> None:
    none = autostart("freebsd")
    assert isinstance(none, NoAutostart) and none.command() is None
    none.turn_off()
    with pytest.raises(AutostartError, match="doesn't know how"):
        none.turn_on(COMMAND)
