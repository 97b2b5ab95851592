"""Which processes are ours, and which of the owner's listed programs is running."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

# Ours: this process, everything it started, and the builder of llama.cpp, started beside it by the launcher.

_PROC = Path("/proc")

BUILDER = Path(sys.prefix) / "shoal-llamacpp.pid"
"""Process id file, written by app.install.launcher.optional while it builds."""


def own_processes(root: int | None = None) -> set[int]:
    """`root` (by default this process) and all its descendants; empty when it has ended."""
    if root is not None:
        return _tree(root)
    return _tree(os.getpid()) | builder()


def builder(file: Path = BUILDER) -> set[int]:
    """The processes that build llama.cpp in the background. A killed one's process id may be another program's
    by now, so its command line is checked."""
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
    """Children by the kernel's own lists of a thread's children, which takes a few files instead of one for
    every process."""
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
"""Readings after which all processes are asked again, since a process id is reused after its process has
ended."""
_SETTLED = 3
"""A process is asked for its name at this many readings, because it may begin as a shell and become a game."""


class ExclusiveApps:
    """Asks only new processes for their name, which is fast even with hundreds of processes."""

    name = "programs that want the computer for themselves"

    def __init__(self) -> None:
        self.wanted: frozenset[str] = frozenset()
        self._known: dict[int, tuple[str, int]] = {}
        self._readings = 0

    def watch(self, names: Iterable[str]) -> None:
        """The owner's list, as names of programs with or without ".exe"."""
        self.wanted = frozenset(filter(None, map(program, names)))

    def read(self) -> str:
        """The first running program of the list in alphabetical order, "" for none. Our own processes do not
        count: an owner who lists "python" means another one."""
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
    """A name in the form in which it is compared: without folder, case and ".exe".

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
