"""A setting: declared once, with its type, default, label, help and search words. The node's own are in
app.node.rules.preferences, the window's in app.ui.view.settings; everything that shows or checks a setting uses
its declaration alone.

Texts are English here; a window translates them where it shows them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from app.node.rules.schedule import parse_span

NAME_LENGTH, NAMES = 80, 50
TEXT_LENGTH = 500

Kind = Literal["switch", "number", "choice", "names", "hours", "text"]
"""Values are bool; int; the key of an option; a list of strings; text for app.node.rules.schedule.parse_span;
one line of text."""

AS_AT_FIRST = "It is as at the first start."
"""What happens to a saved setting whose value is no longer allowed."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """`options` are (value, label): all there are of a choice, suggestions for a number or a text. `least` and
    `most` bound a number of `unit`."""

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
    restarts: bool = False
    """A change applies when the trainer next starts."""
    reopens: bool = False
    """A change applies when the window is next opened."""
    elsewhere: bool = False
    """The system stores it, not one of our files."""


def misfit(setting: Setting, value: object) -> str:
    """What a value of this setting must be, if `value` is not allowed; empty if it is.

    >>> misfit(Setting(key="k", kind="number", default=1, group="", label="", help="", least=1, most=9), 12)
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
            fits = isinstance(value, list) and len(value) <= NAMES and all(map(_is_name, value))
            return "" if fits else f"a list of at most {NAMES} names of programs"
        case "hours":
            return "" if _is_hours(value) else "any, never, or hours such as 22:00-07:00"
        case "text":
            fits = isinstance(value, str) and len(value) <= TEXT_LENGTH and value.isprintable()
            return "" if fits else f"one line of at most {TEXT_LENGTH} characters"


def refusal(setting: Setting, value: object) -> str:
    """The same as a sentence."""
    wanted = misfit(setting, value)
    return f"{setting.label} must be {wanted}." if wanted else ""


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.strip() != "" and len(value) <= NAME_LENGTH and value.isprintable()


def _is_hours(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(parse_span(value))
    except ValueError:
        return False
