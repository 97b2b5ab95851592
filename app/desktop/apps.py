"""Finds Shoal's own processes."""

from __future__ import annotations

import os
import sys
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
