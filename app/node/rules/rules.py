"""Decides when to run: one pure function of the clock, the facts, the owner's settings and the previous
decision.

The order of the checks is fixed (see Reason) and the first obstacle is reported, as in BOINC's client
(client/cs_prefs.cpp). Unknown facts count as in use. Hysteresis prevents flapping: a load must last before it
stops a running node, and a stopped node starts only after a quiet period, with limits a little lower than those
that stopped it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import NamedTuple

import msgspec

from app.common.text import format_elapsed
from app.desktop.facts import DesktopFacts
from app.node.record.reasons import EFFORTS, Effort, Reason
from app.node.rules.causes import ALWAYS_BLOCKING, LOAD_CAUSES, POWER_CAUSES, Cause, RuleSettings
from app.node.rules.orders import Moment, Orders, Snooze

__all__ = ["Decision", "RuleSettings", "decide"]

SLEEP_GAP_S = 30.0
"""Seconds without a call of `decide` after which the computer counts as having been asleep: the person who woke
it is using it."""


class RuleMemory(msgspec.Struct, frozen=True, kw_only=True):
    """State passed from one decision to the next. Times are on the monotonic clock."""

    at: float
    input_at: float = -inf
    """Time of the latest known input; an unknown idle time counts as input."""
    eased: bool = False
    """Whether the node was stopped, so that the lower limits apply."""
    began: Mapping[Reason, float] = {}
    """Since when each cause has been continuously present or unknown."""
    last: Mapping[Reason, float] = {}
    """Time when each cause last prevented a start."""
    snooze: Snooze | None = None
    snooze_end: float = -inf
    """End of the last snooze that was ordered, even if it is over."""
    insisted: Snooze | None = None
    insisted_end: float = -inf


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to run, and why. `until`: Unix time at which this may change without further events; None if it
    cannot."""

    run: bool
    reason: Reason
    until: float | None = None
    effort: Effort
    values: Mapping[str, str] = {}
    """Values to fill into the reason's texts."""
    orders: Orders
    """The current orders, without a snooze that is over. Save them if they differ."""
    memory: RuleMemory

    @property
    def sentence(self) -> str:
        return self.reason.sentence.format_map(self.values)

    @property
    def short(self) -> str:
        """Returns the short on-screen text, such as "idle 2:13 of 3:00"."""
        return self.reason.short.format_map(self.values)


class Obstacle(NamedTuple):
    reason: Reason
    until: float | None = None
    values: Mapping[str, str] = {}


def decide(now: Moment, facts: DesktopFacts, settings: RuleSettings, before: Decision | None) -> Decision:
    """Decides whether to run now, and gives the reason. Call it every second with the previous decision as
    `before`, None at first. A pure function."""
    ran = before is not None and before.run
    orders, memory = _remember(now, facts, settings, before, ran)
    obstacle = next(_obstacles(now, facts, settings, orders, memory, ran), None)
    effort = EFFORTS[settings.dial]
    if obstacle is None:
        reason, until, values = _going(now, settings, orders, memory)
        return Decision(
            run=True,
            reason=reason,
            until=until,
            effort=effort,
            values=values,
            orders=orders,
            memory=memory,
        )
    return Decision(
        run=False,
        reason=obstacle.reason,
        until=obstacle.until,
        effort=effort,
        values=obstacle.values,
        orders=orders,
        memory=memory,
    )


def _going(
    now: Moment, settings: RuleSettings, orders: Orders, memory: RuleMemory
) -> tuple[Reason, float | None, Mapping[str, str]]:
    """Returns reason, end and values for a node that runs."""
    if orders.insisted is not None:
        until = now.wall + memory.insisted_end - now.steady
        reason = Reason.FINISHING if orders.finish else Reason.ANYWAY
        return reason, until, {"until": now.format_time(until)}
    reason = Reason.FINISHING if orders.finish else Reason.RUNNING
    return reason, settings.hours.next_change(now.wall, now.zone), {}


def _obstacles(
    now: Moment, facts: DesktopFacts, settings: RuleSettings, orders: Orders, memory: RuleMemory, ran: bool
) -> Iterator[Obstacle]:
    """Yields everything that prevents running, in the order of Reason."""
    if orders.paused:
        yield Obstacle(Reason.PAUSED)
    if orders.snooze is not None:
        until = now.wall + memory.snooze_end - now.steady
        yield Obstacle(Reason.SNOOZED, until, {"until": now.format_time(until)})
    if settings.serving:
        yield Obstacle(Reason.SERVING)
    if orders.insisted is not None:
        yield from _in_the_way(ALWAYS_BLOCKING, now, facts, settings, memory, ran)
        insisted_at = memory.insisted_end - orders.insisted.left_s(orders.insisted.began)
        yield from _settling(ALWAYS_BLOCKING, now, memory, ran, insisted_at)
        return
    if settings.class_paused:
        yield Obstacle(Reason.CLASS)
    if not settings.hours.is_open(now.wall, now.zone):
        opens = settings.hours.next_change(now.wall, now.zone)
        yield Obstacle(Reason.OUTSIDE_HOURS, opens, {"until": "…" if opens is None else now.format_time(opens)})
    yield from _in_the_way(POWER_CAUSES, now, facts, settings, memory, ran)
    idle_s = now.steady - memory.input_at
    if settings.contribute_when_idle and idle_s < settings.idle_s:
        if facts.idle_s is None:
            yield Obstacle(Reason.USE_UNKNOWN)
        else:
            until = now.wall + settings.idle_s - idle_s
            yield Obstacle(
                Reason.IN_USE, until, {"have": format_elapsed(idle_s), "need": format_elapsed(settings.idle_s)}
            )
    yield from _in_the_way(LOAD_CAUSES, now, facts, settings, memory, ran)
    yield from _settling((*POWER_CAUSES, *LOAD_CAUSES), now, memory, ran)


