from __future__ import annotations

from app.relay.presence import GroupsPerHour


def test_an_hour_forgets_minute_by_minute_and_stays_small() -> None:
    now = 0.0
    hour = GroupsPerHour(lambda: now)
    for minute in range(200):
        now = 60.0 * minute
        hour.note("gcd")
        hour.note("lcm", age_s=600)
    assert hour.totals() == {"gcd": 60, "lcm": 50}
    assert len(hour._minutes) <= 61
    now += 1800
    assert hour.totals() == {"gcd": 30, "lcm": 20}
    now += 86_400
    assert hour.totals() == {}
    hour.note("gcd")
    assert hour.totals() == {"gcd": 1} and len(hour._minutes) == 1
