"""Starts Shoal at login, off until the user turns it on: a desktop entry on Linux, a launch agent on macOS, a
value of the registry on Windows, behind one interface."""

from __future__ import annotations

import os
import plistlib
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from app.common import files

NAME = "Shoal"
COMMENT = "Lets a small reasoning model learn while nobody uses this computer"


class AutostartError(Exception):
    """The system refused the change. The message is one sentence for the user."""


class Autostart(Protocol):
    """Controls whether Shoal starts at login on one operating system. All methods raise AutostartError if the
    system refuses."""

    where: str
    """The file or registry key of the entry, which "remove everything" lists."""

    def command(self) -> list[str] | None:
        """Returns the command that starts at login; None without an entry, or if the user disabled it in the
        system's settings."""

    def turn_on(self, command: Sequence[str]) -> None:
        """Starts `command` (full path first) at every login from the next one on."""

    def turn_off(self) -> None:
        """Removes the entry, if there is one."""


class InFile:
    """Autostart through a file that the system reads at login. `read` parses the command from the file's
    content, `make` returns the content for a command."""

    def __init__(
        self, file: Path, read: Callable[[bytes], list[str] | None], make: Callable[[Sequence[str]], bytes]
    ) -> None:
        self._file, self._read, self._make = file, read, make
        self.where = str(file)

    def command(self) -> list[str] | None:
        try:
            return self._read(self._file.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise AutostartError(f"{self._file} can't be read ({error.strerror}).") from error

    def turn_on(self, command: Sequence[str]) -> None:
        try:
            files.write(self._file, self._make(command))
        except OSError as error:
            raise AutostartError(f"{self._file} can't be written ({error.strerror}).") from error

    def turn_off(self) -> None:
        try:
            self._file.unlink(missing_ok=True)
        except OSError as error:
            raise AutostartError(f"{self._file} can't be removed ({error.strerror}).") from error


FILE = "shoal.desktop"
_DELAY_S = 10
"""Seconds to wait after login, so that the system tray exists (honoured by GNOME)."""
_RESERVED = re.compile(r"[\s\"'\\><~|&;$*?#()`]")
_ESCAPES = {"s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


def folder(environment: Mapping[str, str], user: Path) -> Path:
    """Returns the folder for a user's autostart entries. A relative XDG_CONFIG_HOME is ignored, as the standard
    says."""
    config = environment.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config.startswith("/") else user / ".config") / "autostart"


class LinuxAutostart(InFile):
    """Autostart through a desktop entry (XDG autostart and desktop entry specifications)."""

    def __init__(self, place: Path | None = None) -> None:
        super().__init__(
            (place or folder(os.environ, Path.home())) / FILE,
            lambda content: read_entry(content.decode("utf-8", "replace")),
            lambda command: entry(command).encode(),
        )


def entry(command: Sequence[str]) -> str:
    """Returns the desktop entry that starts `command`; desktops skip it if the program no longer exists
    (TryExec). Raises AutostartError for a command that an entry cannot contain."""
    return desktop_entry(
        command,
        Comment=COMMENT,
        StartupNotify="false",
        **{"X-GNOME-Autostart-enabled": "true", "X-GNOME-Autostart-Delay": str(_DELAY_S)},
    )


def desktop_entry(command: Sequence[str], more: str = "", **keys: str) -> str:
    """Returns a desktop entry that runs `command`, followed by `more`, which may hold field codes. Raises
    AutostartError for a command that an entry cannot contain."""
    known = {
        "Type": "Application",
        "Name": NAME,
        "Exec": exec_line(command) + more,
        "TryExec": command[0].replace("\\", "\\\\"),
        "Terminal": "false",
    }
    lines = (f"{key}={value}\n" for key, value in (known | keys).items())
    return "[Desktop Entry]\n" + "".join(lines)


def read_entry(text: str) -> list[str] | None:
    """Returns the command of a desktop entry, None if it is disabled (by GNOME's or KDE's settings)."""
    keys: dict[str, str] = {}
    group = ""
    for line in text.splitlines():
        if line.startswith("["):
            group = line.strip()
        elif group == "[Desktop Entry]" and "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            keys[key.strip()] = value.strip()
    if keys.get("Hidden") == "true" or keys.get("X-GNOME-Autostart-enabled") == "false":
        return None
    return read_exec(keys.get("Exec", "")) or None


def exec_line(command: Sequence[str]) -> str:
    """Returns the value of Exec: every word quoted where needed, "%" doubled, then escaped like every string.
    Raises AutostartError for a command that cannot be written.

    >>> print(exec_line(["/opt/my shoal/shoal", "--share", "50%", "a$b"]))
    "/opt/my shoal/shoal" --share 50%% "a\\\\$b"
    """
    if not command or not command[0].startswith("/") or "=" in command[0]:
        raise AutostartError("Starting at login needs the full path of the program, without an equals sign.")
    if any(character < " " for word in command for character in word):
        raise AutostartError("A command that starts at login can't contain control characters.")
    words = []
    for word in command:
        quoted = re.sub(r'(["`$\\])', r"\\\1", word)
        words.append(f'"{quoted}"' if not word or _RESERVED.search(word) else word)
    return " ".join(words).replace("%", "%%").replace("\\", "\\\\")


def read_exec(value: str) -> list[str]:
    """Splits an Exec value into words. Field codes, which stand for files to open, are left out.

    >>> read_exec(exec_line(["/opt/my shoal/shoal", "--share", "50%", "a$b", ""]))
    ['/opt/my shoal/shoal', '--share', '50%', 'a$b', '']
    """
    text = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), value)
    words = []
    for found in re.finditer(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)', text):
        if found[1] is not None:
            words.append(re.sub(r"\\(.)", r"\1", found[1]).replace("%%", "%"))
        elif not re.fullmatch(r"%[a-zA-Z]", found[2]):
            words.append(found[2].replace("%%", "%"))
    return words


