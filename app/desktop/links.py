"""Which program opens shoal:// links. Installers register it; what is left to do at run time is here, one class
per system.

A single file has no installer: it registers itself, with a desktop entry of its owner's and an icon. On Windows
the registration follows if the program's folder was moved. macOS reads the app's own property list."""

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
from app.desktop.login import NAME, AutostartError, CurrentUser, Registry, exec_line, read_entry, split

FILE = "shoal-file.desktop"
"""Not shoal.desktop: that is the package's, which it would hide."""
ICON = Path("icons") / "hicolor" / "scalable" / "apps" / "shoal-file.svg"
KEY = r"Software\Classes\shoal\shell\open\command"
_DRAWING = Path(__file__).parents[2] / "resources" / "icons" / "shoal.svg"


class Links(Protocol):
    @property
    def where(self) -> tuple[str, ...]:
        """What "remove everything" lists."""

    def follow(self, program: Sequence[str]) -> bool:
        """Makes `program` (full path first) open links, if the registered program no longer exists. Returns
        whether something was written. Never raises, because links must not prevent a start."""

    def forget(self) -> None:
        """Removes what `follow` or `register` wrote."""


class NoLinks:
    """The installer does everything."""

    where: tuple[str, ...] = ()

    def follow(self, program: Sequence[str]) -> bool:
        return False

    def forget(self) -> None:
        pass


class DesktopEntry:
    """The menu's entry of a single file, on Linux. `register`: also where there is no entry yet."""

    def __init__(self, register: bool, data: Path | None = None) -> None:
        self._register = register
        self._data = data or data_folder(os.environ, Path.home())
        self._file = self._data / "applications" / FILE
        self._icon = self._data / ICON

    @property
    def where(self) -> tuple[str, ...]:
        return tuple(str(path) for path in (self._file, self._icon) if path.exists())

    def follow(self, program: Sequence[str]) -> bool:
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
        """The desktop's list of who opens what; where its tool is missing, it is made at the next login."""
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                ["update-desktop-database", "-q", str(self._file.parent)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=10,
            )


class WindowsClass:
    """The value that the installer wrote under the owner's classes; its uninstaller removes it."""

    where: tuple[str, ...] = ()

    def __init__(self, registry: Registry | None = None) -> None:
        self._registry = registry or CurrentUser()

    def follow(self, program: Sequence[str]) -> bool:
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
    """The class for this system. A single file recognises itself by its starter's environment variable."""
    if not getattr(sys, "frozen", False):
        return DesktopEntry(register=False) if platform.startswith("linux") else NoLinks()
    if platform == "win32":
        return WindowsClass()
    if platform.startswith("linux"):
        return DesktopEntry(register=bool(environment.get("SHOAL_ONEFILE")))
    return NoLinks()


def entry(program: Sequence[str]) -> str:
    """The desktop entry by which a single file opens links and is found in menus. Raises AutostartError for a
    path that an entry cannot hold."""
    return "\n".join(
        [
            "[Desktop Entry]",
            "Type=Application",
            f"Name={NAME}",
            "Comment=Train a small reasoning model on this computer, alone or with others",
            f"Exec={exec_line(program)} window -- %u",
            "TryExec={}".format(program[0].replace("\\", "\\\\")),
            f"Icon={ICON.stem}",
            "Terminal=false",
            "Categories=Education;",
            "MimeType=x-scheme-handler/shoal;",
            "StartupNotify=true",
            "StartupWMClass=shoal",
            "",
        ]
    )


def data_folder(environment: Mapping[str, str], user: Path) -> Path:
    """The folder for a user's own desktop entries and icons (XDG base directory specification)."""
    data = environment.get("XDG_DATA_HOME", "")
    return Path(data) if data.startswith("/") else user / ".local" / "share"
