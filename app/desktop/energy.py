"""How much energy our own processes take, in joules: measured where the system lets us, else estimated.

    measured   joules of all processor packages x our share of the processor's busy time,
               and all of an NVIDIA card that we compute on
    estimated  our processor seconds x CORE_W

The share is of busy time, so what an idle computer takes anyway is divided among those who keep it awake.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from app.desktop.facts.facts import SourceError
from app.desktop.facts.own import own_processes
from app.desktop.nvidia.gpu import Nvml, Power, card_power

CORE_W = 8.0
"""Watts of a busy core: laptops take 4 to 8 (15 to 28 W on 4 cores), desktops 6 to 15 (65 to 125 W on 8 to 12).
An estimate may be off by half of itself."""
POWERCAP = Path("/sys/class/powercap")
_PACKAGE = "intel-rapl:[0-9]*"
"""Whole packages; their parts (intel-rapl:0:0) are in them already. AMD's counters have the same name."""
_COMBINED = re.compile(r"Combined Power[^:]*: (\d+) mW")
MEASURED = "Measured by the processor's own counter, shared out by processor time."
MEASURED_WITH_CARD = (
    "Measured by the counters of processor and graphics card; the processor's is shared out by time."
)
ESTIMATED = f"An estimate: {CORE_W:.0f} W for every core that Shoal keeps busy. It may be off by half."
ESTIMATED_WITH_CARD = (
    f"The graphics card is measured. {CORE_W:.0f} W for every busy core are an estimate, off by up to half."
)


class EnergyReading(NamedTuple):
    """Since the last reading. `about` says how it was found out."""

    joules: float
    about: str


class Counter:
    """One counter of microjoules that begins anew at `most`."""

    def __init__(self, file: Path, most: Path) -> None:
        self._file, self._most = file, int(most.read_text())
        self._last = self._now()

    def joules(self) -> float:
        """Since the last time. Raises OSError and ValueError."""
        now = self._now()
        spent = now - self._last if now >= self._last else now - self._last + self._most
        self._last = now
        return spent / 1e6

    def _now(self) -> int:
        return int(self._file.read_text())


def packages(folder: Path = POWERCAP) -> list[Counter]:
    """The processor's counters; none where there are none, or where only the administrator may read them."""
    found = []
    for place in sorted(folder.glob(_PACKAGE)):
        if place.name.count(":") == 1:
            try:
                found.append(Counter(place / "energy_uj", place / "max_energy_range_uj"))
            except (OSError, ValueError):
                return []  # some of them would be less than all
    return found


def combined_w(text: str) -> float | None:
    """Watts in what macOS's powermetrics prints, None where they are not in it.

    >>> combined_w("CPU Power: 900 mW\\nCombined Power (CPU + GPU + ANE): 1250 mW"), combined_w("")
    (1.25, None)
    """
    found = _COMBINED.search(text)
    return int(found[1]) / 1000 if found else None


def powermetrics() -> float | None:
    """Watts of the whole chip, over a fifth of a second. Only an administrator may ask; None for others."""
    if sys.platform != "darwin" or os.geteuid() != 0:
        return None
    command = ["/usr/bin/powermetrics", "--samplers", "cpu_power", "-n", "1", "-i", "200"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return combined_w(said.stdout)


class Cards:
    """The NVIDIA cards' own counters, for those that our processes compute on. Nothing is opened where the
    system lets cards sleep (laptops): that would keep them awake."""

    def __init__(self, nvml: Nvml | None = None, power: Callable[[], Power] = card_power) -> None:
        self._nvml, self._power = nvml or Nvml(), power
        self._last: dict[int, float] = {}

    def joules(self, own: set[int]) -> float | None:
        """Since the last time; None where none of ours computes on a card that can be asked."""
        try:
            cards, library = ([], None) if self._power().dynamic else self._nvml.cards()
        except SourceError:  # a card, and no library to ask it by
            return None
        if library is None:
            return None
        spent: float | None = None
        for place, card in enumerate(cards):
            try:
                now = library.nvmlDeviceGetTotalEnergyConsumption(card) / 1000
                users = {one.pid for one in library.nvmlDeviceGetComputeRunningProcesses(card)}
            except library.NVMLError:
                continue
            if users & own:
                spent = (spent or 0.0) + max(0.0, now - self._last.get(place, now))
            self._last[place] = now
        return spent


class Meter:
    """`read` blocks for some milliseconds; the first reading only begins."""

    def __init__(
        self,
        counters: Sequence[Counter] | None = None,
        cards: Cards | None = None,
        own: Callable[[], set[int]] = own_processes,
        chip_w: Callable[[], float | None] = powermetrics,
    ) -> None:
        self._counters = packages() if counters is None else list(counters)
        self._cards, self._own, self._chip_w = cards or Cards(), own, chip_w
        self._last = self._taken()

    def read(self, seconds: float) -> EnergyReading:
        """What we took in the `seconds` since the last reading."""
        ours_before, busy_before = self._last
        ours, busy = self._last = self._taken()
        ours_s, busy_s = max(0.0, ours - ours_before), max(0.0, busy - busy_before)
        card = self._cards.joules(self._own()) if ours_s else None
        measured = self._measured(seconds)
        if measured is None:
            return EnergyReading(
                estimate(ours_s) + (card or 0.0), ESTIMATED if card is None else ESTIMATED_WITH_CARD
            )
        return EnergyReading(
            part(measured, ours_s, busy_s) + (card or 0.0), MEASURED if card is None else MEASURED_WITH_CARD
        )

    def _measured(self, seconds: float) -> float | None:
        """Joules of the whole processor."""
        if self._counters:
            try:
                return sum(counter.joules() for counter in self._counters)
            except (OSError, ValueError):
                self._counters = []
        watts = self._chip_w()
        return None if watts is None else watts * seconds

    def _taken(self) -> tuple[float, float]:
        """Processor seconds of ours, and of everybody."""
        times = psutil.cpu_times()
        unused = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return sum(map(_spent_s, self._own())), sum(times) - guests - unused


def estimate(processor_s: float) -> float:
    """Joules.

    >>> estimate(10.0)
    80.0
    """
    return CORE_W * processor_s


def part(joules: float, ours_s: float, busy_s: float) -> float:
    """Our part of what the processor took.

    >>> part(90.0, ours_s=2.0, busy_s=6.0), part(90.0, ours_s=0.0, busy_s=0.0)
    (30.0, 0.0)
    """
    return joules * min(1.0, ours_s / busy_s) if busy_s > 0 else 0.0


def _spent_s(pid: int) -> float:
    """With the children that have ended, so that nothing is lost with them."""
    try:
        return float(sum(psutil.Process(pid).cpu_times()[:4]))
    except psutil.Error:
        return 0.0
