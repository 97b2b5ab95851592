"""The estimate of watts, from processor seconds and a clock that are given."""

from __future__ import annotations

import os

import pytest

from app.desktop import energy
from app.desktop.energy import CORE_W, PowerEstimate


def test_watts_follow_busy_cores_as_a_running_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"at": 0.0, "spent": 10.0}
    monkeypatch.setattr(energy, "_processor_s", lambda pid: now["spent"])
    power = PowerEstimate(own=lambda: {1, 2}, clock=lambda: now["at"])
    now |= {"at": 5.0, "spent": 15.0}  # each of two processes was busy all the time
    assert power.read() == round(0.3 * 2 * CORE_W, 1) == 4.8
    now |= {"at": 10.0, "spent": 20.0}
    assert power.read() == 8.0, "whole ones above 5: 0.3 x 16 + 0.7 x 4.8 is 8.16"
    now["at"] = 1000.0
    for _ in range(20):
        now["at"] += 5
        last = power.read()
    assert last == 0.0, "idle"


def test_a_real_process_and_one_that_has_ended() -> None:
    assert energy._processor_s(os.getpid()) > 0 and energy._processor_s(2**22 + 1) == 0.0
