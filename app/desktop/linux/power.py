"""Battery or mains on Linux, which the kernel lists under /sys/class/power_supply, and the battery saver."""

from __future__ import annotations

from pathlib import Path

from app.desktop.facts.facts import ABSENT, Absent, SourceError
from app.desktop.linux.bus import Bus, Service

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


# Battery saver on Linux: the power profile that the owner chose in the desktop's settings.

PROFILES = (
    Service(
        "org.freedesktop.UPower.PowerProfiles",
        "/org/freedesktop/UPower/PowerProfiles",
        "org.freedesktop.UPower.PowerProfiles",
    ),
    Service("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles", "net.hadess.PowerProfiles"),
)
"""power-profiles-daemon under its new and its old name."""
PLATFORM = Path("/sys/firmware/acpi/platform_profile")


class ProfileSaver:
    """Asks one name of the daemon."""

    name = "power profile (desktop)"

    def __init__(self, bus: Bus, service: Service) -> None:
        self._bus = bus
        self._service = service

    def read(self) -> bool:
        """Raises SourceError."""
        profile = self._bus.property(self._service, "ActiveProfile")
        if not isinstance(profile, str):
            raise SourceError(f"{self._service.name} answered something else than a profile.")
        return profile == "power-saver"


class PlatformSaver:
    """Asks the firmware, where no daemon runs."""

    name = "power profile (firmware)"

    def __init__(self, file: Path = PLATFORM) -> None:
        self._file = file

    def read(self) -> bool | Absent:
        try:
            return self._file.read_text(encoding="ascii", errors="replace").strip() == "low-power"
        except OSError:
            return ABSENT
