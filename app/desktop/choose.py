"""Chooses the source of each desktop fact on this system, once, from the platform and the session's environment
variables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from app.desktop.facts import ABSENT, FactSource, FirstThatAnswers, NoSource
from app.desktop.linux import (
    PROFILES,
    Bus,
    LinuxPower,
    LogindIdle,
    MutterIdle,
    PlatformSaver,
    ProfileSaver,
    awake_sources,
)
from app.desktop.login import Autostart, AutostartError
from app.desktop.macos import MacHeat, MacIdle, MacSaver
from app.desktop.nvidia import GpuOfOthers, Nvml
from app.desktop.sensors import CpuOfOthers, MemoryFree, MemoryStalled, PsutilPower, Temperature
from app.desktop.wayland import WaylandIdle
from app.desktop.windows import WindowsIdle, WindowsSaver, WindowsScreen
from app.desktop.x11 import X11Idle, X11Screen


def sources(platform: str, environment: Mapping[str, str]) -> dict[str, FactSource]:
    """Returns one source for every field of DesktopFacts; `platform` is sys.platform. Nothing is read yet.

    Every source is read from its own thread, so each gets its own D-Bus and X connection."""
    nvml = Nvml()
    found: dict[str, FactSource] = {
        "cpu_others": CpuOfOthers(),
        "gpu_others": GpuOfOthers(nvml),
        "memory_free": MemoryFree(),
        "temperature_c": Temperature(nvml),
        "memory_stalled": NoSource("memory pressure", "Only Linux tells it.", absent=True),
        "too_hot": NoSource("thermal state", "Only macOS tells it.", absent=True),
    }
    if platform == "win32":
        return found | {
            "idle_s": WindowsIdle(),
            "on_battery": PsutilPower(),
            "saver": WindowsSaver(),
            "full_screen": WindowsScreen(),
        }
    if platform == "darwin":
        return found | {
            "idle_s": MacIdle(),
            "on_battery": PsutilPower(),
            "saver": MacSaver(),
            "full_screen": NoSource("full-screen program", "macOS tells no program about others.", absent=True),
            "too_hot": MacHeat(),
        }
    return found | {
        "idle_s": _linux_idle(environment),
        "on_battery": LinuxPower(),
        "saver": _linux_saver(),
        "full_screen": _linux_screen(environment),
        "memory_stalled": MemoryStalled(),
    }


def session(environment: Mapping[str, str]) -> str:
    """Returns the kind of session: "wayland", "x11" or "none" (a text console, a service, a remote login).

    Wayland is tested first, because an X server also runs there and gives a wrong idle time or none. A
    session started by startx has the type "tty" and a local DISPLAY."""
    kind = environment.get("XDG_SESSION_TYPE", "")
    if kind == "wayland" or environment.get("WAYLAND_DISPLAY"):
        return "wayland"
    if kind == "x11" or environment.get("DISPLAY", "").startswith(":"):
        return "x11" if environment.get("DISPLAY") else "none"
    return "none"


def _linux_idle(environment: Mapping[str, str]) -> FactSource:
    match session(environment):
        case "x11":
            return FirstThatAnswers(X11Idle(environment["DISPLAY"]), MutterIdle(Bus("SESSION")))
        case "wayland":
            return FirstThatAnswers(
                MutterIdle(Bus("SESSION")), WaylandIdle(environment), LogindIdle(Bus("SYSTEM"))
            )
        case _:
            return LogindIdle(Bus("SYSTEM"))


def _linux_screen(environment: Mapping[str, str]) -> FactSource:
    match session(environment):
        case "x11":
            return X11Screen(environment["DISPLAY"])
        case "wayland":
            return FirstThatAnswers(*awake_sources(), otherwise=ABSENT)
        case _:
            return NoSource("full-screen program", "There is no screen.", absent=True)


def _linux_saver() -> FactSource:
    bus = Bus("SYSTEM")
    return FirstThatAnswers(*(ProfileSaver(bus, service) for service in PROFILES), PlatformSaver())


class NoAutostart:
    """Null version for a system without a known way to start programs at login."""

    where = ""

    def command(self) -> list[str] | None:
        return None

    def turn_on(self, command: Sequence[str]) -> None:
        raise AutostartError("Shoal doesn't know how to start at login on this system; add it to its settings.")

    def turn_off(self) -> None:
        pass


def autostart(platform: str = sys.platform) -> Autostart:
    """Returns the class that handles starting at login on this system."""
    if platform == "win32":
        from app.desktop.login import WindowsAutostart

        return WindowsAutostart()
    if platform == "darwin":
        from app.desktop.login import MacAutostart

        return MacAutostart()
    if platform.startswith("linux"):
        from app.desktop.login import LinuxAutostart

        return LinuxAutostart()
    return NoAutostart()
