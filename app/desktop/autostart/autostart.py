"""Starting at login: off until the owner turns it on. One file per system behind this interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from app.common import files

NAME = "Shoal"
COMMENT = "Lets a small reasoning model learn while nobody uses this computer"


class AutostartError(Exception):
    """The system did not take the change. The message is one sentence for the owner."""


class Autostart(Protocol):
    """Raises AutostartError from all three where the system refuses."""

    where: str
    """What "remove everything" names: a file, or a key of the registry."""

    def command(self) -> list[str] | None:
        """What starts at login, None while nothing does (also when the owner switched it off elsewhere)."""

    def turn_on(self, command: Sequence[str]) -> None:
        """Starts `command` (full path first) at every login from the next one on."""

    def turn_off(self) -> None:
        """Nothing starts any more, and nothing of it is left. Also where nothing was there."""


class InFile:
    """By a file that the system reads at login: `read` finds the command in it, `make` writes one."""

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
