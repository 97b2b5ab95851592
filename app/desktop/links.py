"""Registers the program that opens shoal:// links, where the installer does not: one class per system.

A single-file app on Linux has no installer, so it writes a desktop entry and an icon for the user. On Windows
the installer's registration is updated if the program's folder was moved. macOS reads the app's own property
list."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from app.common import files
from app.desktop.login import AutostartError, CurrentUser, Registry, desktop_entry, read_entry, split

FILE = "shoal-file.desktop"
"""Different from shoal.desktop, the package's entry, which a user's file of that name would hide."""
ICON = Path("icons") / "hicolor" / "scalable" / "apps" / "shoal-file.svg"
KEY = r"Software\Classes\shoal\shell\open\command"
_DRAWING = Path(__file__).parents[2] / "resources" / "icons" / "shoal.svg"


class Links(Protocol):
    """Registration for shoal:// links on one system."""

    @property
    def where(self) -> tuple[str, ...]:
        """The registration's files, which "remove everything" lists."""

    def update_program(self, program: Sequence[str]) -> bool:
        """Registers `program`, a command that begins with a full path, to open links if the registered one no
        longer exists. Returns whether anything was written. Never raises, so that it cannot prevent a start."""

    def forget(self) -> None:
        """Removes what `update_program` wrote."""


class NoLinks:
    """Null version for systems where the installer does everything."""

    where: tuple[str, ...] = ()

    def update_program(self, program: Sequence[str]) -> bool:
        return False

    def forget(self) -> None:
        pass


class DesktopEntry:
    """The menu entry of a single-file app on Linux. `register`: create it if it is missing."""

    def __init__(self, register: bool, data: Path | None = None) -> None:
        self._register = register
        self._data = data or data_folder(os.environ, Path.home())
        self._file = self._data / "applications" / FILE
        self._icon = self._data / ICON

    @property
    def where(self) -> tuple[str, ...]:
        return tuple(str(path) for path in (self._file, self._icon) if path.exists())

    def update_program(self, program: Sequence[str]) -> bool:
        with suppress(OSError, AutostartError):
            wanted = entry(program)
            before = self._file.read_text(encoding="utf-8", errors="replace") if self._file.exists() else ""
            there = read_entry(before)
            gone = there is not None and not Path(there[0]).exists()
            if before == wanted or not (self._register or gone):
                return False
            self._icon.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(_DRAWING, self._icon)
            files.write(self._file, wanted.encode())
            self._tell()
            return True
        return False

    def forget(self) -> None:
        there = self._file.exists()
        for path in (self._file, self._icon):
            with suppress(OSError):
                path.unlink(missing_ok=True)
        if there:
            self._tell()

    def _tell(self) -> None:
        """Updates the desktop's list of which program opens what; if its tool is missing, the list is updated
        at the next login."""
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                ["update-desktop-database", "-q", str(self._file.parent)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=10,
            )


class WindowsLinks:
    """The registry value written by the installer under the user's classes; the uninstaller removes it."""

    where: tuple[str, ...] = ()

    def __init__(self, registry: Registry | None = None) -> None:
        self._registry = registry or CurrentUser()

    def update_program(self, program: Sequence[str]) -> bool:
        with suppress(OSError):
            line = self._registry.get(KEY, "")
            words = split(line) if isinstance(line, str) else []
            if words and not Path(words[0]).exists():
                self._registry.set(KEY, "", f'{subprocess.list2cmdline(program)} window -- "%1"')
                return True
        return False

    def forget(self) -> None:
        pass


def links(platform: str = sys.platform, environment: Mapping[str, str] = os.environ) -> Links:
    """Returns the class for this system. SHOAL_ONEFILE marks a single-file app."""
    if not getattr(sys, "frozen", False):
        return DesktopEntry(register=False) if platform.startswith("linux") else NoLinks()
    if platform == "win32":
        return WindowsLinks()
    if platform.startswith("linux"):
        return DesktopEntry(register=bool(environment.get("SHOAL_ONEFILE")))
    return NoLinks()


def entry(program: Sequence[str]) -> str:
    """Returns the desktop entry by which a single-file app opens links and appears in menus. Raises
    AutostartError for a path that an entry cannot contain."""
    return desktop_entry(
        program,
        " window -- %u",
        Comment="Train a small reasoning model on this computer, alone or with others",
        Icon=ICON.stem,
        Categories="Education;",
        MimeType="x-scheme-handler/shoal;",
        StartupNotify="true",
        StartupWMClass="shoal",
    )


def data_folder(environment: Mapping[str, str], user: Path) -> Path:
    """Returns the folder for a user's own desktop entries and icons (XDG base directory specification)."""
    data = environment.get("XDG_DATA_HOME", "")
    return Path(data) if data.startswith("/") else user / ".local" / "share"
