"""Energy and its limit: a month's figures, money by the owner's price, and the stop with its reason."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from app.common import files
from app.desktop.energy import ESTIMATED, EnergyReading, Meter
from app.node import governing
from app.node.record.reasons import Reason
from app.node.rules.energy import FILE, KWH, Purse, Used
from tests.node.bench import Bench
from tests.node.ruled import ruled
from tests.node.rules.test_rules import CALM, at, wishes

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def test_days_and_months_are_counted_apart_and_outlive_the_node(tmp_path: Path) -> None:
    purse = Purse(tmp_path)
    purse.add(1.5 * KWH, 5.0, ESTIMATED, NOW)
    purse.save()
    again = Purse(tmp_path)
    view = again.view(30, "€", NOW)
    assert (view.today_kwh, view.month_kwh, view.money, view.about) == (1.5, 1.5, "0.45 €", ESTIMATED)
    assert again.view(30, "€", NOW.replace(day=24)).today_kwh == 0.0
    december = NOW.replace(month=12, day=1)
    assert again.view(30, "€", december).month_kwh == 0.0 and again.left_kwh(1, december) == 1.0
    assert again.left_kwh(1, NOW) == -0.5 and again.left_kwh(0, NOW) is None
    assert again.view(0, "€", NOW).money == "", "no price, no money"


def test_a_damaged_file_is_set_aside_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    purse = Purse(tmp_path)
    assert "energy.json" in purse.complaint and purse.view(0, "€", NOW).month_kwh == 0.0


def test_the_limit_is_an_obstacle_that_ends_with_the_month_and_yields_to_the_owners_word() -> None:
    from app.node.rules.orders import Orders, Snooze
    from app.node.rules.rules import decide

    spent = wishes(energy_cap_kwh=2, energy_left_kwh=-0.01)
    found = decide(at(0), CALM, spent, None)
    assert not found.run and found.reason is Reason.ENERGY
    assert found.sentence == "This month's limit of 2 kWh is reached. Starts again 1 Dec."
    assert found.until == datetime(2026, 12, 1, tzinfo=UTC).timestamp()
    assert decide(at(0), CALM, wishes(energy_cap_kwh=2, energy_left_kwh=0.01), None).reason is not Reason.ENERGY
    wall = at(0).wall
    insisting = msgspec.structs.replace(spent, orders=Orders(insisted=Snooze(wall, wall + 600)))
    assert decide(at(0), CALM, insisting, None).run


def test_a_running_node_stops_at_its_limit_and_says_why(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(governing, "PERIOD_S", 0.02)
    monkeypatch.setattr(governing, "METER_S", 0.02)
    files.write_json(bench.home / "settings.json", {"idle_s": 1, "energy_cap_kwh": 1, "energy_price": 40})
    joules = [0.0]

    monkeypatch.setattr(Meter, "read", lambda self, seconds: EnergyReading(joules[0], ESTIMATED))

    async def script() -> None:
        async with ruled(bench) as run:
            await run.another_round()
            joules[0] = 0.3 * KWH
            await run.paused()
            ruling = run.node.snapshot.ruling
            assert ruling is not None and ruling.reason == "energy" and "1 kWh" in ruling.sentence
            assert ruling.energy is not None and ruling.energy.month_kwh >= 1.0

    asyncio.run(script())
    kept = files.read_json(bench.home / FILE, Used)
    assert kept is not None and kept.joules >= KWH
