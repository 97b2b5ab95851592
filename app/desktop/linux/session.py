"""What a Linux session tells over its message bus: input idle time, and programs that keep the screen awake."""

from __future__ import annotations

import time

from app.desktop.linux.bus import Bus, Service, number, truth

# Input idle time on GNOME, also under Wayland: Mutter's own monitor.

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


# Input idle time as the login manager knows it: the last resort, since many desktops never tell it.

LOGIND = Service("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")


class LogindIdle:
    name = "input idle time (login manager; only as good as the desktop tells it)"

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def read(self) -> float:
        """Seconds without input in any session, 0 until the desktop has said "idle". Raises SourceError."""
        if not truth(self._bus.property(LOGIND, "IdleHint"), LOGIND):
            return 0.0
        since_us = number(self._bus.property(LOGIND, "IdleSinceHintMonotonic"), LOGIND)
        return max(0.0, time.clock_gettime(time.CLOCK_MONOTONIC) - since_us / 1e6)


# Whether a program keeps the screen awake, as film players and presentations do. Under Wayland no program may
# see another's windows, so this is the nearest thing to "something fills the screen".

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
