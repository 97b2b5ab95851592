"""The owner's settings: declared completely, checked, saved as a whole, and what the rules make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from app.cli import run
from app.node.record import settings
from app.node.record.reasons import Dial
from app.node.rules.causes import RuleSettings
from app.node.rules.orders import Orders
from app.node.rules.preferences import DEFAULTS, SETTINGS, PreferenceError, Preferences, check
from app.node.rules.setting import HourSpan
from app.node.swarm.choice import SwarmToJoin
from app.node.swarm.member import SwarmMember


def test_every_setting_has_all_that_a_person_needs() -> None:
    assert len(DEFAULTS) == len(SETTINGS)
    for setting in SETTINGS:
        check(setting.key, setting.default)
        assert setting.label and setting.group and setting.words
        assert setting.help.endswith(".")
        assert setting.kind != "choice" or setting.options
        assert setting.kind != "number" or setting.least < setting.most
        for value, label in setting.options:
            check(setting.key, value)
            assert label


def test_what_is_changed_is_there_at_the_next_start(tmp_path: Path) -> None:
    changed = {
        "contribute_when_idle": False,
        "idle_s": 60,
        "hours": "22:00-07:00",
        "cpu_limit": 100,
        "gpu_limit": 50,
        "memory_limit": 0,
        "temperature_limit_c": 110,
        "dial": "quiet",
    }
    Preferences(tmp_path).change(changed)
    again = Preferences(tmp_path)
    assert again.values == DEFAULTS | changed and not again.complaint
    assert again.rules(Orders(paused=True)) == RuleSettings(
        contribute_when_idle=False,
        idle_s=60.0,
        hours=HourSpan(22 * 60, 7 * 60),
        cpu_limit=None,
        gpu_limit=0.5,
        memory_limit=None,
        temperature_limit_c=None,
        dial=Dial.QUIET,
        orders=Orders(paused=True),
    )
    again.change(DEFAULTS)
    assert json.loads((tmp_path / "settings.json").read_text()) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("volume", 3),
        ("contribute_when_idle", 1),
        ("idle_s", 0),
        ("idle_s", 10**6),
        ("idle_s", 2.5),
        ("idle_s", True),
        ("idle_s", "60"),
        ("dial", "louder"),
        ("dial", ["quiet"]),
        ("weekday_hours", "whenever"),
        ("weekend_hours", None),
        ("cpu_limit", 0),
        ("memory_limit", 31),
        ("temperature_limit_c", 20),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_of_it_is_taken(tmp_path: Path, key: str, value: object) -> None:
    preferences = Preferences(tmp_path)
    with pytest.raises(PreferenceError, match=r"\.$"):
        preferences.change({"on_battery": True, key: value})
    assert preferences.values == DEFAULTS and not list(tmp_path.iterdir())


def test_a_file_that_somebody_spoiled_costs_what_is_spoiled(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"idle_s": -5, "on_battery": true, "volume": 3}')
    found = Preferences(tmp_path)
    assert found.values == DEFAULTS | {"on_battery": True} and "Time away" in found.complaint
    (tmp_path / "settings.json").write_text("{")
    found = Preferences(tmp_path)
    assert found.values == DEFAULTS and "is kept as damaged-settings.json" in found.complaint
    assert len(list(tmp_path.glob("damaged-*"))) == 1


def test_a_swarm_follows_its_switches_without_a_restart(tmp_path: Path) -> None:
    plan = settings.Settings(
        model="starter",
        families={"gcd": 0},
        groups=8,
        external=4,
        max_tokens=64,
        learning_rate=1e-4,
        rank=16,
        recipe="default",
        probe_every=10,
        probe_questions=64,
        solo=False,
        rounds=None,
        seed=None,
        shuffled_rewards=False,
    )
    swarm = cast(SwarmMember, run._swarm(plan, tmp_path, SwarmToJoin.named((), None), ()))
    switches = (swarm.buffer._people, swarm._receipts)
    assert [like() for like in switches] == [True, True]
    Preferences(tmp_path).change({"people": False, "receipts": False})
    assert [like() for like in switches] == [False, False]
