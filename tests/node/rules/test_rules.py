"""When a node runs: the table of reasons, the clocks, and what holds for every history."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.desktop.facts import FACT_NAMES, DesktopFacts
from app.node.record.reasons import Reason
from app.node.rules.causes import (
    LOAD_CAUSES,
    MEMORY_CALM_S,
    POWER_CAUSES,
    RESTART_AFTER_CALM_S,
    STOP_AFTER_LOAD_S,
    RuleSettings,
)
from app.node.rules.orders import Moment, Orders, Snooze, snooze_for, snooze_until_tomorrow
from app.node.rules.preferences import RULE_OF
from app.node.rules.rules import SLEEP_GAP_S, Decision, decide
from app.node.rules.setting import HourSpan, format_span, parse_span

WALL = datetime(2026, 11, 18, 12, 0, tzinfo=UTC).timestamp()  # a Wednesday
CALM = DesktopFacts(
    idle_s=10_000.0,
    on_battery=False,
    saver=False,
    full_screen=False,
    cpu_others=0.02,
    gpu_others=0.0,
    memory_free=0.6,
    memory_stalled=0.0,
    temperature_c=50.0,
    too_hot=False,
)
ALL_RULES = RuleSettings()
KINDS = {cause.unknown: cause.reason for cause in (*POWER_CAUSES, *LOAD_CAUSES)}


def facts(**changes: object) -> DesktopFacts:
    return msgspec.structs.replace(CALM, **changes)


def wishes(**changes: object) -> RuleSettings:
    return msgspec.structs.replace(ALL_RULES, **changes)


def at(seconds: float, clock_set_by: float = 0.0) -> Moment:
    return Moment(WALL + seconds + clock_set_by, 1_000.0 + seconds, UTC)


@dataclass
class Owner:
    """A node that is asked again and again, as the real one is every second."""

    settings: RuleSettings = ALL_RULES
    seconds: float = 0.0
    clock_set_by: float = 0.0
    decision: Decision | None = None
    history: list[tuple[float, Decision]] = field(default_factory=list)

    def goes_on(self, seconds: float, facts: DesktopFacts = CALM, step: float = 1.0) -> Decision:
        end = self.seconds + seconds
        while self.seconds < end:
            self.seconds = min(end, self.seconds + step)
            self.asked(facts)
        assert self.decision is not None
        return self.decision

    def asked(self, facts: DesktopFacts = CALM) -> Decision:
        self.decision = decide(at(self.seconds, self.clock_set_by), facts, self.settings, self.decision)
        self.history.append((self.seconds, self.decision))
        return self.decision

    def orders(self, **orders: object) -> None:
        self.settings = wishes(orders=Orders(**orders))  # type: ignore[arg-type]


OBSTACLES: list[tuple[Reason, DesktopFacts, RuleSettings]] = [
    (Reason.PAUSED, CALM, wishes(orders=Orders(paused=True))),
    (Reason.SNOOZED, CALM, wishes(orders=Orders(snooze=Snooze(WALL, WALL + 3600)))),
    (Reason.SERVING, CALM, wishes(serving=True)),
    (Reason.CLASS, CALM, wishes(class_paused=True)),
    (Reason.OUTSIDE_HOURS, CALM, wishes(hours=HourSpan(22 * 60, 7 * 60))),
    (Reason.ON_BATTERY, facts(on_battery=True), ALL_RULES),
    (Reason.POWER_UNKNOWN, facts(on_battery=None), ALL_RULES),
    (Reason.SAVER, facts(saver=True), ALL_RULES),
    (Reason.SAVER_UNKNOWN, facts(saver=None), ALL_RULES),
    (Reason.IN_USE, facts(idle_s=179.0), ALL_RULES),
    (Reason.USE_UNKNOWN, facts(idle_s=None), ALL_RULES),
    (Reason.FULL_SCREEN, facts(full_screen=True), ALL_RULES),
    (Reason.SCREEN_UNKNOWN, facts(full_screen=None), ALL_RULES),
    (Reason.MEMORY, facts(memory_free=0.04), ALL_RULES),
    (Reason.MEMORY_UNKNOWN, facts(memory_free=None), ALL_RULES),
    (Reason.HOT, facts(temperature_c=91.0), ALL_RULES),
    (Reason.HEAT_UNKNOWN, facts(too_hot=None), ALL_RULES),
    (Reason.CPU, facts(cpu_others=0.3), ALL_RULES),
    (Reason.CPU_UNKNOWN, facts(cpu_others=None), ALL_RULES),
    (Reason.GPU, facts(gpu_others=0.3), ALL_RULES),
    (Reason.GPU_UNKNOWN, facts(gpu_others=None), ALL_RULES),
]
"""What is in the way, the most important first."""


@pytest.mark.parametrize(("reason", "seen", "chosen"), OBSTACLES, ids=[row[0].name for row in OBSTACLES])
def test_every_obstacle_keeps_a_node_from_starting_and_stops_one_that_runs(
    reason: Reason, seen: DesktopFacts, chosen: RuleSettings
) -> None:
    first = decide(at(0), seen, chosen, None)
    assert (first.run, first.reason) == (False, reason)
    running = decide(at(0), CALM, ALL_RULES, None)
    assert running.run
    owner = Owner(chosen, decision=running)
    stopped = owner.goes_on(STOP_AFTER_LOAD_S + 1, seen)
    assert (stopped.run, stopped.reason) == (False, reason)


def test_every_reason_is_reached_and_has_its_texts() -> None:
    owner = Owner()
    owner.asked(facts(on_battery=True))
    reached = [decide(at(0), seen, chosen, None) for _, seen, chosen in OBSTACLES]
    reached += [
        owner.goes_on(1),
        owner.goes_on(RESTART_AFTER_CALM_S),
        decide(at(0), CALM, wishes(orders=Orders()), None),
    ]
    owner.orders(insisted=Snooze(WALL, WALL + 600))
    reached.append(owner.goes_on(1))
    owner.orders(finish=True)
    reached.append(owner.goes_on(1))
    assert {decision.reason for decision in reached} == set(Reason)
    for decision in reached:
        assert decision.sentence.endswith(".") and "{" not in decision.sentence
        assert decision.short and "{" not in decision.short


def test_the_first_of_several_obstacles_is_told() -> None:
    """In the order of the enumeration, and of the table above."""
    order = [reason for reason, _, _ in OBSTACLES]
    assert order == [reason for reason in Reason if reason in set(order)]
    for place, (reason, seen, chosen) in enumerate(OBSTACLES):
        for other, also_seen, also_chosen in OBSTACLES[place + 1 :]:
            if KINDS.get(other) is reason:
                continue  # one fact cannot be bad and unknown
            both = {
                name: value
                for one in (also_seen, seen)
                for name in FACT_NAMES
                if (value := getattr(one, name)) != getattr(CALM, name)
            }
            settings = wishes(
                orders=chosen.orders if chosen.orders != Orders() else also_chosen.orders,
                hours=chosen.hours if chosen.hours != HourSpan() else also_chosen.hours,
                serving=chosen.serving or also_chosen.serving,
                class_paused=chosen.class_paused or also_chosen.class_paused,
            )
            if reason is Reason.PAUSED and other is Reason.SNOOZED:
                settings = wishes(orders=Orders(paused=True, snooze=also_chosen.orders.snooze))
            assert decide(at(0), facts(**both), settings, None).reason is reason, other


@pytest.mark.parametrize(
    ("seen", "off"),
    [
        (facts(on_battery=True), {"on_battery": True}),
        (facts(saver=None), {"with_saver": True}),
        (facts(idle_s=0.0), {"contribute_when_idle": False}),
        (facts(idle_s=None), {"contribute_when_idle": False}),
        (facts(full_screen=True), {"during_full_screen": True}),
        (facts(memory_free=0.01, memory_stalled=0.9), {"memory_limit": None}),
        (facts(temperature_c=120.0, too_hot=True), {"temperature_limit_c": None}),
        (facts(cpu_others=None), {"cpu_limit": None}),
        (facts(gpu_others=1.0), {"gpu_limit": None}),
    ],
)
def test_every_rule_can_be_switched_off(seen: DesktopFacts, off: dict[str, object]) -> None:
    assert not decide(at(0), seen, ALL_RULES, None).run
    assert decide(at(0), seen, wishes(**off), None).run


def test_what_a_computer_does_not_have_is_not_unknown() -> None:
    bare = DesktopFacts(
        idle_s=500.0,
        cpu_others=0.0,
        memory_free=0.5,
        absent=frozenset(FACT_NAMES) - {"idle_s", "cpu_others", "memory_free"},
    )
    assert decide(at(0), bare, ALL_RULES, None).run
    assert decide(at(0), DesktopFacts(), ALL_RULES, None).reason is Reason.POWER_UNKNOWN


def test_the_idle_time_is_on_screen() -> None:
    decision = decide(at(0), facts(idle_s=133.4), ALL_RULES, None)
    assert decision.short == "idle 2:13 of 3:00"
    assert decision.until == pytest.approx(WALL + 180 - 133.4)
    assert decide(at(0), facts(idle_s=180.0), ALL_RULES, None).run


def test_input_stops_at_once_and_a_glitch_of_the_source_does_not_start_again() -> None:
    owner = Owner()
    assert owner.asked().run
    assert owner.goes_on(1, facts(idle_s=0.2)).reason is Reason.IN_USE
    assert owner.goes_on(1, facts(idle_s=9_999.0)).short == "idle 0:01 of 3:00"
    assert not owner.goes_on(177, facts(idle_s=9_999.0)).run
    assert owner.goes_on(2, facts(idle_s=9_999.0)).run


def test_a_computer_that_wakes_is_in_use() -> None:
    owner = Owner()
    assert owner.asked().run
    owner.seconds += SLEEP_GAP_S + 1
    assert owner.asked(facts(idle_s=50_000.0)).reason is Reason.IN_USE
    assert owner.goes_on(180).run


def test_a_spike_does_not_stop_and_a_load_does_within_five_seconds() -> None:
    owner = Owner()
    owner.asked()
    assert owner.goes_on(1.5, facts(cpu_others=1.0), step=0.5).run
    assert owner.goes_on(1).run
    assert not owner.goes_on(3, facts(cpu_others=1.0)).run


def test_a_load_that_is_now_high_and_now_unknown_stops() -> None:
    owner = Owner()
    owner.asked()
    for _ in range(3):
        owner.goes_on(1, facts(cpu_others=1.0))
        owner.goes_on(1, facts(cpu_others=None))
    assert not owner.goes_on(1, facts(cpu_others=1.0)).run


def test_after_a_load_it_starts_again_after_a_quiet_minute() -> None:
    owner = Owner()
    owner.asked()
    owner.goes_on(10, facts(gpu_others=0.9))
    assert owner.goes_on(15).short == "quiet 0:15 of 1:00"
    assert owner.decision is not None and owner.decision.until == pytest.approx(WALL + owner.seconds + 45)
    assert (
        owner.goes_on(30, facts(gpu_others=0.22)).reason is Reason.GPU
    )  # below the limit, above the lower one
    assert not owner.goes_on(59).run
    assert owner.goes_on(2).run
    assert owner.goes_on(30, facts(gpu_others=0.22)).run


def test_memory_must_stay_free_for_five_minutes() -> None:
    owner = Owner()
    owner.asked()
    assert owner.goes_on(5, facts(memory_stalled=0.5)).reason is Reason.MEMORY
    assert owner.goes_on(MEMORY_CALM_S - 1).reason is Reason.SETTLING
    assert owner.goes_on(2).run


def test_the_owners_word_needs_no_quiet_minute() -> None:
    owner = Owner()
    assert owner.asked().run
    owner.orders(paused=True)
    assert owner.goes_on(1).reason is Reason.PAUSED
    owner.orders()
    assert owner.goes_on(1).run


def test_finish_this_round_then_stop() -> None:
    owner = Owner()
    owner.asked()
    owner.orders(finish=True)
    finishing = owner.goes_on(20)
    assert (finishing.run, finishing.reason) == (True, Reason.FINISHING)
    owner.settings = wishes(orders=finishing.orders.round_finished())
    assert owner.goes_on(1).reason is Reason.PAUSED


def test_finish_pauses_at_once_where_no_round_is_in_flight() -> None:
    order = wishes(orders=Orders(finish=True))
    assert decide(at(0), CALM, order, None).orders == Orders(paused=True)
    running = decide(at(0), CALM, ALL_RULES, None)
    disturbed = decide(at(1), facts(idle_s=0.0), order, running)
    assert disturbed.reason is Reason.IN_USE
    assert decide(at(2), CALM, order, disturbed).reason is Reason.PAUSED


def snoozed(owner: Owner, seconds: float) -> Snooze:
    snooze = snooze_for(seconds, at(owner.seconds, owner.clock_set_by))
    owner.orders(snooze=snooze)
    return snooze


def test_a_snooze_ends_when_it_says() -> None:
    owner = Owner()
    owner.asked()
    snoozed(owner, 3600)
    assert owner.goes_on(1).sentence == "Snoozed by you until 13:00."
    assert owner.goes_on(3590, step=10).reason is Reason.SNOOZED
    over = owner.goes_on(10, step=10)
    assert over.run and over.orders.snooze is None


@pytest.mark.parametrize("jump", [-400 * 86400.0, -7200.0, 7200.0, 400 * 86400.0])
def test_setting_the_clock_neither_ends_nor_prolongs_a_snooze(jump: float) -> None:
    owner = Owner()
    owner.asked()
    snoozed(owner, 3600)
    owner.goes_on(600, step=10)
    owner.clock_set_by = jump
    assert owner.goes_on(2980, step=10).reason is Reason.SNOOZED
    assert owner.goes_on(30, step=10).run
    owner.clock_set_by -= 400 * 86400.0  # also where nobody has kept the orders that say that it is over
    assert owner.goes_on(30, step=10).run


@pytest.mark.parametrize(
    ("jump", "left"), [(0.0, 3000.0), (-86400.0, 3600.0), (1800.0, 1200.0), (7200.0, 0.0), (400 * 86400.0, 0.0)]
)
def test_a_snooze_read_back_after_a_restart_lasts_at_most_its_length(jump: float, left: float) -> None:
    snooze = Snooze(WALL, WALL + 3600)
    owner = Owner(wishes(orders=Orders(snooze=snooze)), seconds=600, clock_set_by=jump)
    first = owner.asked()
    if left:
        assert first.until == pytest.approx(WALL + 600 + jump + left)
        assert not owner.goes_on(left - 10, step=10).run
    assert owner.goes_on(20, step=10).run


@pytest.mark.parametrize(
    "nonsense",
    [Snooze(WALL, WALL), Snooze(WALL, WALL - 5), Snooze(float("nan"), WALL), Snooze(WALL, float("inf"))],
)
def test_a_snooze_that_makes_no_sense_is_over(nonsense: Snooze) -> None:
    assert decide(at(0), CALM, wishes(orders=Orders(snooze=nonsense)), None).run


INSISTED = Orders(insisted=Snooze(WALL, WALL + 600))
BUSY = facts(idle_s=0.0, cpu_others=1.0, gpu_others=1.0, on_battery=True, saver=True, full_screen=True)


def test_an_owner_who_insists_waits_for_nothing_but_harm() -> None:
    owner = Owner(wishes(orders=INSISTED))
    began = owner.asked(BUSY)
    assert began.run and began.reason is Reason.ANYWAY and began.until == WALL + 600
    assert began.sentence == "Keeps learning while you work until 12:10."
    assert owner.goes_on(60, DesktopFacts()).run, "what is not known does not count"
    assert owner.goes_on(3, facts(memory_free=0.01)).reason is Reason.MEMORY
    assert owner.goes_on(10).reason is Reason.SETTLING, "memory that stopping freed says little"
    over = owner.goes_on(600, BUSY, step=10)
    assert not over.run and over.reason is Reason.ON_BATTERY and over.orders.insisted is None


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason in RULE_OF])
def test_insisting_ends_every_wait_whose_rule_spares_only_the_owner(reason: Reason) -> None:
    for obstacle, seen, chosen in OBSTACLES:
        if obstacle is reason:
            insisted = msgspec.structs.replace(chosen, orders=INSISTED)
            ruled = decide(at(0), seen, insisted, None)
            assert ruled.run is (reason not in (Reason.MEMORY, Reason.HOT)), ruled.reason


@pytest.mark.parametrize("jump", [-400 * 86400.0, 7200.0])
def test_setting_the_clock_does_not_prolong_insisting(jump: float) -> None:
    owner = Owner(wishes(orders=INSISTED))
    owner.goes_on(300, BUSY, step=10)
    owner.clock_set_by = jump
    assert owner.goes_on(280, BUSY, step=10).run
    assert not owner.goes_on(30, BUSY, step=10).run


def test_until_tomorrow_means_the_next_morning() -> None:
    berlin = ZoneInfo("Europe/Berlin")

    def end(*now: int) -> datetime:
        wall = datetime(*now, tzinfo=berlin).timestamp()  # type: ignore[arg-type]
        return datetime.fromtimestamp(snooze_until_tomorrow(Moment(wall, 0.0, berlin)).until, berlin)

    assert end(2026, 3, 28, 22, 0) == datetime(2026, 3, 29, 8, 0, tzinfo=berlin)  # the short night
    assert end(2026, 3, 29, 1, 0) == datetime(2026, 3, 29, 8, 0, tzinfo=berlin)
    with pytest.raises(ValueError, match="31 days"):
        snooze_for(32 * 86400, at(0))


BERLIN = ZoneInfo("Europe/Berlin")


def shown(*moment: int, fold: int = 0) -> float:
    return datetime(*moment, tzinfo=BERLIN, fold=fold).timestamp()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hours", "moment", "open_", "changes"),
    [
        ("22:00-07:00", shown(2026, 11, 18, 21, 59), False, shown(2026, 11, 18, 22)),
        ("22:00-07:00", shown(2026, 11, 18, 23), True, shown(2026, 11, 19, 7)),
        ("22:00-07:00", shown(2026, 11, 21, 6, 59), True, shown(2026, 11, 21, 7)),
        ("any", shown(2026, 11, 21, 12), True, None),
        ("never", shown(2026, 11, 21, 12), False, None),
        # The clock is put forward from 2:00 to 3:00 on 2026-03-29 and back from 3:00 to 2:00 on 2026-10-25.
        ("02:30-06:00", shown(2026, 3, 29, 1, 59), False, shown(2026, 3, 29, 3)),
        ("00:00-02:30", shown(2026, 3, 29, 1, 59), True, shown(2026, 3, 29, 3)),
        ("22:00-06:00", shown(2026, 3, 29, 1, 0), True, shown(2026, 3, 29, 6)),
        ("02:15-02:45", shown(2026, 10, 25, 2, 50), False, shown(2026, 10, 25, 2, 15, fold=1)),
        ("02:30-06:00", shown(2026, 10, 25, 2, 40), True, shown(2026, 10, 25, 2, 0, fold=1)),
    ],
)
def test_hours_follow_the_clock_on_the_wall(
    hours: str, moment: float, open_: bool, changes: float | None
) -> None:
    assert parse_span(hours).is_open(moment, BERLIN) is open_
    assert parse_span(hours).next_change(moment, BERLIN) == changes


def test_hours_open_and_close_a_node() -> None:
    noon = wishes(hours=parse_span("12:30-13:00"))
    closed = decide(at(0), CALM, noon, None)
    assert closed.sentence == "Outside the hours you set. Starts 12:30."
    opened = decide(at(1800), CALM, noon, closed)
    assert opened.reason is Reason.IN_USE  # nobody asked for half an hour: the computer slept
    running = decide(at(1800), CALM, noon, None)
    assert (running.run, running.until) == (True, WALL + 3600)


# What holds for every history ---------------------------------------------------------------------------------

shares = st.none() | st.floats(0, 1)
seen = st.builds(
    DesktopFacts,
    idle_s=st.none() | st.floats(0, 1000) | st.just(10_000.0),
    on_battery=st.sampled_from([None, False, False, False, True]),
    saver=st.sampled_from([None, False, False, False, True]),
    full_screen=st.sampled_from([None, False, False, False, True]),
    cpu_others=shares,
    gpu_others=shares,
    memory_free=shares,
    memory_stalled=shares,
    temperature_c=st.none() | st.floats(20, 110),
    too_hot=st.sampled_from([None, False, False, False, True]),
    absent=st.frozensets(st.sampled_from(FACT_NAMES)),
)
sometimes_calm = st.just(CALM) | st.just(CALM) | seen
orders = st.builds(
    Orders,
    paused=st.booleans(),
    finish=st.booleans(),
    snooze=st.none() | st.builds(Snooze, st.floats(WALL - 9e5, WALL + 9e5), st.floats(WALL - 9e5, WALL + 9e5)),
)
chosen = st.builds(
    RuleSettings,
    contribute_when_idle=st.booleans(),
    idle_s=st.floats(1, 600),
    on_battery=st.booleans(),
    with_saver=st.booleans(),
    during_full_screen=st.booleans(),
    cpu_limit=st.none() | st.floats(0.01, 1),
    gpu_limit=st.none() | st.floats(0.01, 1),
    memory_limit=st.none() | st.floats(0.01, 0.3),
    temperature_limit_c=st.none() | st.floats(40, 110),
    hours=st.sampled_from([HourSpan(), parse_span("12:00-12:15"), parse_span("never")]),
    orders=st.just(Orders()) | orders,
)
steps = st.lists(
    st.tuples(st.floats(0.1, 40), sometimes_calm, st.sampled_from([0.0, 0.0, 0.0, -9e6, 5e3])),
    min_size=1,
    max_size=30,
)
Steps = list[tuple[float, DesktopFacts, float]]


def history(rules: RuleSettings, steps: Steps) -> list[tuple[float, DesktopFacts, Decision]]:
    seconds, set_by, decision, passed = 0.0, 0.0, None, []
    for gone, looked, jump in steps:
        seconds, set_by = seconds + gone, set_by + jump
        decision = decide(at(seconds, set_by), looked, rules, decision)
        passed.append((seconds, looked, decision))
    return passed


@settings(max_examples=80)
@given(chosen, steps)
def test_a_node_never_runs_while_the_computer_is_in_use(rules: RuleSettings, steps: Steps) -> None:
    for _, looked, decision in history(rules, steps):
        if not decision.run:
            continue
        if rules.contribute_when_idle:
            assert looked.idle_s is not None and looked.idle_s >= rules.idle_s
        assert rules.on_battery or looked.on_battery is False or "on_battery" in looked.absent
        assert rules.during_full_screen or looked.full_screen is not True
        assert not rules.orders.paused


@settings(max_examples=80)
@given(chosen, steps)
def test_after_a_disturbance_it_stays_quiet_for_the_whole_time(rules: RuleSettings, steps: Steps) -> None:
    calm_s = {cause.reason: cause.calm_s for cause in (*POWER_CAUSES, *LOAD_CAUSES)}
    calm_s |= {cause.unknown: cause.calm_s for cause in (*POWER_CAUSES, *LOAD_CAUSES)}
    quiet_until = float("-inf")
    for seconds, _, decision in history(rules, steps):
        assert not (decision.run and seconds < quiet_until - 1e-6)
        quiet_until = max(quiet_until, seconds + calm_s.get(decision.reason, 0.0))
        if decision.reason in (Reason.IN_USE, Reason.USE_UNKNOWN) and decision.until is not None:
            left = rules.idle_s - (decision.memory.at - decision.memory.input_at)
            quiet_until = max(quiet_until, seconds + left)


@settings(max_examples=80)
@given(chosen, steps, sometimes_calm, st.sets(st.sampled_from(FACT_NAMES)))
def test_a_calmer_computer_never_stops_a_node(
    rules: RuleSettings, steps: Steps, looked: DesktopFacts, calmer: set[str]
) -> None:
    *_, (seconds, _, before) = history(rules, steps)
    better = msgspec.structs.replace(looked, **{name: getattr(CALM, name) for name in calmer})
    moment = at(seconds + 1)
    if decide(moment, looked, rules, before).run:
        assert decide(moment, better, rules, before).run


@settings(max_examples=60)
@given(chosen, steps)
def test_no_history_keeps_a_calm_computer_from_running_for_ever(rules: RuleSettings, steps: Steps) -> None:
    """Whatever happened and however the clock was set: what is left is at most the longest wait of a rule."""
    rules = msgspec.structs.replace(rules, orders=Orders(), hours=HourSpan())
    *_, (seconds, _, decision) = history(rules, steps)
    waited = 0.0
    while waited <= max(MEMORY_CALM_S, rules.idle_s):
        waited += 10
        easy = facts(memory_free=1.0, temperature_c=20.0, cpu_others=0.0)
        decision = decide(at(seconds + waited, clock_set_by=1e7), easy, rules, decision)
    assert decision.run


quarters = st.integers(0, 95).map(lambda count: count * 15)
spans = st.builds(HourSpan, quarters, st.integers(0, 96).map(lambda count: count * 15))


@settings(max_examples=60)
@given(
    spans,
    st.integers(int(shown(2026, 3, 22)), int(shown(2026, 4, 2))) | st.integers(int(WALL), int(WALL) + 10**7),
    st.data(),
)
def test_nothing_changes_before_the_next_change(hours: HourSpan, moment: int, data: st.DataObject) -> None:
    now, change = hours.is_open(moment, BERLIN), hours.next_change(moment, BERLIN)
    until = moment + 8 * 86400 if change is None else change
    between = data.draw(st.integers(moment, int(until) - 1))
    assert hours.is_open(between, BERLIN) is now
    if change is not None:
        assert hours.is_open(change, BERLIN) is not now
    same = parse_span(format_span(hours))
    assert same.is_open(between, BERLIN) is now
