"""The facts that the computer says about itself at one moment, and who may be asked for one such fact."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import msgspec


class Absent(Enum):
    """The answer of a source where this computer, or this system, has no such thing: no battery, no sensor."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT

Value = float | bool | str


class DesktopFacts(msgspec.Struct, frozen=True, kw_only=True):
    """None means unknown, unless the field's name is in `absent`: then there is nothing to know.

    Shares are in [0, 1]. "Others" are all processes but our own: this one and those it started.
    """

    idle_s: float | None = None
    """Seconds without a key, a click or a movement of the pointer."""
    on_battery: bool | None = None
    saver: bool | None = None
    """The system's own battery saver or low-power mode is on."""
    full_screen: bool | None = None
    """A program fills the screen, or keeps it awake as film players and presentations do."""
    exclusive_app: str | None = None
    """The program of the owner's list that is running, "" for none of them."""
    cpu_others: float | None = None
    """Share of all cores that others use."""
    gpu_others: float | None = None
    """Share of the busiest graphics card that others use."""
    memory_free: float | None = None
    """Share of the memory that programs could still get without swapping."""
    memory_stalled: float | None = None
    """Share of the last ten seconds in which some program waited for memory (Linux: pressure stall)."""
    temperature_c: float | None = None
    """The hottest of processor and graphics card."""
    too_hot: bool | None = None
    """The system itself says that it is too hot (macOS: thermal state serious or critical)."""
    absent: frozenset[str] = frozenset()

    def unknown(self, field: str) -> bool:
        """Whether a fact that this computer should have could not be found out."""
        return getattr(self, field) is None and field not in self.absent


FIELDS: tuple[str, ...] = tuple(name for name in DesktopFacts.__struct_fields__ if name != "absent")


class SourceError(Exception):
    """A fact could not be found out. The message is one sentence for the owner."""


class FactSource(Protocol):
    """Finds out one fact. `read` may take a while and is only ever called from one thread."""

    @property
    def name(self) -> str:
        """What is asked, for `doctor` and the log: "input idle time (X11)"."""

    def read(self) -> Value | Absent:
        """The fact now. Raises SourceError, or whatever its library raises, where it cannot be found out."""


class NoSource:
    """The null version. `absent` where this computer has nothing to ask about, otherwise a fact stays
    unknown, and unknown counts as in use."""

    def __init__(self, name: str, why: str, absent: bool) -> None:
        self.name = name
        self.why = why
        self._absent = absent

    def read(self) -> Value | Absent:
        if self._absent:
            return ABSENT
        raise SourceError(self.why)


class FirstThatAnswers:
    """Several ways to the same fact: the first that answers is kept, and left again when it fails.

    `otherwise` is the answer where none of them works; without it the fact is unknown, with the last reason.
    """

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
