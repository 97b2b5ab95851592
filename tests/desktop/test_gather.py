"""All facts at once: sources that hang, fail and come back, and what a reading costs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.desktop import DesktopFacts, Gatherer
from app.desktop.choose import session, sources
from app.desktop.facts import ABSENT, FACT_NAMES, FirstThatAnswers, SourceError

PATIENCE_S = 240.0


class Played:
    """A source whose answers the test gives: a value, an error to raise, or an event to wait for first."""

    def __init__(self, name: str, answer: Any) -> None:
        self.name = name
        self.answer = answer
        self.asked = 0

    def read(self) -> Any:
        self.asked += 1
        answer = self.answer
        if isinstance(answer, threading.Event):
            answer.wait(PATIENCE_S)
            answer = self.answer
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


class Desk:
    def __init__(self, **answers: Any) -> None:
        self.clock = Clock()
        self.told: list[str] = []
        self.sources = {field: Played(field, answer) for field, answer in answers.items()}
        self.gatherer = Gatherer(self.told.append, self.sources, self.clock)

    def until(self, holds: Callable[[DesktopFacts], bool], step_s: float = 0.0) -> DesktopFacts:
        """Gathers until it holds; the desk's clock goes on by `step_s` between two looks."""
        end = time.monotonic() + PATIENCE_S
        while not holds(facts := self.gatherer.gather()):
            assert time.monotonic() < end, facts
            self.clock.seconds += step_s
            time.sleep(0.005)
        return facts


@pytest.fixture
def desk() -> Iterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def make(**answers: Any) -> Desk:
        desks.append(Desk(**answers))
        return desks[-1]

    yield make
    for one in desks:
        one.gatherer.close()


def test_the_first_facts_are_unknown_and_the_start_waits_for_all(desk: Callable[..., Desk]) -> None:
    one = desk(idle_s=12.5, on_battery=ABSENT, full_screen=False)
    assert one.gatherer.gather() == DesktopFacts()
    one.gatherer.start(PATIENCE_S)
    assert one.gatherer.gather() == DesktopFacts(
        idle_s=12.5, full_screen=False, absent=frozenset({"on_battery"})
    )


def test_a_source_is_asked_once_a_period(desk: Callable[..., Desk]) -> None:
    one = desk(idle_s=1.0)
    one.gatherer.start(PATIENCE_S)
    for _ in range(20):
        one.gatherer.gather()
    assert one.sources["idle_s"].asked == 1
    one.sources["idle_s"].answer = 2.0
    one.clock.seconds += 1.0
    one.until(lambda facts: facts.idle_s == 2.0)


def test_a_source_that_hangs_is_unknown_and_nobody_waits_for_it(desk: Callable[..., Desk]) -> None:
    one = desk(idle_s=1.0)
    one.gatherer.start(PATIENCE_S)
    held = threading.Event()
    one.sources["idle_s"].answer = held
    one.clock.seconds += 1.0
    one.gatherer.gather()
    one.clock.seconds += 2.0
    assert one.gatherer.gather().idle_s == 1.0  # it may still answer in time
    one.clock.seconds += 7.0
    assert one.gatherer.gather().idle_s == 1.0, "one late answer on a busy computer costs no lesson"
    one.clock.seconds += 2.0
    began = one.sources["idle_s"].asked
    facts = one.gatherer.gather()
    assert facts.idle_s is None and facts.unknown("idle_s")
    for _ in range(5):
        one.clock.seconds += 3.0
        one.gatherer.gather()
    assert one.sources["idle_s"].asked == began  # one thread hangs, not six
    assert one.told == [], "on a busy computer every source is late now and then"
    one.clock.seconds += 60.0
    one.gatherer.gather()
    one.gatherer.gather()
    assert one.told == ["Shoal can't find out the idle_s: It hasn't answered for 60 s."]
    one.sources["idle_s"].answer = 7.0
    held.set()
    one.until(lambda facts: facts.idle_s == 7.0)


@pytest.mark.parametrize("error", [SourceError("It is broken."), ZeroDivisionError("It is broken.")])
def test_an_error_is_unknown_told_once_and_over_when_it_is_over(
    desk: Callable[..., Desk], error: Exception
) -> None:
    one = desk(full_screen=error)
    one.gatherer.start(PATIENCE_S)
    one.until(lambda facts: one.sources["full_screen"].asked > 3, step_s=1.0)
    assert len(one.told) == 1 and "It is broken." in one.told[0]
    (row,) = one.gatherer.rows()
    assert (row.field, row.value, row.absent) == ("full_screen", None, False) and "It is broken." in row.why
    one.sources["full_screen"].answer = True
    one.until(lambda facts: facts.full_screen is True, step_s=1.0)


def test_the_first_source_that_answers_is_kept_and_left_when_it_fails() -> None:
    first, second = Played("first", SourceError("No first.")), Played("second", 2.0)
    either = FirstThatAnswers(first, second)
    assert (either.read(), either.name) == (2.0, "second")
    first.answer = 1.0
    assert either.read() == 2.0
    second.answer = SourceError("No second.")
    assert (either.read(), either.name) == (1.0, "first")
    first.answer = SourceError("No first.")
    with pytest.raises(SourceError, match="No second"):
        either.read()
    assert FirstThatAnswers(first, otherwise=ABSENT).read() is ABSENT


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({"XDG_SESSION_TYPE": "x11", "DISPLAY": ":0"}, "x11"),
        ({"XDG_SESSION_TYPE": "wayland", "WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, "wayland"),
        ({"XDG_SESSION_TYPE": "wayland", "DISPLAY": ":0"}, "wayland"),
        ({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, "wayland"),
        ({"XDG_SESSION_TYPE": "tty", "DISPLAY": ":1"}, "x11"),
        ({"DISPLAY": ":99"}, "x11"),
        ({"XDG_SESSION_TYPE": "tty", "DISPLAY": "localhost:10.0"}, "none"),
        ({"XDG_SESSION_TYPE": "x11"}, "none"),
        ({}, "none"),
    ],
)
def test_the_kind_of_session(environment: dict[str, str], kind: str) -> None:
    assert session(environment) == kind


@pytest.mark.parametrize("platform", ["linux", "win32", "darwin"])
@pytest.mark.parametrize("environment", [{"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}, {}])
def test_every_system_has_a_source_for_every_fact(platform: str, environment: dict[str, str]) -> None:
    chosen = sources(platform, environment)
    assert set(chosen) == set(FACT_NAMES)
    assert all(source.name for source in chosen.values())


def test_this_computer_answers() -> None:
    """Whatever it has: every fact is known, absent, or unknown with a reason."""
    told: list[str] = []
    gatherer = Gatherer(told.append)
    try:
        gatherer.start(PATIENCE_S)
        facts = gatherer.gather()
        rows = gatherer.rows()
    finally:
        gatherer.close()
    assert [row.field for row in rows] == list(FACT_NAMES)
    for row in rows:
        assert (row.value is None) == (getattr(facts, row.field) is None)
        assert row.value is not None or row.absent or row.why
    assert facts.cpu_others is not None and 0 <= facts.cpu_others <= 1
    assert facts.memory_free is not None and 0 < facts.memory_free < 1
    assert len(told) == sum(facts.unknown(field) for field in FACT_NAMES)
