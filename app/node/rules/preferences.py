"""The owner's settings for when and how much a node runs, each declared once (app.node.rules.setting). Stored
in HOME/settings.json; the owner's orders (pause, snooze) are stored elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.common import files
from app.node.record.reasons import Dial, Reason
from app.node.rules.causes import LOAD_CAUSES, POWER_CAUSES, RuleSettings
from app.node.rules.orders import Orders
from app.node.rules.setting import (
    ANY_TIME,
    AS_AT_FIRST,
    Setting,
    parse_span,
    refusal_sentence,
)

FILE = "settings.json"
ONE_APP = 1.5
"""Cores that one ordinary app keeps busy; a low-priority process beside it does not disturb anyone."""

WHEN, MUCH, EXTRAS = "When to learn", "How much of the computer", "Extras"

RULE_OF = {
    Reason.OUTSIDE_HOURS: "hours",
    Reason.IN_USE: "contribute_when_idle",
    Reason.USE_UNKNOWN: "contribute_when_idle",
    **{
        reason: cause.setting
        for cause in (*POWER_CAUSES, *LOAD_CAUSES)
        for reason in (cause.reason, cause.unknown)
    },
}
"""The setting that controls each reason to wait. Waiting for calm after a disturbance has no setting."""


def default_cpu_limit(cores: int) -> int:
    """Returns the default limit for other apps' load, in percent of all cores: one busy app, and at least 25 on
    a computer with many cores.

    >>> [default_cpu_limit(cores) for cores in (1, 2, 4, 8, 64)]
    [100, 75, 38, 25, 25]
    """
    return min(100, max(25, round(100 * ONE_APP / cores)))


SETTINGS: tuple[Setting, ...] = (
    Setting(
        key="contribute_when_idle",
        kind="switch",
        default=True,
        group=WHEN,
        label="Also while I use this computer",
        help="Off: it waits until you're away.",
        inverted=True,
        words="contribute idle away keyboard mouse background",
    ),
    Setting(
        key="idle_s",
        kind="number",
        default=180,
        least=1,
        most=24 * 3600,
        unit="s",
        group=WHEN,
        label="Time away before it starts",
        help="Counts from your last key press or mouse move.",
        words="idle minutes seconds wait delay",
        options=(
            (60, "1 minute"),
            (180, "3 minutes"),
            (300, "5 minutes"),
            (600, "10 minutes"),
            (1800, "30 minutes"),
        ),
    ),
    Setting(
        key="hours",
        kind="hours",
        default=ANY_TIME,
        group=WHEN,
        label="Hours",
        help="When it may learn, every day. A night may end on the next morning.",
        words="schedule hours night day time plan",
    ),
    Setting(
        key="on_battery",
        kind="switch",
        default=False,
        group=WHEN,
        label="Also on battery",
        help="Off: it waits until the computer is plugged in.",
        words="laptop power supply mains charger",
    ),
    Setting(
        key="with_saver",
        kind="switch",
        default=False,
        group=WHEN,
        label="Also with the battery saver on",
        help="Off: it waits while the system saves power.",
        words="power saver low-power mode energy",
    ),
    Setting(
        key="during_full_screen",
        kind="switch",
        default=False,
        group=WHEN,
        label="Also while an app fills the screen",
        help="Off: it waits during films, games and presentations.",
        words="full screen game film video presentation",
    ),
    Setting(
        key="cpu_limit",
        kind="number",
        default=default_cpu_limit(os.cpu_count() or 1),
        least=1,
        most=100,
        unit="%",
        off=100,
        group=WHEN,
        label="Give way when other apps are busy",
        help="Pause when other apps use more than this much of the processor. 100 switches this off.",
        words="cpu load busy others processor",
    ),
    Setting(
        key="gpu_limit",
        kind="number",
        default=25,
        least=1,
        most=100,
        unit="%",
        off=100,
        group=WHEN,
        label="Give way when others use the graphics card",
        help="Pause when other apps use more than this much of the graphics card. 100 switches this off.",
        words="gpu load busy others nvidia graphics",
    ),
    Setting(
        key="memory_limit",
        kind="number",
        default=5,
        least=0,
        most=30,
        unit="%",
        off=0,
        group=WHEN,
        label="Memory that stays free",
        help="It frees its memory when less than this is left. 0 switches this off.",
        words="ram memory pressure free swap",
    ),
    Setting(
        key="temperature_limit_c",
        kind="number",
        default=90,
        least=40,
        most=110,
        unit="°C",
        off=110,
        group=WHEN,
        label="Temperature limit",
        help="It waits while the computer is hotter than this. 110 switches this off.",
        words="heat hot temperature cooling fan noise",
    ),
    Setting(
        key="dial",
        kind="choice",
        default=Dial.BALANCED.value,
        group=MUCH,
        label="Effort",
        help=("Quiet: a quarter of the cores, with breaks. Balanced: half. Full: all of them."),
        words="quiet balanced full speed noise threads rest dial",
        options=((Dial.QUIET.value, "Quiet"), (Dial.BALANCED.value, "Balanced"), (Dial.FULL.value, "Full")),
    ),
    Setting(
        key="trainer_memory",
        kind="number",
        default=80,
        least=10,
        most=100,
        unit="%",
        group=MUCH,
        label="Memory at most",
        help="Learning may use at most this share of the computer's memory. 100 switches this off.",
        words="ram memory limit most cap share",
        restarts=True,
    ),
    Setting(
        key="disk_cap_gb",
        kind="number",
        default=0,
        least=0,
        most=10_000,
        unit="GB",
        group=MUCH,
        label="Disk space",
        help=(
            "Above this, Shoal deletes old answers, logs and temporary files. What your model learned "
            "and downloaded models always stay."
        ),
        words="disk space storage limit quota cap size folder gigabytes",
        options=((0, "No limit"), (1, "1 GB"), (2, "2 GB"), (5, "5 GB"), (10, "10 GB"), (50, "50 GB")),
    ),
    Setting(
        key="receipts",
        kind="switch",
        default=True,
        group=EXTRAS,
        label="Say thanks for answers",
        help="Tells a peer that your model learned from its answers, and what kind of puzzle.",
        words="receipts helped thanks share privacy",
    ),
    Setting(
        key="people",
        kind="switch",
        default=True,
        group=EXTRAS,
        label="Learn from people too",
        help="Puzzle answers that people typed and shared. Off: your model learns from models and you alone.",
        words="human people answers teacher swarm peers",
    ),
)
_BY_KEY = {setting.key: setting for setting in SETTINGS}
DEFAULTS: dict[str, Any] = {setting.key: setting.default for setting in SETTINGS}


class PreferenceError(ValueError):
    """A setting cannot have this value; the message is one sentence that says which values are allowed."""


class Preferences:
    """The owner's settings by key. Every change is saved immediately."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        found, self.complaint = files.read_or_set_aside(self._path, dict[str, Any])
        found = found or {}
        self.values = dict(DEFAULTS)
        self._others = {key: value for key, value in found.items() if key not in _BY_KEY}
        for key, value in found.items():
            if key in self._others:
                continue  # of another version
            try:
                check(key, value)
            except PreferenceError as error:
                self.complaint = self.complaint or f"{error} {AS_AT_FIRST}"
            else:
                self.values[key] = value

    def change(self, changed: Mapping[str, object]) -> None:
        """Changes all of the given settings or none. Raises PreferenceError for invalid values, and OSError if
        they cannot be saved; the change then applies until the node ends."""
        for key, value in changed.items():
            check(key, value)
        self.values = {**self.values, **changed}
        different = {key: value for key, value in self.values.items() if value != DEFAULTS[key]}
        files.write_json(self._path, {**self._others, **different})

    def rules(self, orders: Orders, class_paused: bool = False, serving: bool = False) -> RuleSettings:
        """Returns the settings in the form that `decide` takes."""
        own = {
            key: _rule(_BY_KEY[key], value)
            for key, value in self.values.items()
            if key in RuleSettings.__struct_fields__
        }
        return RuleSettings(class_paused=class_paused, serving=serving, orders=orders, **own)


def check(key: str, value: object) -> None:
    """Raises PreferenceError if the setting does not exist or cannot have this value."""
    setting = _BY_KEY.get(key)
    if setting is None:
        raise PreferenceError(f"There is no setting {key[:40]!r}.")
    if wrong := refusal_sentence(setting, value):
        raise PreferenceError(wrong)


def _rule(setting: Setting, value: Any) -> Any:
    """Returns a setting's value as a rule takes it: a limit that is off as None, percent as a share."""
    match setting.kind:
        case "number" if value == setting.off:
            return None
        case "number":
            return value / 100 if setting.unit == "%" else float(value)
        case "hours":
            return parse_span(value)
        case "choice":
            return Dial(value)
    return value
