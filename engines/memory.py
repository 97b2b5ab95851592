"""How much of this computer's memory an engine may take. No model library is needed to ask."""

from __future__ import annotations

from pathlib import Path

import psutil

MB = 2**20


def free_ram() -> int:
    """Bytes an engine may take now: most of what is free, so that the rest of the computer keeps room."""
    return int(min(psutil.virtual_memory().available, container_room()) * 0.7)


def container_room(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes left under this control group's limit, which psutil does not see; huge where there is none."""
    try:
        limit = (root / "memory.max").read_text().strip()
        used = (root / "memory.current").read_text().strip()
    except OSError:
        return 2**62
    return max(0, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else 2**62
