"""Input idle time on GNOME, also under Wayland: Mutter's own monitor."""

from __future__ import annotations

from app.desktop.linux.bus import Bus, Service, number

MUTTER = Service(
    "org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor"
)


class MutterIdle:
    name = "input idle time (GNOME's Mutter)"

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def read(self) -> float:
        """Seconds without input. Raises SourceError."""
        return max(0, number(self._bus.ask(MUTTER, "GetIdletime"), MUTTER)) / 1000
