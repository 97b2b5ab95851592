"""What learning takes from the socket: today, this month, and what that costs by the owner's price. Kept in
HOME/energy.json, so that a month's limit outlives any kind of end."""

from __future__ import annotations

from datetime import datetime, tzinfo
from pathlib import Path

import msgspec

from app.common import files
from app.node.record.snapshot import Energy

FILE = "energy.json"
PERIOD_S = 5.0
"""Between two readings: a limit is noticed well within a minute."""
SAVE_S = 30.0
KWH = 3.6e6
"""Joules."""
_LATEST = 0.3


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Joules of a month and a day of it, both local (ISO)."""

    version: int = 1
    month: str = ""
    joules: float = 0.0
    day: str = ""
    day_joules: float = 0.0
    about: str = ""

    def at(self, now: datetime) -> Used:
        """The same on this day: what belongs to another month or day is over."""
        month, day = now.strftime("%Y-%m"), now.date().isoformat()
        return msgspec.structs.replace(
            self,
            month=month,
            joules=self.joules if self.month == month else 0.0,
            day=day,
            day_joules=self.day_joules if self.day == day else 0.0,
        )

    def after(self, joules: float, about: str, now: datetime) -> Used:
        was = self.at(now)
        return msgspec.structs.replace(
            was, joules=was.joules + joules, day_joules=was.day_joules + joules, about=about
        )


class Purse:
    """One home's figures. `add` and `save` in any order; what was added since the last save is lost with a
    kill."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        found, self.complaint = files.kept_json(self._path, Used)
        self._used, self._watts = found or Used(), 0.0

    def add(self, joules: float, seconds: float, about: str, now: datetime) -> None:
        self._used = self._used.after(joules, about, now)
        self._watts += _LATEST * (joules / max(seconds, 0.1) - self._watts)

    def save(self) -> None:
        """Raises OSError."""
        files.write_json(self._path, self._used)

    def left_kwh(self, cap_kwh: int, now: datetime) -> float | None:
        """Until the month's limit; None without one (0)."""
        return cap_kwh - self._used.at(now).joules / KWH if cap_kwh else None

    def view(self, price: int, currency: str, now: datetime) -> Energy:
        """`price` in hundredths of the currency for a kWh."""
        used = self._used.at(now)
        return shown(used, round(self._watts, 0 if self._watts > 5 else 1), price, currency)


def shown(used: Used, watts: float, price: int, currency: str) -> Energy:
    """
    >>> shown(Used(joules=9e6, day_joules=9e5), 14.0, 32, "€").money
    '0.80 €'
    """
    month = used.joules / KWH
    return Energy(
        watts=watts,
        today_kwh=round(used.day_joules / KWH, 3),
        month_kwh=round(month, 3),
        money=f"{month * price / 100:.2f} {currency}" if price else "",
        about=used.about,
    )


def next_month(now: float, zone: tzinfo | None) -> float:
    """When the next month begins, in seconds since 1970.

    >>> from datetime import UTC
    >>> began = next_month(datetime(2026, 12, 24, tzinfo=UTC).timestamp(), UTC)
    >>> datetime.fromtimestamp(began, UTC).isoformat()
    '2027-01-01T00:00:00+00:00'
    """
    local = datetime.fromtimestamp(now, zone)
    year, month = (local.year + 1, 1) if local.month == 12 else (local.year, local.month + 1)
    return datetime(year, month, 1, tzinfo=local.tzinfo).timestamp()
