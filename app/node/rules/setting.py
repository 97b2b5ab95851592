"""The type of a setting, declared once with its kind, default, label, help and search words; everything that
shows or checks a setting uses its declaration. The node's settings are in app.node.rules.preferences, the
window's in app.ui.view.settings. Also the hours of the day in which a node may run, in local time.

Texts are English here; a window translates them where it shows them.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from typing import Any, Literal

import msgspec

ANY_TIME, NEVER = "any", "never"
DAY_MIN = 24 * 60
_QUARTER_S = 15 * 60
_AHEAD_S = 49 * 3600
"""Seconds ahead in which the next change is searched: two days, one of which may lack the hour."""
_SPAN = re.compile(r"(\d{1,2}):(00|15|30|45)-(\d{1,2}):(00|15|30|45)")


class HourSpan(msgspec.Struct, frozen=True):
    """A daily span from `start` up to `end` (exclusive), in minutes after midnight, in [0, 1440]. If the end is
    before the start it is on the next day; if both are equal the span is empty."""

    start: int = 0
    end: int = DAY_MIN

    def is_open(self, wall: float, zone: tzinfo | None = None) -> bool:
        """Returns whether running is allowed at Unix time `wall`; `zone` None is the system's. An hour that the
        clock repeats is open twice, one that it skips never."""
        shown = datetime.fromtimestamp(wall, zone)
        minute = shown.hour * 60 + shown.minute
        if self.end < self.start:
            return minute >= self.start or minute < self.end
        return self.start <= minute < self.end

    def next_change(self, wall: float, zone: tzinfo | None = None) -> float | None:
        """Returns the Unix time at which it next opens or closes; None if it never does."""
        if self in (HourSpan(), NO_HOURS):
            return None
        now, first = self.is_open(wall, zone), (int(wall) // _QUARTER_S + 1) * _QUARTER_S
        moments = range(first, first + _AHEAD_S, _QUARTER_S)
        return next((float(moment) for moment in moments if self.is_open(moment, zone) is not now), None)


NO_HOURS = HourSpan(0, 0)


def parse_span(text: str) -> HourSpan:
    """Parses `any`, `never`, or hours such as `22:00-07:00`. Raises ValueError for other text.

    >>> parse_span("22:00-07:00")
    HourSpan(start=1320, end=420)
    """
    if text in (ANY_TIME, NEVER):
        return HourSpan() if text == ANY_TIME else NO_HOURS
    found = _SPAN.fullmatch(text)
    start, end = (int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])) if found else (-1, -1)
    if not (0 <= start < DAY_MIN and 0 <= end <= DAY_MIN):
        raise ValueError(f"{text!r} is no span of hours; write it like 22:00-07:00.")
    return HourSpan(start, end)


def format_span(span: HourSpan) -> str:
    """Formats a span so that `parse_span` reads it."""
    if span in (HourSpan(), NO_HOURS):
        return ANY_TIME if span == HourSpan() else NEVER
    return f"{span.start // 60:02}:{span.start % 60:02}-{span.end // 60:02}:{span.end % 60:02}"


PROBE_EVERY = 10
"""Rounds between measurements, unless a person chooses another number."""
MAX_NAME_LENGTH, MAX_NAMES = 80, 50
MAX_TEXT_LENGTH = 500

Kind = Literal["switch", "number", "choice", "names", "hours", "text"]
"""Types of values: bool; int; the key of an option; list of str; text for `parse_span`; one line of text."""

AS_AT_FIRST = "It is as at the first start."
"""Sentence about a saved setting whose value is no longer allowed."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Declaration of a setting. `options`: pairs (value, label), all values of a choice, or suggestions for a
    number or text. `least` and `most`: range of a number, in `unit`."""

    key: str
    kind: Kind
    default: Any
    group: str
    label: str
    help: str
    words: str = ""
    options: tuple[tuple[Any, str], ...] = ()
    least: int = 0
    most: int = 0
    unit: str = ""
    off: int | None = None
    """The number that switches a limit off."""
    restarts: bool = False
    """Whether a change applies only when the trainer next starts."""
    reopens: bool = False
    """Whether a change applies only when the window is next opened."""
    elsewhere: bool = False
    """Whether the system stores it instead of one of Shoal's files."""
    inverted: bool = False
    """Whether a switch is shown on while its value is False, because its label says the opposite of its key."""


def expected_value(setting: Setting, value: object) -> str:
    """Returns what a value of this setting must be, if `value` is not allowed; empty if it is.

    >>> one = Setting(key="k", kind="number", default=1, group="", label="", help="", least=1, most=9)
    >>> expected_value(one, 12)
    'a whole number from 1 to 9'
    """
    match setting.kind:
        case "switch":
            return "" if isinstance(value, bool) else "on or off"
        case "number":
            whole = isinstance(value, int) and not isinstance(value, bool)
            fits = whole and setting.least <= value <= setting.most  # type: ignore[operator]
            return "" if fits else f"a whole number from {setting.least} to {setting.most}"
        case "choice":
            options = [option for option, _ in setting.options]
            return "" if value in options else " or ".join(map(str, options))
        case "names":
            fits = isinstance(value, list) and len(value) <= MAX_NAMES and all(map(_is_name, value))
            return "" if fits else f"a list of at most {MAX_NAMES} names of programs"
        case "hours":
            return "" if _is_hours(value) else "any, never, or hours such as 22:00-07:00"
        case "text":
            fits = isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and value.isprintable()
            return "" if fits else f"one line of at most {MAX_TEXT_LENGTH} characters"


def refusal_sentence(setting: Setting, value: object) -> str:
    """Returns the sentence for a value that is not allowed; empty if it is allowed."""
    wanted = expected_value(setting, value)
    return f"{setting.label} must be {wanted}." if wanted else ""


def _is_name(value: object) -> bool:
    return (
        isinstance(value, str) and value.strip() != "" and len(value) <= MAX_NAME_LENGTH and value.isprintable()
    )


def _is_hours(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(parse_span(value))
    except ValueError:
        return False
