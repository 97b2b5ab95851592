"""Windows, macOS and NVIDIA cards: the arithmetic and the decisions, with stand-ins for the systems' libraries.

None of these sources has run on its own system yet; these tests are about what they do with the answers.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from app.desktop.facts import ABSENT, SourceError
from app.desktop.macos import MacIdle
from app.desktop.nvidia import GpuOfOthers, GpuPower, Nvml, card_power
from app.desktop.sensors import PsutilPower, Temperature
from app.desktop.windows import WindowsIdle, WindowsSaver, WindowsScreen, elapsed_ms


class Windows:
    """user32, kernel32 and shell32 in one. They get pointers, as the real ones do."""

    def __init__(self, **answers: int) -> None:
        self.answers = answers

    def GetLastInputInfo(self, pointer: Any) -> int:
        assert pointer._obj.cbSize == 8
        pointer._obj.dwTime = self.answers["input"]
        return self.answers.get("ok", 1)

    def GetTickCount(self) -> int:
        return self.answers["tick"]

    def GetSystemPowerStatus(self, pointer: Any) -> int:
        pointer._obj.SystemStatusFlag = self.answers["saver"]
        return self.answers.get("ok", 1)

    def SHQueryUserNotificationState(self, pointer: Any) -> int:
        pointer._obj.value = self.answers["screen"]
        return self.answers.get("failed", 0)


@pytest.mark.parametrize(
    ("tick", "last", "seconds"),
    [
        (10_000, 4_000, 6.0),
        (500, 2**32 - 1_500, 2.0),  # the counter began anew between
        (-2_000, 2**32 - 5_000, 3.0),  # ctypes' own idea of a 32-bit result
        (1_000, 1_010, 0.0),  # input between the two questions
    ],
)
def test_windows_idle_time_survives_the_counters_end(tick: int, last: int, seconds: float) -> None:
    windows = Windows(tick=tick, input=last)
    assert WindowsIdle(windows, windows).read() == seconds
    assert elapsed_ms(tick % 2**32, last) == seconds * 1000


def test_windows_that_says_nothing_is_an_error() -> None:
    silent = Windows(ok=0, failed=-2147467259, input=0, tick=0, saver=0, screen=0)
    for source in (WindowsIdle(silent, silent), WindowsSaver(silent), WindowsScreen(silent)):
        with pytest.raises(SourceError, match="Windows didn't tell"):
            source.read()


@pytest.mark.parametrize(
    ("state", "filled"), [(1, False), (2, True), (3, True), (4, True), (5, False), (6, False), (7, False)]
)
def test_windows_full_screen_states(state: int, filled: bool) -> None:
    assert WindowsScreen(Windows(screen=state)).read() is filled


@pytest.mark.parametrize("seconds", [0.0, 12.5])
def test_macs_idle_time(seconds: float) -> None:
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int32, ctypes.c_uint32)
    asked: list[tuple[int, int]] = []

    def answer(state: int, kind: int) -> float:
        asked.append((state, kind))
        return seconds

    assert MacIdle(SimpleNamespace(CGEventSourceSecondsSinceLastEventType=function(answer))).read() == seconds
    assert asked == [(1, 0xFFFFFFFF)]


@pytest.mark.parametrize(("battery", "expected"), [(None, ABSENT), (True, False), (False, True)])
def test_psutils_battery(monkeypatch: pytest.MonkeyPatch, battery: bool | None, expected: object) -> None:
    found = None if battery is None else SimpleNamespace(power_plugged=battery)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: found, raising=False)
    assert PsutilPower().read() is expected


def test_a_battery_that_does_not_say_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "sensors_battery", lambda: SimpleNamespace(power_plugged=None), raising=False)
    with pytest.raises(SourceError):
        PsutilPower().read()


class Trouble(Exception):
    value = 999


class NotFound(Trouble):
    pass


class NotSupported(Trouble):
    pass


class Nothing(Trouble):
    value = 0


class Cards:
    """Stands in for pynvml: cards as lists of (process, percent)."""

    NVMLError, NVMLError_NotFound, NVMLError_NotSupported = Trouble, NotFound, NotSupported
    NVML_SUCCESS, NVML_TEMPERATURE_GPU = 0, 0

    def __init__(self, *users: list[tuple[int, int]], trouble: Trouble | None = None) -> None:
        self.users = users
        self.trouble = trouble
        self.opened = 0
        self.down = False

    def nvmlInit(self) -> None:
        if self.down:
            raise Trouble("no driver")
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.users)

    def nvmlDeviceGetHandleByIndex(self, place: int) -> int:
        return place

    def nvmlDeviceGetUtilizationRates(self, card: int) -> Any:
        return SimpleNamespace(gpu=min(100, sum(percent for _, percent in self.users[card])))

    def nvmlDeviceGetProcessUtilization(self, card: int, since: int) -> list[Any]:
        if self.trouble:
            raise self.trouble
        return [SimpleNamespace(pid=pid, smUtil=load, timeStamp=since + 1) for pid, load in self.users[card]]

    def nvmlDeviceGetComputeRunningProcesses(self, card: int) -> list[Any]:
        return [SimpleNamespace(pid=pid) for pid, _ in self.users[card]]

    def nvmlDeviceGetTemperature(self, card: int, sensor: int) -> int:
        return 60 + card


AWAKE = GpuPower(dynamic=False, asleep=False)


def of_others(cards: Cards, own: set[int]) -> float | object:
    return GpuOfOthers(Nvml(cards, lambda: True, lambda: AWAKE), lambda: own).read()


def test_the_busiest_card_counts_and_our_own_work_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "pid_exists", lambda pid: pid < 1000)
    assert of_others(Cards([(7, 90)], [(7, 40), (8, 35)]), own={7}) == 0.35
    assert of_others(Cards([(7, 90)]), own={7}) == 0.0
    assert of_others(Cards([(7, 20), (5000, 50)]), own=set()) == 0.2  # 5000 has ended
    assert of_others(Cards([]), own=set()) == 0.0


def test_a_card_that_does_not_tell_its_users_apart() -> None:
    assert of_others(Cards([(8, 70)], trouble=NotSupported()), own={7}) == 0.7
    with pytest.raises(SourceError, match="apart"):
        of_others(Cards([(8, 30), (7, 40)], trouble=NotSupported()), own={7})
    assert of_others(Cards([(8, 30)], trouble=NotFound()), own=set()) == 0.0
    assert of_others(Cards([(8, 30)], trouble=Nothing()), own=set()) == 0.0
    with pytest.raises(SourceError, match="doesn't answer"):
        of_others(Cards([(8, 30)], trouble=Trouble()), own=set())


def test_no_card_is_absent_and_one_that_cannot_be_asked_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert GpuOfOthers(Nvml(present=lambda: False)).read() is ABSENT
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    with pytest.raises(SourceError, match="nvidia-ml-py"):
        GpuOfOthers(Nvml(present=lambda: True, power=lambda: AWAKE)).read()
    broken = Cards([])
    broken.down = True
    with pytest.raises(SourceError, match="driver doesn't answer"):
        of_others(broken, set())


def test_a_laptops_card_is_left_to_sleep() -> None:
    cards, now, power = Cards([(8, 0)]), [0.0], [GpuPower(dynamic=True, asleep=False)]
    nvml = Nvml(cards, lambda: True, lambda: power[0], lambda: now[0])
    load, heat = GpuOfOthers(nvml, set), Temperature(nvml)
    assert load.read() == 0.0 and cards.opened == 0  # closed as soon as it is idle
    cards.users = ([(8, 80)],)
    assert load.read() == 0.0 and cards.opened == 0  # not looked at for a while, so that it can fall asleep
    now[0] = 31.0
    power[0] = GpuPower(dynamic=True, asleep=True)
    assert load.read() == 0.0 and heat.read() in (ABSENT, heat.read()) and cards.opened == 0
    power[0] = GpuPower(dynamic=True, asleep=False)
    load.read()
    assert cards.opened == 1
    assert isinstance(degrees := heat.read(), float) and degrees >= 60
    power[0] = GpuPower(dynamic=True, asleep=True)
    load.read()
    assert cards.opened == 0


def test_how_cards_sleep_is_read_without_waking_them(tmp_path: Path) -> None:
    assert card_power(tmp_path / "none") == GpuPower(False, False)
    for bus, control, status in (("0000:01:00.0", "auto", "suspended"), ("0000:02:00.0", "on", "active")):
        folder = tmp_path / bus / "power"
        folder.mkdir(parents=True)
        (folder / "control").write_text(control + "\n")
        (folder / "runtime_status").write_text(status + "\n")
    assert card_power(tmp_path) == GpuPower(dynamic=True, asleep=False)
    (tmp_path / "0000:02:00.0" / "power" / "runtime_status").write_text("suspended\n")
    assert card_power(tmp_path) == GpuPower(dynamic=True, asleep=True)
