"""Battery saver on Linux: the power profile that the owner chose in the desktop's settings."""

from __future__ import annotations

from pathlib import Path

from app.desktop.facts.facts import ABSENT, Absent, SourceError
from app.desktop.linux.bus import Bus, Service

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
