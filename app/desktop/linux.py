"""Desktop facts on Linux, from D-Bus and /sys: input idle time, power, battery saver, and programs that keep
the screen awake."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from app.desktop.facts import ABSENT, Absent, SourceError, read_word
from engines import remedy

if TYPE_CHECKING:
    from jeepney.io.blocking import DBusConnection


ANSWER_S = 1.0
"""Seconds to wait for an answer: local services answer within milliseconds unless they hang."""


class Service(msgspec.Struct, frozen=True):
    """The D-Bus address of a service: bus name, object path, interface."""

    name: str
    path: str
    interface: str


class Bus:
    """A D-Bus connection, opened when first used. Not thread-safe. Never starts a service that is not running,
    because reading must not change anything."""

    def __init__(self, kind: Literal["SESSION", "SYSTEM"]) -> None:
        self.kind = kind
        self._connection: DBusConnection | None = None

    def ask(self, service: Service, method: str, signature: str | None = None, *arguments: object) -> object:
        """Calls a method and returns the first value of the answer. Raises SourceError."""
        from jeepney import DBusAddress, MessageFlag, MessageType, new_method_call

        address = DBusAddress(service.path, bus_name=service.name, interface=service.interface)
        question = new_method_call(address, method, signature, arguments)
        question.header.flags |= MessageFlag.no_auto_start
        try:
            answer = self._connected().send_and_get_reply(question, timeout=ANSWER_S)
        except (OSError, EOFError) as error:  # TimeoutError and ConnectionError are OSErrors
            self.close()
            raise SourceError(f"{service.name} didn't answer ({error or type(error).__name__}).") from error
        if answer.header.message_type is MessageType.error:
            why = answer.body[0] if answer.body else "an error without words"
            raise SourceError(f"{service.name} refused to answer ({why}).")
        return answer.body[0] if answer.body else None

    def property(self, service: Service, name: str) -> object:
        """Returns the value of a property. Raises SourceError."""
        asked = Service(service.name, service.path, "org.freedesktop.DBus.Properties")
        value = self.ask(asked, "Get", "ss", service.interface, name)
        if not isinstance(value, tuple) or len(value) != 2:
            raise SourceError(f"{service.name} answered something else than a property.")
        return value[1]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> DBusConnection:
        if self._connection is None:
            try:
                from jeepney.io.blocking import open_dbus_connection
            except ImportError as error:
                raise SourceError(
                    f"The library for D-Bus (jeepney) is missing; {remedy.reinstall_phrase()}."
                ) from error
            try:
                self._connection = open_dbus_connection(self._address(), auth_timeout=ANSWER_S)
            except (OSError, RuntimeError, ValueError) as error:
                raise SourceError(f"There is no {self.kind.lower()} bus to ask ({error}).") from error
        return self._connection

    def _address(self) -> str:
        if self.kind == "SYSTEM" or os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
            return self.kind
        usual = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "bus"
        if not usual.exists():
            raise SourceError("There is no session bus to ask.")
        return f"unix:path={usual}"


def expect_integer(answer: object, service: Service) -> int:
    """Returns the answer as an integer. Raises SourceError if it is not one."""
    if not isinstance(answer, int) or isinstance(answer, bool):
        raise SourceError(f"{service.name} answered something else than a number.")
    return answer


def expect_boolean(answer: object, service: Service) -> bool:
    """Returns the answer as a bool. Raises SourceError if it is not one."""
    if not isinstance(answer, bool):
        raise SourceError(f"{service.name} answered something else than yes or no.")
    return answer


SUPPLIES = Path("/sys/class/power_supply")
_MAINS = ("Mains", "USB", "Wireless")
_STORES = ("Battery", "UPS")
_PLUGGED = ("Charging", "Full", "Not charging")


class LinuxPower:
    """Battery or mains, from the kernel's files."""

    name = "power supply (Linux)"

    def __init__(self, folder: Path = SUPPLIES) -> None:
        self._folder = folder

    def read(self) -> bool | Absent:
        """Returns whether the computer runs on battery. A plugged-in supply means no; otherwise one discharging
        battery means yes. Batteries of mice and headsets (scope "Device") do not count. Raises SourceError if a
        battery does not report its state."""
        try:
            supplies = sorted(self._folder.iterdir())
        except FileNotFoundError:
            return ABSENT  # a kernel without power supplies: a server, a container
        states: list[str] = []
        for supply in supplies:
            kind = read_word(supply / "type")
            if kind in _MAINS and read_word(supply / "online") == "1":
                return False
            if (
                kind in _STORES
                and read_word(supply / "scope") != "Device"
                and read_word(supply / "present") != "0"
            ):
                states.append(read_word(supply / "status"))
        if not states:
            return ABSENT
        if "Discharging" in states:
            return True
        if any(state in _PLUGGED for state in states):
            return False
        raise SourceError("The battery doesn't say whether the computer is plugged in.")


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
    """Reads the power profile that the owner chose, from the daemon under one of its names."""

    name = "power profile (desktop)"

    def __init__(self, bus: Bus, service: Service) -> None:
        self._bus = bus
        self._service = service

    def read(self) -> bool:
        """Returns whether the profile is power-saver. Raises SourceError."""
        profile = self._bus.property(self._service, "ActiveProfile")
        if not isinstance(profile, str):
            raise SourceError(f"{self._service.name} answered something else than a profile.")
        return profile == "power-saver"


