from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from app.install.launcher import system
from app.install.launcher.pythons import SetupError
from app.install.launcher.system import SystemLibrary

LIBRARY = SystemLibrary("libfish.so.1", "the aquarium", {"apt-get": "libfish1", "dnf": "fish-libs"})


class Machine:
    """A system with or without the library, that remembers what was run on it."""

    def __init__(self, present: bool = False, fails: int = 0) -> None:
        self.present = present
        self.fails = fails
        self.commands: list[str] = []

    def run(self, command: Sequence[str]) -> int:
        self.commands.append(" ".join(command))
        if "install" in command:
            if self.fails:
                self.fails -= 1
                return 100
            self.present = True
        return 0

    def loads(self, file: str) -> bool:
        assert file == "libfish.so.1"
        return self.present


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Machine, str, list[str] | None], None]:
    def install(machine: Machine, manager: str, rights: list[str] | None) -> None:
        monkeypatch.setattr(system, "_run", machine.run)
        monkeypatch.setattr(system, "manager", lambda: manager)
        monkeypatch.setattr(system, "privilege", lambda: rights)
        monkeypatch.setattr(system, "by_root", lambda command: f"`sudo {command}`")

    return install


Use = Callable[[Machine, str, "list[str] | None"], None]


def test_nothing_is_run_when_nothing_is_missing(use: Use) -> None:
    machine = Machine(present=True)
    use(machine, "apt-get", [])
    system.provide_libraries([LIBRARY], machine.loads, "linux")
    assert machine.commands == []


def test_root_installs_silently(use: Use, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine()
    use(machine, "apt-get", [])
    system.provide_libraries([LIBRARY], machine.loads, "linux")
    assert machine.commands == [
        "env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends libfish1"
    ]
    assert "Installing libfish1" in capsys.readouterr().err


def test_package_lists_are_fetched_once_when_apt_does_not_know_the_package(use: Use) -> None:
    machine = Machine(fails=1)
    use(machine, "apt-get", [])
    system.provide_libraries([LIBRARY], machine.loads, "linux")
    assert [command.split("apt-get ")[1].split()[0] for command in machine.commands] == [
        "install",
        "update",
        "install",
    ]


def test_without_rights_the_exact_command_is_printed(use: Use) -> None:
    machine = Machine()
    use(machine, "apt-get", None)
    expected = r"lacks libfish\.so\.1 \(needed by the aquarium\).*`sudo apt-get install .*libfish1`"
    with pytest.raises(SetupError, match=expected):
        system.provide_libraries([LIBRARY], machine.loads, "linux")
    assert machine.commands == []


def test_a_failing_installation_and_an_unknown_system_are_said(use: Use) -> None:
    machine = Machine(fails=9)
    use(machine, "dnf", [])
    with pytest.raises(SetupError, match="run `sudo dnf install --assumeyes fish-libs`"):
        system.provide_libraries([LIBRARY], machine.loads, "linux")
    use(machine, "", [])
    with pytest.raises(SetupError, match="does not know its package manager"):
        system.provide_libraries([LIBRARY], machine.loads, "linux")


@pytest.mark.skipif(system.sys.platform != "linux", reason="names of Linux libraries")
def test_the_loader_is_asked() -> None:
    assert system.loads("libc.so.6")
    assert not system.loads("libfish.so.1")
    assert all(system.loads(library.file) for library in system.LIBRARIES)


def test_what_the_window_lacks_is_installed_where_that_needs_no_password_else_named(use: Use) -> None:
    machine, there = Machine(), {"libxcb-cursor.so.0": False}

    def present(file: str) -> bool:
        return there.get(file, True)

    use(machine, "apt-get", None)
    lacking = system.provide_window({"DISPLAY": ":0"}, present, "linux")
    assert [one.file for one in lacking] == ["libxcb-cursor.so.0"] and machine.commands == []
    assert "`sudo apt-get install" in system.without_window(lacking) and "libxcb-cursor0`" in system.installing(
        lacking
    )
    use(machine, "apt-get", [])
    assert system.provide_window({"DISPLAY": ":0"}, present, "linux") == lacking, (
        "this apt-get installs nothing"
    )
    assert "libxcb-cursor0" in machine.commands[0]
    use(machine, "", None)
    assert system.installing(lacking) == "libxcb-cursor.so.0"
    there.clear()
    assert system.without_window(system.provide_window({"DISPLAY": ":0"}, present, "linux")) == ""
    there["libXss.so.1"] = False
    use(machine := Machine(), "apt-get", [])
    assert system.provide_window({"DISPLAY": ":0"}, present, "linux") == (), "the window needs it not"
    assert "libxss1" in machine.commands[0]


def test_each_session_needs_its_own_libraries() -> None:
    def needs(**variables: str) -> str:
        return " ".join(one.file for one in system.lacking_for_window(variables, lambda _: False, "linux"))

    assert "xcb" in needs(DISPLAY=":0") and "wayland" in needs(WAYLAND_DISPLAY="wayland-0")
    assert "libGL" in needs(QT_QPA_PLATFORM="offscreen") and "xcb" not in needs(QT_QPA_PLATFORM="offscreen")
    assert system.lacking_for_window({}, lambda _: False, "darwin") == ()
