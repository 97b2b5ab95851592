"""Finds Shoal's own processes, and which of the user's listed programs is running."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

_PROC = Path("/proc")

BUILDER = Path(sys.prefix) / "shoal-llamacpp.pid"
"""Process id file, written by app.install.launcher.optional while it builds llama.cpp."""


def own_processes(root: int | None = None) -> set[int]:
    """Returns the ids of process `root` and its descendants; empty if it has ended. Without `root`: of this
    process and of a background build of llama.cpp."""
    if root is not None:
        return _tree(root)
    return _tree(os.getpid()) | builder_processes()


def builder_processes(file: Path = BUILDER) -> set[int]:
    """Returns the processes that build llama.cpp in the background. The command line is checked, because the id
    of a killed build may have been reused by another program."""
    try:
        pid = int(file.read_text(encoding="ascii"))
        ours = "app.install.launcher.optional" in psutil.Process(pid).cmdline()
    except (OSError, ValueError, psutil.Error):
        return set()
    return _tree(pid) if ours else set()


def _tree(root: int) -> set[int]:
    if sys.platform == "linux" and (_PROC / str(root) / "task" / str(root) / "children").exists():
        return _through_kernel(root)
    try:
        return {root, *(child.pid for child in psutil.Process(root).children(recursive=True))}
    except psutil.NoSuchProcess:
        return set()


def _through_kernel(root: int) -> set[int]:
    """Finds the descendants through the kernel's lists of each thread's children: a few files instead of one
    per process on the system."""
    found: set[int] = set()
    to_ask = [root]
    while to_ask:
        pid = to_ask.pop()
        try:
            threads = os.listdir(_PROC / str(pid) / "task")
        except OSError:
            continue  # has ended since it was listed
        found.add(pid)
        for thread in threads:
            try:
                listed = (_PROC / str(pid) / "task" / thread / "children").read_text()
            except OSError:
                continue
            to_ask.extend(child for child in map(int, listed.split()) if child not in found)
    return found


_AFRESH = 30
"""Readings after which the names of all processes are read again, since process ids are reused."""
_SETTLED = 3
"""Number of readings at which a new process is asked for its name: it may start as a shell and become a
game."""


class ExclusiveApps:
    """Watches for the user's listed programs. Reads the names of new processes only, which is fast even with
    hundreds of processes."""

    name = "programs that want the computer for themselves"

    def __init__(self) -> None:
        self.wanted: frozenset[str] = frozenset()
        self._known: dict[int, tuple[str, int]] = {}
        self._readings = 0

    def watch(self, names: Iterable[str]) -> None:
        """Sets the user's list of program names, with or without ".exe"."""
        self.wanted = frozenset(filter(None, map(program, names)))

    def read(self) -> str:
        """Returns the first running program of the list in alphabetical order, "" if none runs. Shoal's own
        processes do not count, so that a user can list "python"."""
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
    """Normalises a program name for comparison: no folder, lower case, no ".exe".

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
