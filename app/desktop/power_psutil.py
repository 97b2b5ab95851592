"""Battery or mains on Windows and macOS."""

from __future__ import annotations

import psutil

from app.desktop.facts.facts import ABSENT, Absent, SourceError


class PsutilPower:
    name = "power supply"

    def read(self) -> bool | Absent:
        """Whether the computer runs on its battery. Raises SourceError where it has one that does not say."""
        battery = psutil.sensors_battery()
        if battery is None:
            return ABSENT
        if battery.power_plugged is None:
            raise SourceError("The battery doesn't say whether the computer is plugged in.")
        return not battery.power_plugged
