"""The conditions of the computer that stop a node, and the owner's limits for them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import msgspec

from app.desktop.facts import DesktopFacts
from app.node.record.reasons import Dial, Reason
from app.node.rules.orders import Orders
from app.node.rules.setting import HourSpan

RESTART_AFTER_CALM_S = 60.0
"""Seconds without load before a stopped node starts again."""
MEMORY_CALM_S = 300.0
"""Longer wait after a memory shortage: stopping the trainer frees memory itself, so free memory says little at
first."""
STOP_AFTER_LOAD_S = 2.0
"""Seconds that a load must last before a running node stops: longer than one reading, short enough to give way
within five seconds."""
STALLED_LIMIT = 0.10  # share of the time that programs wait for memory
_EASED = 0.8  # hysteresis: a stopped node starts again below this share of a limit
_COOLER_C = 10.0  # the same for temperatures, in degrees
_FREER = 3.0  # the same for free memory: this many times its limit


class RuleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's choices. A limit of None switches its rule off. Raises ValueError for limits out of range."""

    contribute_when_idle: bool = True
    """True: run only while nobody uses the computer. False: also then, if the other rules allow it."""
    idle_s: float = 180.0
    on_battery: bool = False
    with_saver: bool = False
    during_full_screen: bool = False
    cpu_limit: float | None = 0.25
    gpu_limit: float | None = 0.25
    memory_limit: float | None = 0.05
    """Share of the memory that must stay free."""
    temperature_limit_c: float | None = 90.0
    class_paused: bool = False
    """Whether the teacher of the class that the owner joined has paused it."""
    serving: bool = False
    """Whether a request of another program is being answered."""
    hours: HourSpan = HourSpan()
    dial: Dial = Dial.BALANCED
    orders: Orders = Orders()

    def __post_init__(self) -> None:
        if not 1 <= self.idle_s <= 24 * 3600:
            raise ValueError("The idle time lies between a second and a day.")
        for limit in (self.cpu_limit, self.gpu_limit):
            if limit is not None and not 0 < limit <= 1:
                raise ValueError("A limit for other programs' load lies between 0 and 100 %.")
        if self.memory_limit is not None and not 0 < self.memory_limit <= 0.3:
            raise ValueError("The memory that stays free lies between 0 and 30 %.")
        if self.temperature_limit_c is not None and not 40 <= self.temperature_limit_c <= 110:
            raise ValueError("The temperature limit lies between 40 and 110 °C.")


class Cause(NamedTuple):
    """A condition of the computer that prevents running.

    `setting` names the field of RuleSettings that controls it. `holds(facts, settings, eased)` treats unknown
    facts as false; they are checked separately (`unknown`). `eased`: the node is stopped, so a lower limit
    applies (hysteresis).
    """

    reason: Reason
    unknown: Reason
    fields: tuple[str, ...]
    setting: str
    holds: Callable[[DesktopFacts, RuleSettings, bool], bool]
    hold_s: float = 0.0
    calm_s: float = RESTART_AFTER_CALM_S

    def wanted(self, settings: RuleSettings) -> bool:
        """Whether the owner has this rule on: a switch that does not allow it, or a limit."""
        value = getattr(settings, self.setting)
        return not value if isinstance(value, bool) else value is not None


def _memory_short(facts: DesktopFacts, settings: RuleSettings, eased: bool) -> bool:
    least = (settings.memory_limit or 0.0) * (_FREER if eased else 1.0)
    most = STALLED_LIMIT * (_EASED if eased else 1.0)
    free, stalled = facts.memory_free, facts.memory_stalled
    return (free is not None and free < least) or (stalled is not None and stalled > most)


def _hot(facts: DesktopFacts, settings: RuleSettings, eased: bool) -> bool:
    limit_c = (settings.temperature_limit_c or inf) - (_COOLER_C if eased else 0.0)
    return facts.too_hot is True or (facts.temperature_c is not None and facts.temperature_c > limit_c)


def _over(share: float | None, limit: float | None, eased: bool) -> bool:
    return share is not None and limit is not None and share > limit * (_EASED if eased else 1.0)


POWER_CAUSES = (
    Cause(
        Reason.ON_BATTERY,
        Reason.POWER_UNKNOWN,
        ("on_battery",),
        "on_battery",
        lambda facts, settings, eased: facts.on_battery is True,
    ),
    Cause(
        Reason.SAVER,
        Reason.SAVER_UNKNOWN,
        ("saver",),
        "with_saver",
        lambda facts, settings, eased: facts.saver is True,
    ),
)
"""Checked before the idle time."""
LOAD_CAUSES = (
    Cause(
        Reason.FULL_SCREEN,
        Reason.SCREEN_UNKNOWN,
        ("full_screen",),
        "during_full_screen",
        lambda facts, settings, eased: facts.full_screen is True,
    ),
    Cause(
        Reason.MEMORY,
        Reason.MEMORY_UNKNOWN,
        ("memory_free", "memory_stalled"),
        "memory_limit",
        _memory_short,
        STOP_AFTER_LOAD_S,
        MEMORY_CALM_S,
    ),
    Cause(
        Reason.HOT,
        Reason.HEAT_UNKNOWN,
        ("temperature_c", "too_hot"),
        "temperature_limit_c",
        _hot,
        STOP_AFTER_LOAD_S,
    ),
    Cause(
        Reason.CPU,
        Reason.CPU_UNKNOWN,
        ("cpu_others",),
        "cpu_limit",
        lambda facts, settings, eased: _over(facts.cpu_others, settings.cpu_limit, eased),
        STOP_AFTER_LOAD_S,
    ),
    Cause(
        Reason.GPU,
        Reason.GPU_UNKNOWN,
        ("gpu_others",),
        "gpu_limit",
        lambda facts, settings, eased: _over(facts.gpu_others, settings.gpu_limit, eased),
        STOP_AFTER_LOAD_S,
    ),
)
"""Checked after the idle time."""
ALWAYS_BLOCKING = tuple(cause for cause in LOAD_CAUSES if cause.reason in (Reason.MEMORY, Reason.HOT))
"""Causes that stop even a node whose owner insists: memory so short that programs are killed, and overheating.
In that case unknown facts do not count."""
