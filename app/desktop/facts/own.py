"""Which processes are ours: this one, everything it started, and the builder of llama.cpp, which the launcher
started beside it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil

_PROC = Path("/proc")

BUILDER = Path(sys.prefix) / "shoal-llamacpp.pid"
"""Written by app.install.launcher.optional while it builds."""


def own_processes(root: int | None = None) -> set[int]:
    """`root` (this process unless given) and all that came from it, also through others; empty when it has
    ended."""
    if root is not None:
        return _tree(root)
    return _tree(os.getpid()) | builder()


def builder(file: Path = BUILDER) -> set[int]:
    """The processes that build llama.cpp in the background. The number of one that was killed may be another
    program's by now, so its command line is looked at."""
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
    """The kernel lists a thread's children, so a few files are read instead of one for every process."""
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
