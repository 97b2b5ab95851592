"""Input idle time as the login manager knows it: the last resort, since many desktops never tell it."""

from __future__ import annotations

import time

from app.desktop.linux.bus import Bus, Service, number, truth

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
