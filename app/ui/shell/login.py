"""Starts this installation's window at login, with this data folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from app.common import home as place
from app.desktop.choose import autostart
from app.desktop.login import Autostart, AutostartError
from app.install.updates import installed

_COMMAND = "window"


class AutostartSwitch:
    """Turns starting at login on and off, for this installation and data folder."""

    def __init__(self, home: Path, system: Autostart | None = None) -> None:
        self._home, self._system = home, system or autostart()

    def on(self) -> bool:
        """Whether Shoal starts at login, from this installation or another."""
        try:
            return self._system.command() is not None
        except AutostartError:
            return False

    def starts_from_here(self) -> bool:
        """Whether the entry starts the window of this data folder."""
        try:
            command = self._system.command()
        except AutostartError:
            return False
        return command is not None and ("--home" not in command or str(self._home) in command)

    def turn(self, on: bool) -> None:
        """Turns starting at login on or off. Raises AutostartError."""
        if on:
            self._system.turn_on(self._command())
        else:
            self._system.turn_off()

    def update_program(self) -> bool:
        """Makes this installation start at login if the registered program no longer exists, keeping the
        registered data folder. Returns whether it did. The entry of another installation that still exists
        stays."""
        with suppress(AutostartError):
            command = self._system.command()
            if command is None or all(Path(word).exists() for word in program_of(command)):
                return False
            rest = command[command.index(_COMMAND) :] if _COMMAND in command else []
            self._system.turn_on([*installed.program(), *rest] if rest else self._command())
            return True
        return False

    def _command(self) -> list[str]:
        return [*installed.program(), _COMMAND, "--background", *home_option(self._home)]


def program_of(command: list[str]) -> list[str]:
    """Returns the words of a command that are paths of a program: those before its subcommand.

    >>> program_of(["/usr/bin/shoal", "window", "--background"]), program_of(["python", "shoal", "window"])
    (['/usr/bin/shoal'], ['python', 'shoal'])
    """
    return command[: command.index(_COMMAND)] if _COMMAND in command else command[:1]


def home_option(home: Path) -> list[str]:
    """Returns the options with which a command finds this data folder; empty if it would find it anyway."""
    try:
        return [] if home == place.default_home() else ["--home", str(home)]
    except place.HomeError:
        return ["--home", str(home)]