LABEL = "shoal.background"


class MacAutostart(InFile):
    """Autostart through a macOS LaunchAgent. Cannot see what the user disabled under System Settings > Login
    Items: only launchd knows that."""

    def __init__(self, folder: Path | None = None) -> None:
        file = (folder or Path.home() / "Library" / "LaunchAgents") / f"{LABEL}.plist"
        super().__init__(file, read_agent, agent)


def agent(command: Sequence[str]) -> bytes:
    """Returns the LaunchAgent plist that starts `command` once at login, in graphical sessions only. Raises
    AutostartError."""
    if not command or not command[0].startswith("/"):
        raise AutostartError("Starting at login needs the full path of the program.")
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(command),
            "RunAtLoad": True,
            "KeepAlive": False,
            "LimitLoadToSessionType": "Aqua",
            "ProcessType": "Interactive",
        }
    )


def read_agent(data: bytes) -> list[str] | None:
    """Returns the command (ProgramArguments) of a macOS LaunchAgent plist. None if `data` is not a plist, or
    the agent is disabled or has no command."""
    try:
        keys = plistlib.loads(data)
    except (plistlib.InvalidFileException, ValueError, OSError):
        return None
    if not isinstance(keys, dict) or keys.get("Disabled") or not keys.get("RunAtLoad"):
        return None
    command = keys.get("ProgramArguments")
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        return None
    return command or None


RUN_KEY = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED_KEY = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
_LONGEST = 260
"""Maximum characters of a Run value that Windows executes (documentation of the Run keys)."""


class Registry(Protocol):
    """Access to values of keys below HKEY_CURRENT_USER. All methods raise OSError."""

    def get(self, key: str, name: str) -> str | bytes | None: ...
    def set(self, key: str, name: str, value: str | bytes) -> None: ...
    def delete(self, key: str, name: str) -> None: ...


