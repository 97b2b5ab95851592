"""Records the energy that training uses per calendar month, in HOME/energy.json."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from app.common import files
from app.desktop.energy import EnergyReading
from app.node.record.snapshot import Energy

FILE = "energy.json"
PERIOD_S = 5.0
"""Seconds between two readings."""
SAVE_S = 30.0
"""Seconds between two saves; a kill loses at most this much."""
JOULES_PER_KWH = 3.6e6
"""Joules of a kilowatt hour."""
_LATEST = 0.3
"""Weight of the newest reading in the running mean of watts."""


class MonthEnergy(msgspec.Struct, frozen=True, kw_only=True):
    """Joules used in one local month ("2026-11"). `measured` is False if a part of them is an estimate, and in
    files of versions that did not record it."""

    version: int = 1
    month: str = ""
    joules: float = 0.0
    measured: bool = False


class EnergyRecord:
    """The energy record of one data folder. `complaint`: a sentence about a damaged file, else empty."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        found, self.complaint = files.read_or_set_aside(self._path, MonthEnergy)
        self._kept, self._watts = found or MonthEnergy(), 0.0

    def add(self, reading: EnergyReading, seconds: float, now: datetime) -> None:
        """Adds a reading over the last `seconds`; a new month begins at 0."""
        was = self._of_month(now)
        self._kept = msgspec.structs.replace(
            was,
            joules=was.joules + reading.joules,
            measured=reading.measured and (was.measured or not was.joules),
        )
        self._watts += _LATEST * (reading.joules / max(seconds, 0.1) - self._watts)

    def save(self) -> None:
        """Writes the file. Raises OSError."""
        files.write_json(self._path, self._kept)

    def view(self, now: datetime) -> Energy:
        kept = self._of_month(now)
        watts = round(self._watts, 0 if self._watts > 5 else 1)
        return Energy(watts=watts, month_kwh=round(kept.joules / JOULES_PER_KWH, 3), measured=kept.measured)

    def _of_month(self, now: datetime) -> MonthEnergy:
        month = now.strftime("%Y-%m")
        return self._kept if self._kept.month == month else MonthEnergy(month=month)
