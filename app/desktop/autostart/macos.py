"""Starting at login on macOS: a launch agent of the owner's, read by launchd at the next login."""

from __future__ import annotations

import plistlib
from collections.abc import Sequence
from pathlib import Path

from app.desktop.autostart.autostart import AutostartError, InFile

LABEL = "shoal.background"


class MacAutostart(InFile):
    """Does not see what the owner switched off under System Settings > Login Items: only launchd knows that."""

    def __init__(self, folder: Path | None = None) -> None:
        file = (folder or Path.home() / "Library" / "LaunchAgents") / f"{LABEL}.plist"
        super().__init__(file, read_agent, agent)


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
