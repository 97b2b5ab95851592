"""What a container or a service manager allows this process on Linux: control groups, of both versions.

psutil and os.cpu_count see the whole computer. A limit may be set on the group of the process or on any above
it; the tightest counts. In a container without a namespace of its own, the folder of the group does not exist:
then the files of the root are those of the container."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
NO_LIMIT = 2**62
"""Bytes that stand for no limit of the memory."""


def cpu_quota(root: Path = ROOT, own: Path = OWN) -> float:
    """Returns how many processors' time this process may use; infinity without a limit."""
    quotas = [math.inf]
    for folder in _groups("cpu", root, own):
        words = _words(folder / "cpu.max")
        words = words or [*_words(folder / "cpu.cfs_quota_us"), *_words(folder / "cpu.cfs_period_us")]
        if len(words) == 2 and all(map(str.isdigit, words)) and int(words[1]):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas)


def memory_left(root: Path = ROOT, own: Path = OWN) -> int:
    """Returns the bytes left under the limit of the memory, NO_LIMIT without one. Files that were read and are
    not in use count as free: the system drops them when memory is wanted."""
    left = [NO_LIMIT]
    for folder in _groups("memory", root, own):
        limit = _words(folder / "memory.max") or _words(folder / "memory.limit_in_bytes")
        used = _words(folder / "memory.current") or _words(folder / "memory.usage_in_bytes")
        if all(len(one) == 1 and one[0].isdigit() for one in (limit, used)):
            left.append(max(0, int(limit[0]) - int(used[0]) + _cache(folder)))
    return min(left)


def _cache(folder: Path) -> int:
    words = _words(folder / "memory.stat")
    found = dict(zip(words[::2], words[1::2], strict=False))
    told = found.get("total_inactive_file", found.get("inactive_file", ""))
    return int(told) if told.isdigit() else 0


def _groups(controller: str, root: Path, own: Path) -> Iterator[Path]:
    """Yields the folders of this process's group and of those above it, as far as they exist."""
    try:
        lines = own.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and not names:
            bases = [root]
        elif controller in names.split(","):
            bases = [root / names, root / controller]
        else:
            continue
        base = next((one for one in bases if one.is_dir()), None)
        parts = [] if ".." in path.split("/") else [part for part in path.split("/") if part]
        for depth in range(len(parts), -1, -1) if base is not None else ():
            assert base is not None
            yield base.joinpath(*parts[:depth])


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").split()
    except OSError:
        return []