def _settling(
    causes: tuple[Cause, ...], now: Moment, memory: RuleMemory, ran: bool, since: float = -inf
) -> Iterator[Obstacle]:
    """Yields the wait for calm after a disturbance, if any; disturbances that ended before `since` do not
    count."""
    quiet = [
        (memory.last[cause.reason] + cause.calm_s - now.steady, cause.calm_s)
        for cause in causes
        if memory.last.get(cause.reason, -inf) > since
    ]
    left_s, calm_s = max(quiet, default=(0.0, 0.0))
    if left_s > 0 and not ran:
        until = now.wall + left_s
        values = {
            "have": format_elapsed(calm_s - left_s),
            "need": format_elapsed(calm_s),
            "until": now.format_time(until),
        }
        yield Obstacle(Reason.SETTLING, until, values)


def _in_the_way(
    causes: tuple[Cause, ...],
    now: Moment,
    facts: DesktopFacts,
    settings: RuleSettings,
    memory: RuleMemory,
    ran: bool,
) -> Iterator[Obstacle]:
    for cause in causes:
        began = memory.began.get(cause.reason)
        if began is not None and (not ran or now.steady - began >= cause.hold_s):
            held = cause.holds(facts, settings, memory.eased)
            reason = cause.reason if held else cause.unknown
            yield Obstacle(reason, values=_values(reason, facts))


def _values(reason: Reason, facts: DesktopFacts) -> dict[str, str]:
    match reason:
        case Reason.CPU:
            return {"percent": f"{100 * (facts.cpu_others or 0):.0f}"}
        case Reason.GPU:
            return {"percent": f"{100 * (facts.gpu_others or 0):.0f}"}
    return {}


def _remember(
    now: Moment, facts: DesktopFacts, settings: RuleSettings, before: Decision | None, ran: bool
) -> tuple[Orders, RuleMemory]:
    """Returns the orders and the memory, updated with the facts."""
    old = before.memory if before is not None else RuleMemory(at=now.steady)
    eased = before is not None and not ran
    slept = not 0 <= now.steady - old.at <= SLEEP_GAP_S
    began: dict[Reason, float] = {}
    last: dict[Reason, float] = {}
    orders, ends = _orders(now, settings.orders, old, ran)
    for cause in (*POWER_CAUSES, *LOAD_CAUSES):
        if not cause.wanted(settings):
            continue
        if cause.reason in old.last:
            last[cause.reason] = min(old.last[cause.reason], now.steady)
        unknown = orders.insisted is None and any(facts.unknown(field) for field in cause.fields)
        if unknown or cause.holds(facts, settings, eased):
            began[cause.reason] = min(old.began.get(cause.reason, now.steady), now.steady)
            if not ran or now.steady - began[cause.reason] >= cause.hold_s:
                last[cause.reason] = now.steady
    input_at = now.steady if slept or facts.idle_s is None else now.steady - facts.idle_s
    memory = RuleMemory(
        at=now.steady,
        input_at=max(input_at, min(old.input_at, now.steady)),
        eased=eased,
        began=began,
        last=last,
        snooze=settings.orders.snooze,
        snooze_end=ends[0],
        insisted=settings.orders.insisted,
        insisted_end=ends[1],
    )
    return orders, memory


def _orders(now: Moment, orders: Orders, old: RuleMemory, ran: bool) -> tuple[Orders, tuple[float, float]]:
    """Returns the current orders, and the ends of snooze and insistence on the monotonic clock."""
    if orders.finish and not ran:
        orders = Orders(paused=True, snooze=orders.snooze)
    snoozed, snooze_end = _lasting(now, orders.snooze, old.snooze, old.snooze_end)
    insisted, insisted_end = _lasting(now, orders.insisted, old.insisted, old.insisted_end)
    if (snoozed, insisted) != (orders.snooze, orders.insisted):
        orders = msgspec.structs.replace(orders, snooze=snoozed, insisted=insisted)
    return orders, (snooze_end, insisted_end)


def _lasting(
    now: Moment, order: Snooze | None, known: Snooze | None, known_end: float
) -> tuple[Snooze | None, float]:
    """Returns the order, or None if it is over, and its end on the monotonic clock.

    It is timed by the monotonic clock from the moment it is first seen, so that setting the clock neither ends
    nor prolongs it.
    """
    if order is None:
        return None, -inf
    if order == known:
        end = min(known_end, now.steady + order.left_s(order.began))
    else:
        end = now.steady + order.left_s(now.wall)
    return (order if end > now.steady else None), end
