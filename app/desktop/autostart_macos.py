"""Starting at login on macOS: a launch agent of the owner's, read by launchd at the next login."""

from __future__ import annotations

import plistlib
from collections.abc import Sequence
from pathlib import Path

from app.desktop.autostart import AutostartError

LABEL = "shoal.background"


class MacAutostart:
    """Does not see what the owner switched off under System Settings > Login Items: only launchd knows that."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = (folder or Path.home() / "Library" / "LaunchAgents") / f"{LABEL}.plist"
        self.where = str(self._file)

    def command(self) -> list[str] | None:
        try:
            return read_agent(self._file.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise AutostartError(f"{self._file} cannot be read ({error.strerror}).") from error

    def turn_on(self, command: Sequence[str]) -> None:
        fresh = self._file.with_suffix(".new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(agent(command))
            fresh.replace(self._file)
        except OSError as error:
            raise AutostartError(f"{self._file} cannot be written ({error.strerror}).") from error

    def turn_off(self) -> None:
        try:
            self._file.unlink(missing_ok=True)
        except OSError as error:
            raise AutostartError(f"{self._file} cannot be removed ({error.strerror}).") from error


def agent(command: Sequence[str]) -> bytes:
    """The property list that starts `command` once at login, in a session with a screen only. Raises
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
    """The command of an agent, None where it starts nothing or is no property list."""
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