class WindowsAutostart:
    """Autostart through the user's Run key."""

    where = rf"HKEY_CURRENT_USER\{RUN_KEY}\{NAME}"

    def __init__(self, registry: Registry | None = None) -> None:
        self._registry = registry or CurrentUser()

    def command(self) -> list[str] | None:
        try:
            line = self._registry.get(RUN_KEY, NAME)
            switch = self._registry.get(APPROVED_KEY, NAME)
        except OSError as error:
            raise AutostartError(f"The registry can't be read ({error}).") from error
        if not isinstance(line, str) or not may_start(switch):
            return None
        return split(line) or None

    def turn_on(self, command: Sequence[str]) -> None:
        line = subprocess.list2cmdline(command)
        if len(line) > _LONGEST:
            raise AutostartError(
                f"Windows starts nothing whose command is longer than {_LONGEST} characters; move Shoal to a "
                "shorter path."
            )
        try:
            self._registry.set(RUN_KEY, NAME, line)
            # Without it a switch that was once thrown in Task Manager would still be off.
            self._registry.delete(APPROVED_KEY, NAME)
        except OSError as error:
            raise AutostartError(f"The registry can't be written ({error}).") from error

    def turn_off(self) -> None:
        try:
            self._registry.delete(RUN_KEY, NAME)
            self._registry.delete(APPROVED_KEY, NAME)
        except OSError as error:
            raise AutostartError(f"The registry can't be written ({error}).") from error


def may_start(switch: str | bytes | None) -> bool:
    """Returns whether Task Manager lets the program start at login: a missing value or an even first byte means
    yes.

    >>> may_start(None), may_start(bytes([2]) + bytes(11)), may_start(bytes([3]) + bytes(11))
    (True, True, False)
    """
    return not isinstance(switch, bytes) or not switch or switch[0] % 2 == 0


def split(line: str) -> list[str]:
    """Splits a command line by the rules of Microsoft's C run-time, as list2cmdline writes it.

    >>> split(subprocess.list2cmdline([r"C:\\My Apps\\shoal.exe", "--background", 'a"b']))
    ['C:\\\\My Apps\\\\shoal.exe', '--background', 'a"b']
    """
    words: list[str] = []
    word: str | None = None
    quoted = False
    slashes = 0
    for character in line:
        if character == "\\":
            slashes += 1
            continue
        if character == '"':
            word = (word or "") + "\\" * (slashes // 2)
            if slashes % 2:
                word += '"'
            else:
                quoted = not quoted
        elif character in " \t" and not quoted:
            word = word if not slashes else (word or "") + "\\" * slashes
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + "\\" * slashes + character
        slashes = 0
    if slashes:
        word = (word or "") + "\\" * slashes
    return [*words, word] if word is not None else words


class CurrentUser:
    """Registry access through winreg."""

    def __init__(self) -> None:
        import winreg

        self._winreg: Any = winreg

    def get(self, key: str, name: str) -> str | bytes | None:
        try:
            with self._winreg.OpenKey(self._winreg.HKEY_CURRENT_USER, key) as opened:
                value = self._winreg.QueryValueEx(opened, name)[0]
        except FileNotFoundError:
            return None
        return value if isinstance(value, str | bytes) else None

    def set(self, key: str, name: str, value: str | bytes) -> None:
        kind = self._winreg.REG_SZ if isinstance(value, str) else self._winreg.REG_BINARY
        with self._winreg.CreateKey(self._winreg.HKEY_CURRENT_USER, key) as opened:
            self._winreg.SetValueEx(opened, name, 0, kind, value)

    def delete(self, key: str, name: str) -> None:
        access = self._winreg.KEY_SET_VALUE
        try:
            with self._winreg.OpenKey(self._winreg.HKEY_CURRENT_USER, key, 0, access) as opened:
                self._winreg.DeleteValue(opened, name)
        except FileNotFoundError:
            pass
