"""Idle time, profiles and inhibitors over D-Bus: a real daemon, and GNOME's real Mutter where there is one."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("D-Bus is asked on Linux only", allow_module_level=True)

from app.desktop import linux as bus_module
from app.desktop.facts import FirstThatAnswers, SourceError
from app.desktop.linux import (
    GNOME,
    KDE,
    LOGIND,
    MUTTER,
    PROFILES,
    Bus,
    LogindIdle,
    MutterIdle,
    ProfileSaver,
    awake_sources,
)
from tests.desktop.bus_stand_in import MessageFlag, StandInBus

PATIENCE_S = 240.0
DAEMON = shutil.which("dbus-daemon")
needs_daemon = pytest.mark.skipif(DAEMON is None, reason="dbus-daemon is not installed")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInBus]:
    """Both buses are this one."""
    assert DAEMON
    bus = StandInBus(DAEMON)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", bus.address)
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.address)
    yield bus
    bus.close()


@needs_daemon
def test_mutters_idle_time(stand_in: StandInBus) -> None:
    stand_in.own(MUTTER.name)
    stand_in.answers[MUTTER.interface, "GetIdletime", ()] = ("t", (133_400,))
    assert MutterIdle(Bus("SESSION")).read() == 133.4
    assert MessageFlag.no_auto_start in stand_in.flags[-1]


@needs_daemon
def test_the_login_managers_idle_time(stand_in: StandInBus) -> None:
    stand_in.own(LOGIND.name)
    idle = LogindIdle(Bus("SYSTEM"))
    stand_in.property(LOGIND.interface, "IdleHint", "b", False)
    stand_in.property(LOGIND.interface, "IdleSinceHintMonotonic", "t", 0)
    with pytest.raises(SourceError, match="never told"):  # KDE's, and whoever starts a compositor alone
        idle.read()
    stand_in.property(LOGIND.interface, "IdleSinceHintMonotonic", "t", 17)
    assert idle.read() == 0.0
    stand_in.property(LOGIND.interface, "IdleHint", "b", True)
    since_us = int((time.clock_gettime(time.CLOCK_MONOTONIC) - 300) * 1e6)
    stand_in.property(LOGIND.interface, "IdleSinceHintMonotonic", "t", since_us)
    assert idle.read() == pytest.approx(300, abs=20)


@needs_daemon
@pytest.mark.parametrize(("profile", "saver"), [("power-saver", True), ("balanced", False)])
def test_the_power_profile_under_the_daemons_old_name(stand_in: StandInBus, profile: str, saver: bool) -> None:
    old = PROFILES[1]
    stand_in.own(old.name)
    stand_in.property(old.interface, "ActiveProfile", "s", profile)
    bus = Bus("SYSTEM")
    assert FirstThatAnswers(*(ProfileSaver(bus, service) for service in PROFILES)).read() is saver


@needs_daemon
def test_programs_that_keep_the_screen_awake(stand_in: StandInBus) -> None:
    stand_in.own(GNOME.name, KDE.name)
    for kept in (True, False):
        stand_in.answers[GNOME.interface, "IsInhibited", (8,)] = ("b", (kept,))
        stand_in.answers[KDE.interface, "HasInhibit", ()] = ("b", (kept,))
        assert [one.read() for one in awake_sources()] == [kept, kept]


@needs_daemon
def test_a_service_that_is_missing_refuses_or_talks_nonsense(stand_in: StandInBus) -> None:
    idle = MutterIdle(Bus("SESSION"))
    with pytest.raises(SourceError, match="refused"):
        idle.read()
    stand_in.own(MUTTER.name)
    with pytest.raises(SourceError, match="No GetIdletime here"):
        idle.read()
    for nonsense in (("s", ("soon",)), ("b", (True,)), ("", ())):
        stand_in.answers[MUTTER.interface, "GetIdletime", ()] = nonsense
        with pytest.raises(SourceError, match="something else than a number"):
            idle.read()
    stand_in.answers[MUTTER.interface, "GetIdletime", ()] = ("t", (5_000,))
    assert idle.read() == 5.0


@needs_daemon
def test_a_service_that_hangs_is_given_up(stand_in: StandInBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "ANSWER_S", 0.2)
    stand_in.own(MUTTER.name)
    stand_in.answers[MUTTER.interface, "GetIdletime", ()] = None
    idle = MutterIdle(Bus("SESSION"))
    with pytest.raises(SourceError, match="didn't answer"):
        idle.read()
    stand_in.answers[MUTTER.interface, "GetIdletime", ()] = ("t", (5_000,))
    monkeypatch.setattr(bus_module, "ANSWER_S", PATIENCE_S)
    assert idle.read() == 5.0


@needs_daemon
def test_a_bus_that_goes_away_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DAEMON
    idle = MutterIdle(Bus("SESSION"))
    for _ in range(2):
        bus = StandInBus(DAEMON)
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", bus.address)
        bus.own(MUTTER.name)
        bus.answers[MUTTER.interface, "GetIdletime", ()] = ("t", (5_000,))
        assert idle.read() == 5.0
        bus.close()
        with pytest.raises(SourceError):
            idle.read()


@pytest.mark.parametrize("address", ["", "unix:path=/nowhere/bus", "tcp:host=localhost,port=1", "nonsense"])
def test_no_bus_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(SourceError, match="no session bus"):
        MutterIdle(Bus("SESSION")).read()
