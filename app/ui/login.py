"""Starting at login, for this very installation and data folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from app.desktop.autostart import Autostart, AutostartError, autostart

LAUNCHER = Path(__file__).parents[2] / "shoal"


class Login:
    """What a switch needs of app.desktop.autostart."""

    def __init__(self, home: Path, system: Autostart | None = None) -> None:
        self._home, self._system = home, system or autostart()

    def on(self) -> bool:
        """Also for an entry that some other installation made: it is what happens at login."""
        try:
            return self._system.command() is not None
        except AutostartError:
            return False

    def turn(self, on: bool) -> None:
        """Raises AutostartError."""
        if on:
            self._system.turn_on(self._command())
        else:
            self._system.turn_off()

    def _command(self) -> list[str]:
        program = [sys.executable, str(LAUNCHER)] if os.name == "nt" else [str(LAUNCHER)]
        return [*program, "window", "--background", "--home", str(self._home)]
