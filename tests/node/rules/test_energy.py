"""A month's energy: added up, kept, and told as measured only where all of it is. A home of a version that also
had a limit and a price opens."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.common import files
from app.desktop.energy import EnergyMeter, EnergyReading
from app.node import governing
from app.node.rules.energy import FILE, JOULES_PER_KWH, EnergyRecord, MonthEnergy
from app.node.rules.orders import Moment
from tests.node.bench import Bench
from tests.node.ruled import ruled

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def test_a_month_outlives_the_node_and_ends(tmp_path: Path) -> None:
    record = EnergyRecord(tmp_path)
    record.add(EnergyReading(1.5 * JOULES_PER_KWH, True), 5.0, NOW)
    record.save()
    again = EnergyRecord(tmp_path)
    assert (again.view(NOW).month_kwh, again.view(NOW).measured) == (1.5, True)
    december = NOW.replace(month=12, day=1)
    assert again.view(december).month_kwh == 0.0
    again.add(EnergyReading(JOULES_PER_KWH, True), 5.0, december)
    assert again.view(december).month_kwh == 1.0


def test_one_estimate_makes_the_month_an_estimate(tmp_path: Path) -> None:
    record = EnergyRecord(tmp_path)
    for measured, whole in ((True, True), (False, False), (True, False)):
        record.add(EnergyReading(JOULES_PER_KWH, measured), 5.0, NOW)
        assert record.view(NOW).measured is whole
    december = NOW.replace(month=12)
    record.add(EnergyReading(JOULES_PER_KWH, True), 5.0, december)
    assert record.view(december).measured


def test_a_damaged_file_is_set_aside_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    record = EnergyRecord(tmp_path)
    assert "energy.json" in record.complaint and record.view(NOW).month_kwh == 0.0


def test_a_home_with_a_limit_and_a_price_opens_and_learns(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files as the versions before wrote them: the limit is long reached, and no longer in the way."""
    monkeypatch.setattr(governing, "PERIOD_S", 0.02)
    monkeypatch.setattr(governing, "METER_S", 0.02)
    monkeypatch.setattr(EnergyMeter, "read", lambda self: EnergyReading(0.001 * JOULES_PER_KWH, True))
    old = {"idle_s": 1, "energy_cap_kwh": 1, "energy_price": 40, "energy_currency": "$"}
    files.write_json(bench.home / "settings.json", old)
    today = Moment.now().local
    day = {"day": today.date().isoformat(), "day_joules": 1e6, "about": "An estimate."}
    files.write_json(
        bench.home / FILE, {"version": 1, "month": f"{today:%Y-%m}", "joules": 2 * JOULES_PER_KWH, **day}
    )

    async def script() -> None:
        async with ruled(bench) as run:
            await run.another_round()
            ruling = run.node.snapshot.ruling
            assert ruling is not None and ruling.run
            assert ruling.energy is not None and ruling.energy.month_kwh >= 2.0 and not ruling.energy.measured

    asyncio.run(script())
    kept = files.read_json(bench.home / FILE, MonthEnergy)
    assert kept is not None and kept.joules > 2 * JOULES_PER_KWH
    assert not list(bench.home.glob("damaged-*"))
