"""Which processes are ours: this one and everything it started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil

_PROC = Path("/proc")


def own_processes(root: int | None = None) -> set[int]:
    """`root` (this process unless given) and all that came from it, also through others; empty when it has
    ended."""
    root = os.getpid() if root is None else root
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
