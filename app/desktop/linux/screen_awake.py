"""Whether a program keeps the screen awake, as film players and presentations do.

Under Wayland no program may see another's windows, so this is the nearest thing to "something fills the
screen".
"""

from __future__ import annotations

from app.desktop.linux.bus import Bus, Service, truth

GNOME = Service("org.gnome.SessionManager", "/org/gnome/SessionManager", "org.gnome.SessionManager")
_MAKES_IDLE = 8
"""Flag of IsInhibited: marking the session as idle."""
KDE = Service(
    "org.freedesktop.PowerManagement.Inhibit",
    "/org/freedesktop/PowerManagement/Inhibit",
    "org.freedesktop.PowerManagement.Inhibit",
)


class GnomeAwake:
    name = "program that keeps the screen awake (GNOME)"

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def read(self) -> bool:
        """Raises SourceError."""
        return truth(self._bus.ask(GNOME, "IsInhibited", "u", _MAKES_IDLE), GNOME)


class KdeAwake:
    name = "program that keeps the screen awake (KDE)"

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def read(self) -> bool:
        """Raises SourceError."""
        return truth(self._bus.ask(KDE, "HasInhibit"), KDE)
