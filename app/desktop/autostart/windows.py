"""Starting at login on Windows: a value under the owner's Run key, and Task Manager's switch beside it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any, Protocol

from app.desktop.autostart.autostart import NAME, AutostartError

RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
_LONGEST = 260
"""Characters of a Run value that Windows carries out (its documentation of the Run keys)."""


class Registry(Protocol):
    """Values of keys below HKEY_CURRENT_USER. All raise OSError."""

    def get(self, key: str, name: str) -> str | bytes | None: ...
    def set(self, key: str, name: str, value: str | bytes) -> None: ...
    def delete(self, key: str, name: str) -> None: ...


class WindowsAutostart:
    where = rf"HKEY_CURRENT_USER\{RUN}\{NAME}"

    def __init__(self, registry: Registry | None = None) -> None:
        self._registry = registry or CurrentUser()

    def command(self) -> list[str] | None:
        try:
            line = self._registry.get(RUN, NAME)
            switch = self._registry.get(APPROVED, NAME)
        except OSError as error:
            raise AutostartError(f"The registry can't be read ({error}).") from error
        if not isinstance(line, str) or not approved(switch):
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
            self._registry.set(RUN, NAME, line)
            # Without it a switch that was once thrown in Task Manager would still be off.
            self._registry.delete(APPROVED, NAME)
        except OSError as error:
            raise AutostartError(f"The registry can't be written ({error}).") from error

    def turn_off(self) -> None:
        try:
            self._registry.delete(RUN, NAME)
            self._registry.delete(APPROVED, NAME)
        except OSError as error:
            raise AutostartError(f"The registry can't be written ({error}).") from error


def approved(switch: str | bytes | None) -> bool:
    """Whether Task Manager's switch is on: it is where there is none, and where its first byte is even.

    >>> approved(None), approved(bytes([2]) + bytes(11)), approved(bytes([3]) + bytes(11))
    (True, True, False)
    """
    return not isinstance(switch, bytes) or not switch or switch[0] % 2 == 0


def split(line: str) -> list[str]:
    """The words of a command line, by the rules of Microsoft's C run-time, which list2cmdline writes by.

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
    """The real registry."""

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
