"""The facts that the computer reports about itself at one moment, the interface of a source for one fact, and
what the sources share: a clock that cannot be set, and the system's libraries."""

from __future__ import annotations

import ctypes
import sys
import time
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import msgspec


class Absent(Enum):
    """A source's answer if this computer has nothing to measure: no battery, no sensor."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT

Value = float | bool | str


class DesktopFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All facts at one moment. None means unknown, unless the field's name is in `absent`: then this computer
    has no such thing.

    Shares are in [0, 1]. "Others" are all processes except Shoal's own: this one and those it started."""

    idle_s: float | None = None
    """Seconds without keyboard or pointer input."""
    on_battery: bool | None = None
    saver: bool | None = None
    """Whether the system's own battery saver or low-power mode is on."""
    full_screen: bool | None = None
    """Whether a program fills the screen, or keeps it awake as video players and presentations do."""
    cpu_others: float | None = None
    """Share of all cores used by others."""
    gpu_others: float | None = None
    """Share of the busiest graphics card used by others."""
    memory_free: float | None = None
    """Share of the memory that programs can still get without swapping."""
    memory_stalled: float | None = None
    """Share of the last ten seconds in which some program waited for memory (Linux pressure stall
    information)."""
    temperature_c: float | None = None
    """The higher of processor and graphics card temperature, in degrees Celsius."""
    too_hot: bool | None = None
    """Whether the system reports that it is too hot (macOS: thermal state serious or critical)."""
    absent: frozenset[str] = frozenset()

    def unknown(self, field: str) -> bool:
        """Returns whether a fact that this computer should have could not be read."""
        return getattr(self, field) is None and field not in self.absent


FACT_NAMES: tuple[str, ...] = tuple(name for name in DesktopFacts.__struct_fields__ if name != "absent")


class SourceError(Exception):
    """A fact could not be read. The message is one sentence for the user."""


class FactSource(Protocol):
    """Reads one fact. `read` may block for a while and is only called from one thread."""

    @property
    def name(self) -> str:
        """What this source reads, for `doctor` and the log: "input idle time (X11)"."""

    def read(self) -> Value | Absent:
        """Returns the fact now. Raises SourceError, or whatever its library raises, if it cannot be read."""


class NoSource:
    """Null version of a source. `absent`: the computer has no such thing. Otherwise the fact stays unknown,
    which counts as in use."""

    def __init__(self, name: str, why: str, absent: bool) -> None:
        self.name = name
        self.why = why
        self._absent = absent

    def read(self) -> Value | Absent:
        if self._absent:
            return ABSENT
        raise SourceError(self.why)


class FirstThatAnswers:
    """Combines several sources of the same fact: the first that works is used until it fails. `otherwise` is
    the answer if none works; without it, `read` raises the last SourceError."""

    def __init__(self, *sources: FactSource, otherwise: Absent | None = None) -> None:
        self._sources = sources
        self._otherwise = otherwise
        self._kept: FactSource | None = None

    @property
    def name(self) -> str:
        return self._kept.name if self._kept else " or ".join(source.name for source in self._sources)

    def read(self) -> Value | Absent:
        if self._kept is not None:
            try:
                return self._kept.read()
            except SourceError:
                self._kept = None
        why = SourceError("There is nothing to ask.")
        for source in self._sources:
            try:
                answer = source.read()
            except SourceError as error:
                why = error
                continue
            self._kept = source
            return answer
        if self._otherwise is not None:
            return self._otherwise
        raise why


def steady_s() -> float:
    """Returns seconds since an arbitrary moment. Unaffected by setting the clock, but includes sleep: a snooze
    of one hour also passes while the lid is closed."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        # time.monotonic stops while a Mac sleeps, this one does not (clock_gettime(3)).
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()


def read_word(file: Path) -> str:
    """Returns what stands in a file of the kernel; empty if it can't be read: not every driver has every file,
    and reading some fails while a battery is changed."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def load_library(file: str) -> ctypes.CDLL:
    """Loads a shared library. Raises SourceError if it is missing."""
    try:
        return ctypes.CDLL(file)
    except OSError as error:
        raise SourceError(
            f"The system's library {file} is missing; install the package that holds it."
        ) from error


def load_windows_library(name: str) -> Any:
    """Loads a Windows library with the stdcall convention. Raises SourceError on other systems."""
    loader = getattr(ctypes, "WinDLL", None)
    if loader is None:
        raise SourceError(f"{name} is a library of Windows, and this is another system.")
    try:
        return loader(name)
    except OSError as error:
        raise SourceError(f"The system's library {name} can't be loaded.") from error
