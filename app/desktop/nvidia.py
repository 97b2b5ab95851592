"""Measures how much other programs use the NVIDIA cards, and opens the cards' sensors. Cards of other makers
are not read."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from app.desktop.apps import own_processes
from app.desktop.facts import ABSENT, Absent, SourceError, read_word, steady_s

_REST_S = 30.0
_WINDOWS_DRIVER = Path("C:/Windows/System32/nvml.dll")


def card_present() -> bool:
    """Returns whether an NVIDIA driver runs here. Looks at files only, which wakes no driver."""
    if sys.platform == "win32":
        return _WINDOWS_DRIVER.exists()
    return Path("/proc/driver/nvidia/gpus").is_dir() or Path("/dev/nvidiactl").exists()


class GpuPower(NamedTuple):
    """Power management of the NVIDIA cards. `dynamic`: the system powers unused cards down (laptops); `asleep`:
    all are off now."""

    dynamic: bool
    asleep: bool


def card_power(folder: Path = Path("/sys/bus/pci/drivers/nvidia")) -> GpuPower:
    """Reads the power state from the kernel's files, which wakes no card. Without them (Windows) cards count as
    awake."""
    controls = [read_word(file) for file in folder.glob("*:*/power/control")]
    states = [read_word(file) for file in folder.glob("*:*/power/runtime_status")]
    return GpuPower("auto" in controls, bool(states) and all(state == "suspended" for state in states))


class Nvml:
    """NVIDIA's management library (NVML), opened when first used and shared by the load and temperature
    sources.

    An open library keeps a laptop's card awake, so it is closed as soon as the card is idle, and stays closed
    for half a minute, in which the system can power the card down. A card that is off is never asked. `library`
    is the module pynvml of the package nvidia-ml-py; None imports it."""

    def __init__(
        self,
        library: Any = None,
        present: Callable[[], bool] = card_present,
        power: Callable[[], GpuPower] = card_power,
        clock: Callable[[], float] = steady_s,
    ) -> None:
        self._given = library
        self.present = present
        self._power = power
        self._clock = clock
        self._lock = threading.Lock()
        self._open: tuple[list[Any], Any] | None = None
        self._rests_until = float("-inf")

    def open_cards(self) -> tuple[list[Any], Any]:
        """Returns the cards' handles and the library, opening it if needed; ([], None) if there is no card or
        all of them sleep. Raises SourceError if there is a card that cannot be asked."""
        if not self.present() or self._clock() < self._rests_until:
            return [], None
        if self._power().asleep:
            self.close()
            return [], None
        with self._lock:
            if self._open is None:
                self._open = self._opened()
            return self._open

    def opened(self) -> tuple[list[Any], Any]:
        """Returns the cards' handles and the library if it is already open, else ([], None): for readings not
        worth waking a card."""
        with self._lock:
            return self._open or ([], None)

    def close_while_idle(self) -> None:
        """Call it when the cards are idle: closes the library for _REST_S seconds if the system can power
        them down."""
        if self._power().dynamic:
            self.close()
            self._rests_until = self._clock() + _REST_S

    def close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._open[1].nvmlShutdown()
                self._open = None

    def _opened(self) -> tuple[list[Any], Any]:
        library = self._given
        if library is None:
            try:
                library = importlib.import_module("pynvml")
            except ImportError as error:
                raise SourceError(
                    "There is an NVIDIA card, and the library to ask it (nvidia-ml-py) is missing."
                ) from error
        try:
            library.nvmlInit()
            count = library.nvmlDeviceGetCount()
            return [library.nvmlDeviceGetHandleByIndex(place) for place in range(count)], library
        except library.NVMLError as error:
            raise SourceError(f"There is an NVIDIA card, and its driver doesn't answer ({error}).") from error


class GpuOfOthers:
    name = "graphics card load of others (NVIDIA)"

    def __init__(self, nvml: Nvml, own: Callable[[], set[int]] = own_processes) -> None:
        self._nvml = nvml
        self._own = own
        self._since: dict[int, int] = {}

    def read(self) -> float | Absent:
        """Returns the busiest card's share used by others; 0 for cards that sleep. Raises SourceError."""
        if not self._nvml.present():
            return ABSENT
        cards, library = self._nvml.open_cards()
        if not cards:
            return 0.0
        own = self._own()
        try:
            busy = any(library.nvmlDeviceGetUtilizationRates(card).gpu for card in cards)
            share = max(self._of(place, card, own, library) for place, card in enumerate(cards))
        except library.NVMLError as error:
            self._nvml.close()
            raise SourceError(f"The graphics card's driver doesn't answer ({error}).") from error
        if not busy:
            self._nvml.close_while_idle()
        return share

    def _of(self, place: int, card: Any, own: set[int], library: Any) -> float:
        total = library.nvmlDeviceGetUtilizationRates(card).gpu / 100
        if not total:
            return 0.0
        try:
            samples = library.nvmlDeviceGetProcessUtilization(card, self._since.get(place, 0))
        except library.NVMLError_NotFound:
            return 0.0  # no process used the card since the last reading
        except library.NVMLError_NotSupported as error:
            running = {process.pid for process in library.nvmlDeviceGetComputeRunningProcesses(card)}
            if not running & own:
                return float(total)
            raise SourceError("This graphics card doesn't tell its users apart.") from error
        except library.NVMLError as error:
            if error.value == library.NVML_SUCCESS:  # the library's way of saying that there are no samples
                return 0.0
            raise
        self._since[place] = max((sample.timeStamp for sample in samples), default=0)
        return load_of_others(((sample.pid, sample.smUtil) for sample in samples), own, psutil.pid_exists)


def load_of_others(samples: Iterable[tuple[int, int]], own: set[int], exists: Callable[[int], bool]) -> float:
    """Returns the share of a card used by others, from (process, percent) samples; for each process the highest
    sample counts.

    A process that does not exist has just ended, or runs outside our container, whose process ids are
    different. It is left out, because it may be our own.

    >>> load_of_others([(7, 60), (8, 20), (8, 30), (9, 5), (999, 90)], own={7}, exists=lambda pid: pid < 100)
    0.35
    """
    highest: dict[int, int] = {}
    for pid, percent in samples:
        if pid not in own and 0 <= percent <= 100 and exists(pid):
            highest[pid] = max(percent, highest.get(pid, 0))
    return min(1.0, sum(highest.values()) / 100)