class PlatformSaver:
    """Reads the power profile from the firmware, for systems without the daemon."""

    name = "power profile (firmware)"

    def __init__(self, file: Path = PLATFORM) -> None:
        self._file = file

    def read(self) -> bool | Absent:
        try:
            return self._file.read_text(encoding="ascii", errors="replace").strip() == "low-power"
        except OSError:
            return ABSENT


MUTTER = Service(
    "org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor"
)


class MutterIdle:
    """GNOME's own monitor, also under Wayland."""

    name = "input idle time (GNOME's Mutter)"

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def read(self) -> float:
        """Returns the seconds without input. Raises SourceError."""
        return max(0, expect_integer(self._bus.ask(MUTTER, "GetIdletime"), MUTTER)) / 1000


LOGIND = Service("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")


class LogindIdle:
    """The login manager: the last resort, since many desktops never tell it."""

    name = "input idle time (login manager; only as good as the desktop tells it)"

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def read(self) -> float:
        """Returns the seconds without input in any session; 0 until the desktop reports "idle". Raises
        SourceError, also of a desktop that has reported neither yet: it may never."""
        idle = expect_boolean(self._bus.property(LOGIND, "IdleHint"), LOGIND)
        since_us = expect_integer(self._bus.property(LOGIND, "IdleSinceHintMonotonic"), LOGIND)
        if not idle and not since_us:
            raise SourceError("This desktop has never told the system when you're away.")
        if not idle:
            return 0.0
        return max(0.0, time.clock_gettime(time.CLOCK_MONOTONIC) - since_us / 1e6)


GNOME = Service("org.gnome.SessionManager", "/org/gnome/SessionManager", "org.gnome.SessionManager")
_MAKES_IDLE = 8
"""IsInhibited flag for "inhibits marking the session as idle"."""
KDE = Service(
    "org.freedesktop.PowerManagement.Inhibit",
    "/org/freedesktop/PowerManagement/Inhibit",
    "org.freedesktop.PowerManagement.Inhibit",
)


class ScreenAwake:
    """Under Wayland no program may see another's windows. A film player or a presentation keeps the screen
    awake, which is the nearest thing to filling it. `question`: a method of the service that answers yes or no,
    with its signature and arguments."""

    def __init__(self, bus: Bus, service: Service, method: str, *question: Any) -> None:
        self.name = f"program that keeps the screen awake ({service.name})"
        self._bus, self._service, self._method, self._question = bus, service, method, question

    def read(self) -> bool:
        """Returns whether a program keeps the screen awake. Raises SourceError."""
        answer = self._bus.ask(self._service, self._method, *self._question)
        return expect_boolean(answer, self._service)


def awake_sources() -> tuple[ScreenAwake, ScreenAwake]:
    """Returns the sources of GNOME and of KDE."""
    return (
        ScreenAwake(Bus("SESSION"), GNOME, "IsInhibited", "u", _MAKES_IDLE),
        ScreenAwake(Bus("SESSION"), KDE, "HasInhibit"),
    )
