"""Battery or mains on Linux: what the kernel lists under /sys/class/power_supply."""

from __future__ import annotations

from pathlib import Path

from app.desktop.facts.facts import ABSENT, Absent, SourceError

SUPPLIES = Path("/sys/class/power_supply")
_MAINS = ("Mains", "USB", "Wireless")
_STORES = ("Battery", "UPS")
_PLUGGED = ("Charging", "Full", "Not charging")


class LinuxPower:
    name = "power supply (Linux)"

    def __init__(self, folder: Path = SUPPLIES) -> None:
        self._folder = folder

    def read(self) -> bool | Absent:
        """Whether the computer runs on its battery. Raises SourceError where it has one that does not say.

        A supply that is plugged in settles it; otherwise one discharging battery does. The battery of a mouse
        or a headset (scope "Device") is none of the computer's.
        """
        try:
            supplies = sorted(self._folder.iterdir())
        except FileNotFoundError:
            return ABSENT  # a kernel without power supplies: a server, a container
        states: list[str] = []
        for supply in supplies:
            kind = _word(supply / "type")
            if kind in _MAINS and _word(supply / "online") == "1":
                return False
            if kind in _STORES and _word(supply / "scope") != "Device" and _word(supply / "present") != "0":
                states.append(_word(supply / "status"))
        if not states:
            return ABSENT
        if "Discharging" in states:
            return True
        if any(state in _PLUGGED for state in states):
            return False
        raise SourceError("The battery doesn't say whether the computer is plugged in.")


def _word(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""  # not every driver has every file, and reading some fails while a battery is changed
