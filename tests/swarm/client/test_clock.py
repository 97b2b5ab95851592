"""The corrected clock, against relays that lie about the time and owners that set theirs."""

from __future__ import annotations

from app.swarm.client.clock import RelayClock, steady_ms

HOUR_MS = 3_600_000


class Computer:
    """Its two clocks."""

    wall, steady = 1_800_000_000_000, 5_000

    def clock(self) -> RelayClock:
        return RelayClock(lambda: self.wall, lambda: self.steady)

    def passes(self, ms: int) -> None:
        self.wall += ms
        self.steady += ms


def test_until_a_relay_was_heard_the_computers_own_time_counts() -> None:
    computer = Computer()
    clock = computer.clock()
    assert (clock.now_ms(), clock.offset_ms) == (computer.wall, 0)
    computer.wall += HOUR_MS
    assert clock.now_ms() == computer.wall


def test_a_clock_that_is_set_changes_nothing() -> None:
    computer = Computer()
    clock = computer.clock()
    told = computer.wall + 2_000
    clock.record_time(told)
    computer.passes(60_000)
    for jump in (-HOUR_MS, 3 * HOUR_MS):
        computer.wall += jump
        assert clock.now_ms() == told + 60_000
        clock.record_time(told + 60_000)
        assert clock.now_ms() == told + 60_000
    assert clock.offset_ms == 2_000 - 2 * HOUR_MS


def test_one_relay_that_is_wrong_once_is_outvoted_and_another_relay_begins_anew() -> None:
    computer = Computer()
    clock = computer.clock()
    for off in (0, 10, 9 * HOUR_MS):
        clock.record_time(computer.wall + off)
    assert clock.now_ms() == computer.wall + 10
    clock.forget()
    clock.record_time(computer.wall + HOUR_MS)
    assert clock.now_ms() == computer.wall + HOUR_MS


def test_the_steady_clock_does_not_go_back() -> None:
    seen = [steady_ms() for _ in range(1000)]
    assert seen == sorted(seen) and seen[0] > 0
