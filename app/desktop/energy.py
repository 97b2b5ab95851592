"""The energy used by Shoal's own processes, in joules: measured where the system allows, else estimated.

    measured   joules of all processor packages x our share of the processor's busy time,
               and all of an NVIDIA card that we compute on
    estimated  our processor seconds x CORE_W

The share is of busy time, so the energy an idle computer uses is divided among the processes that keep it
busy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from app.desktop.apps import own_processes
from app.desktop.facts import SourceError
from app.desktop.nvidia import GpuPower, Nvml, card_power

CORE_W = 8.0
"""Watts of a busy core: laptops use 4 to 8 (15 to 28 W on 4 cores), desktops 6 to 15 (65 to 125 W on 8 to 12).
An estimate may be off by half."""
POWERCAP = Path("/sys/class/powercap")
_PACKAGE = "intel-rapl:[0-9]*"
"""Pattern for whole processor packages, which include their parts (intel-rapl:0:0). AMD's counters have the
same name."""


class EnergyReading(NamedTuple):
    """Energy since the last reading. `measured` is False if any part is an estimate."""

    joules: float
    measured: bool


class EnergyCounter:
    """A counter in microjoules that wraps around at `most`."""

    def __init__(self, file: Path, most: Path) -> None:
        self._file, self._most = file, int(most.read_text())
        self._last = self._now()

    def joules(self) -> float:
        """Returns the joules since the last call. Raises OSError and ValueError."""
        now = self._now()
        spent = now - self._last if now >= self._last else now - self._last + self._most
        self._last = now
        return spent / 1e6

    def _now(self) -> int:
        return int(self._file.read_text())


def processor_counters(folder: Path = POWERCAP) -> list[EnergyCounter]:
    """Returns the processor's energy counters; empty if it has no counters, or if only the administrator may
    read them."""
    found = []
    for place in sorted(folder.glob(_PACKAGE)):
        if place.name.count(":") == 1:
            try:
                found.append(EnergyCounter(place / "energy_uj", place / "max_energy_range_uj"))
            except (OSError, ValueError):
                return []  # some of them would be less than all
    return found


class GpuCounters:
    """The energy counters of NVIDIA cards, counted for cards that Shoal's processes compute on. Not opened on
    laptops whose cards can sleep, because that would keep them awake."""

    def __init__(self, nvml: Nvml | None = None, power: Callable[[], GpuPower] = card_power) -> None:
        self._nvml, self._power = nvml or Nvml(), power
        self._last: dict[int, float] = {}

    def joules(self, own: set[int]) -> float:
        """Returns the joules used since the last call by the cards on which a process in `own` computes; 0 at
        first."""
        try:
            cards, library = ([], None) if self._power().dynamic else self._nvml.open_cards()
        except SourceError:  # a card, and no library to ask it by
            return 0.0
        if library is None:
            return 0.0
        spent = 0.0
        for place, card in enumerate(cards):
            try:
                now = library.nvmlDeviceGetTotalEnergyConsumption(card) / 1000
                users = {one.pid for one in library.nvmlDeviceGetComputeRunningProcesses(card)}
            except library.NVMLError:
                continue
            if users & own:
                spent += max(0.0, now - self._last.get(place, now))
            self._last[place] = now
        return spent


class EnergyMeter:
    """Measures or estimates the energy of Shoal's processes. `read` returns the energy since the previous
    `read`, at first since construction, and blocks for a few milliseconds."""

    def __init__(
        self,
        counters: Sequence[EnergyCounter] | None = None,
        cards: GpuCounters | None = None,
        own: Callable[[], set[int]] = own_processes,
    ) -> None:
        self._counters = processor_counters() if counters is None else list(counters)
        self._cards, self._own = cards or GpuCounters(), own
        self._last = self._taken()

    def read(self) -> EnergyReading:
        """Returns the energy since the last reading."""
        ours_before, busy_before = self._last
        ours, busy = self._last = self._taken()
        ours_s, busy_s = max(0.0, ours - ours_before), max(0.0, busy - busy_before)
        card = self._cards.joules(self._own()) if ours_s else 0.0
        counted = self._counted()
        processor = CORE_W * ours_s if counted is None else part(counted, ours_s, busy_s)
        return EnergyReading(processor + card, counted is not None)

    def _counted(self) -> float | None:
        """Returns the joules of the whole processor, None if it has no readable counters."""
        if self._counters:
            try:
                return sum(counter.joules() for counter in self._counters)
            except (OSError, ValueError):
                self._counters = []
        return None

    def _taken(self) -> tuple[float, float]:
        """Returns the processor seconds of Shoal's processes, and of all processes."""
        times = psutil.cpu_times()
        unused = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return sum(map(_spent_s, self._own())), sum(times) - guests - unused


def part(joules: float, ours_s: float, busy_s: float) -> float:
    """Returns our share of the processor's energy.

    >>> part(90.0, ours_s=2.0, busy_s=6.0), part(90.0, ours_s=0.0, busy_s=0.0)
    (30.0, 0.0)
    """
    return joules * min(1.0, ours_s / busy_s) if busy_s > 0 else 0.0


def _spent_s(pid: int) -> float:
    """Returns a process's processor seconds, including those of children that have ended."""
    try:
        return float(sum(psutil.Process(pid).cpu_times()[:4]))
    except psutil.Error:
        return 0.0
