"""Joules: counters that start over, our share of them, and the estimate where there are none."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from app.desktop import energy
from app.desktop.energy import CORE_W, EnergyMeter, GpuCounters, processor_counters
from app.desktop.nvidia import GpuPower, Nvml


def powercap(folder: Path, microjoules: dict[str, int]) -> Path:
    for name, value in microjoules.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "energy_uj").write_text(f"{value}\n")
        (folder / name / "max_energy_range_uj").write_text("1000000000\n")
    return folder


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What the processor did, in seconds, and what we did of it."""
    now = {"all": 100.0, "ours": 10.0}
    times = SimpleNamespace(idle=0.0)
    monkeypatch.setattr(energy.psutil, "cpu_times", lambda: _Times(now["all"], times))
    monkeypatch.setattr(energy, "_spent_s", lambda pid: now["ours"])
    return now


class _Times(tuple[float, ...]):
    idle = 0.0

    def __new__(cls, everything: float, _: object) -> Any:
        return super().__new__(cls, (everything,))


def meter(folder: Path, cards: GpuCounters | None = None) -> EnergyMeter:
    return EnergyMeter(processor_counters(folder), cards, own=lambda: {os.getpid()})


def test_whole_packages_are_shared_out_by_processor_time(tmp_path: Path, busy: dict[str, float]) -> None:
    counted = {"intel-rapl:0": 5_000_000, "intel-rapl:0:0": 1_000_000, "intel-rapl:1": 999_000_000}
    made = meter(powercap(tmp_path, counted))
    busy.update(all=104.0, ours=11.0)
    powercap(tmp_path, {"intel-rapl:0": 45_000_000, "intel-rapl:0:0": 900_000_000, "intel-rapl:1": 3_000_000})
    reading = made.read()
    assert reading.measured, "40 J, and 4 J of a counter that started over; the part is in the whole"
    assert reading.joules == pytest.approx(44.0 / 4)


def test_without_a_counter_it_is_an_estimate(tmp_path: Path, busy: dict[str, float]) -> None:
    made = meter(tmp_path)
    busy.update(all=110.0, ours=13.0)
    assert made.read() == (3.0 * CORE_W, False)
    unreadable = powercap(tmp_path, {"intel-rapl:0": 1})
    (unreadable / "intel-rapl:0" / "energy_uj").write_text("permission denied")
    assert processor_counters(unreadable) == []


def test_a_counter_that_is_taken_away_leaves_the_estimate(tmp_path: Path, busy: dict[str, float]) -> None:
    made = meter(powercap(tmp_path, {"intel-rapl:0": 5_000_000}))
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    busy.update(all=110.0, ours=12.0)
    assert made.read() == (2.0 * CORE_W, False)


def test_a_card_counts_while_we_compute_on_it(tmp_path: Path, busy: dict[str, float]) -> None:
    spent, users = {"mJ": 1_000_000.0}, [os.getpid()]
    library = SimpleNamespace(
        NVMLError=OSError,
        nvmlDeviceGetTotalEnergyConsumption=lambda card: spent["mJ"],
        nvmlDeviceGetComputeRunningProcesses=lambda card: [SimpleNamespace(pid=one) for one in users],
    )
    nvml = cast(Nvml, SimpleNamespace(open_cards=lambda: (["card"], library)))
    made = meter(tmp_path, GpuCounters(nvml, lambda: GpuPower(dynamic=False, asleep=False)))
    busy.update(all=101.0, ours=11.0)
    made.read()
    busy.update(all=103.0, ours=12.0)
    spent["mJ"] += 90_000.0
    assert made.read() == (pytest.approx(CORE_W + 90.0), False)
    users[:] = []
    busy.update(all=105.0, ours=13.0)
    spent["mJ"] += 90_000.0
    assert made.read() == (pytest.approx(CORE_W), False), "others compute on the card"


def test_this_computer_gives_a_figure() -> None:
    made = EnergyMeter()
    before = psutil.Process().cpu_times().user
    while psutil.Process().cpu_times().user - before < 0.2:
        sum(range(10_000))
    assert made.read().joules > 0.0
