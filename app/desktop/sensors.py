"""Desktop facts that psutil and the kernel provide on every system: load of other programs, memory,
temperature, battery or mains."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from app.desktop.apps import own_processes
from app.desktop.facts import ABSENT, Absent, SourceError
from app.desktop.nvidia import Nvml

_FIRST_S = 0.5
"""Seconds to wait in the first reading: a load is the difference of two readings."""
_CONSERVED = os.name == "posix" and Path("/proc/self/stat").exists()
"""Whether a parent's processor time includes that of children it has waited for, so that none is lost when a
process ends."""


class CpuOfOthers:
    """Share of the processor used by others at normal priority since the last reading.

    Shoal's own time is subtracted; otherwise a node would count its own training as another program's work and
    never run. Work at low priority is left out, because it yields like ours."""

    name = "processor load of others"

    def __init__(self, own: Callable[[], set[int]] = own_processes) -> None:
        self._own = own
        self._last: tuple[float, float, dict[int, float]] | None = None

    def read(self) -> float:
        if self._last is None:
            self._last = self._taken()
            time.sleep(_FIRST_S)
        busy_before, all_before, own_before = self._last
        busy, everything, own = self._last = self._taken()
        return share_of_others(busy - busy_before, everything - all_before, own_s(own_before, own, _CONSERVED))

    def _taken(self) -> tuple[float, float, dict[int, float]]:
        own = {pid: spent for pid in self._own() if (spent := _spent(pid)) is not None}
        times = psutil.cpu_times()
        everything = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        unused = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
        return everything - unused - getattr(times, "nice", 0.0), everything, own


def own_s(before: dict[int, float], now: dict[int, float], conserved: bool) -> float:
    """Returns the processor seconds that our processes used between two readings of {process: seconds}.
    `conserved`: a parent's time includes children it has waited for, so the difference of the sums is right
    even if some have ended. Otherwise the time since a process's last reading is lost when it ends.

    >>> own_s({1: 5.0, 2: 3.0}, {1: 8.5, 3: 0.5}, conserved=True)  # 1 inherited the 3.0 of 2
    1.0
    >>> own_s({1: 5.0, 2: 3.0}, {1: 5.5, 3: 0.5}, conserved=False)
    1.0
    """
    if conserved:
        return max(0.0, sum(now.values()) - sum(before.values()))
    return sum(max(0.0, spent - before.get(pid, 0.0)) for pid, spent in now.items())


def share_of_others(busy_s: float, all_s: float, ours_s: float) -> float:
    """Returns the share in [0, 1] of the processor used by others; all three arguments in processor seconds. 0
    if no time has passed.

    >>> share_of_others(busy_s=3.0, all_s=8.0, ours_s=1.0)
    0.25
    """
    return min(1.0, max(0.0, busy_s - ours_s) / all_s) if all_s > 0 else 0.0


def _spent(pid: int) -> float | None:
    """Returns the processor seconds at normal priority of a process and its ended children; None if it has
    ended. Of time at low priority only the system part counts, as in the system's own statistics."""
    try:
        process = psutil.Process(pid)
        user, system, of_children, system_of_children = process.cpu_times()[:4]
        low = os.name == "posix" and process.nice() > 0
    except psutil.Error:
        return None
    return float(system + system_of_children + (0.0 if low else user + of_children))


class MemoryFree:
    name = "free memory"

    def read(self) -> float:
        memory = psutil.virtual_memory()
        return float(memory.available / memory.total)


class MemoryStalled:
    """Reads how long programs wait for memory (Linux pressure stall information). Unlike free memory, it is
    unaffected by a full disk cache."""

    name = "memory pressure (Linux)"

    def __init__(self, file: Path = Path("/proc/pressure/memory")) -> None:
        self._file = file

    def read(self) -> float | Absent:
        """Returns the share of the last ten seconds in which some program waited. Raises SourceError for an
        unknown format."""
        try:
            text = self._file.read_text(encoding="ascii", errors="replace")
        except OSError:
            return ABSENT  # older kernels, and some that are built without
        return stalled_share(text)


def stalled_share(text: str) -> float:
    """Parses /proc/pressure/memory into the share that MemoryStalled reads. Raises SourceError.

    >>> stalled_share("some avg10=2.50 avg60=0.00 avg300=0.00 total=12\\nfull avg10=0.00")
    0.025
    """
    try:
        words = dict(word.split("=", 1) for word in text.splitlines()[0].split()[1:])
        return float(words["avg10"]) / 100
    except (IndexError, KeyError, ValueError) as error:
        raise SourceError("The kernel's report of memory pressure has an unknown shape.") from error


CPU_DRIVERS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal", "x86_pkg_temp")
"""Drivers that measure the processor (Intel, AMD twice, ARM boards). Other drivers measure disks and radios,
which have other limits."""
_POSSIBLE_C = range(1, 131)
"""Plausible degrees Celsius: broken sensors report 0, -128 or 255."""


class Temperature:
    name = "temperature of processor and NVIDIA cards"

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml

    def read(self) -> float | Absent:
        """Returns the highest temperature in degrees Celsius. Raises SourceError if a graphics card stops
        answering."""
        sensors: dict[str, Any] = getattr(psutil, "sensors_temperatures", dict)()  # Linux and FreeBSD alone
        found = processor_c(sensors) + self._cards_c()
        return max(found) if found else ABSENT

    def _cards_c(self) -> list[float]:
        cards, library = self._nvml.opened()
        if not cards:
            return []
        try:
            return [
                float(library.nvmlDeviceGetTemperature(card, library.NVML_TEMPERATURE_GPU)) for card in cards
            ]
        except library.NVMLError as error:
            if not self._nvml.opened()[0]:
                return []  # closed while we asked, to let the cards sleep
            raise SourceError(f"The graphics card's driver doesn't answer ({error}).") from error


def processor_c(sensors: Mapping[str, Iterable[Any]]) -> list[float]:
    """Returns the plausible readings of the processor's sensors, in degrees Celsius."""
    readings = [reading.current for name in CPU_DRIVERS for reading in sensors.get(name, ())]
    return [float(value) for value in readings if value is not None and int(value) in _POSSIBLE_C]


class PsutilPower:
    name = "power supply"

    def read(self) -> bool | Absent:
        """Returns whether the computer runs on battery. Raises SourceError if the battery does not report its
        state."""
        battery = psutil.sensors_battery()
        if battery is None:
            return ABSENT
        if battery.power_plugged is None:
            raise SourceError("The battery doesn't say whether the computer is plugged in.")
        return not battery.power_plugged
