"""Which of the owner's listed programs is running."""

from __future__ import annotations

from collections.abc import Iterable

import psutil

from app.desktop.facts.own import own_processes

_AFRESH = 30
"""Every so many readings all are asked, since a number is used again after its process has ended."""
_SETTLED = 3
"""A process is asked for its name at this many readings: it may begin as a shell and become a game."""


class ExclusiveApps:
    """Asks only new processes for their name, which makes a reading cheap where hundreds run."""

    name = "programs that want the computer for themselves"

    def __init__(self) -> None:
        self.wanted: frozenset[str] = frozenset()
        self._known: dict[int, tuple[str, int]] = {}
        self._readings = 0

    def watch(self, names: Iterable[str]) -> None:
        """The owner's list, as names of programs with or without ".exe"."""
        self.wanted = frozenset(filter(None, map(program, names)))

    def read(self) -> str:
        """The first in the alphabet of those that run, "" for none. Our own processes do not count: who lists
        "python" means another one."""
        wanted = self.wanted
        if not wanted:
            return ""
        self._readings += 1
        if self._readings % _AFRESH == 0:
            self._known = {}
        known: dict[int, tuple[str, int]] = {}
        for pid in psutil.pids():
            name, asked = self._known.get(pid, ("", 0))
            if asked < _SETTLED:
                name, asked = _name(pid), asked + 1
            known[pid] = (name, asked)
        self._known = known
        running = {pid: name for pid, (name, _) in known.items() if name in wanted}
        ours = own_processes() if running else set()
        return min((name for pid, name in running.items() if pid not in ours), default="")


def program(name: str) -> str:
    """A name as it is compared: without folder, case and ".exe".

    >>> program(r"C:\\Games\\Doom.EXE"), program("/usr/bin/blender"), program("  ")
    ('doom', 'blender', '')
    """
    last = name.strip().replace("\\", "/").rsplit("/", 1)[-1].casefold()
    return last.removesuffix(".exe")


def _name(pid: int) -> str:
    try:
        return program(psutil.Process(pid).name())
    except psutil.Error:
        return ""
