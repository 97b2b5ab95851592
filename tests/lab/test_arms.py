from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lab.arms import Arm, ArmError, parse_arm, parse_arms
from app.sapo.recipes import RECIPES


def test_the_grammar() -> None:
    assert parse_arm("8/0", "faithful") == Arm(name="8/0", own=8, peer=0, recipe="faithful")
    full = parse_arm("4/4+ds@default-guard+foes=liar30+fall=4!shuffled", "faithful")
    assert (full.own, full.peer, full.recipe, full.dynamic, full.shuffled) == (4, 4, "default", True, True)
    assert (full.guarded, full.foes, full.percent, full.falls) == (False, "liar", 30, 4)
    assert full.key == "4-4+ds@default-guard+foes=liar30+fall=4!shuffled" and not full.is_alone
    assert parse_arm("8/0", "faithful").is_alone


def test_an_arm_without_a_recipe_takes_the_studys_but_keeps_its_short_name() -> None:
    (arm,) = parse_arms(" 4/4 ,", "default")
    assert (arm.name, arm.recipe, arm.key) == ("4/4", "default", "4-4@default")


NONSENSE = [
    "", ",", "8", "8/", "/4", "8/0+", "8/0+sd", "8/0@", "8/0@best", "8/0!", "0/8", "8/-1", "8.0/0", "999/0",
    "8/999", "8/0+ds+ds", "8/0@default@faithful", "8/0,8/0", "8/0,8/0@faithful", "٨/٠x", "8/0;4/4", "8/0\n4/4",
    "4/4+foes=burglar30", "4/4+foes=poison", "4/4+fall=0", "4/4+guard", "4/4-steps",
]  # fmt: skip


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ArmError) as refusal:
        parse_arms(text, "faithful")
    assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value).replace(repr(text), "")


@given(st.text(alphabet="0123456789/+ds@defaultfaithful!shuffled, ", max_size=30))
def test_whatever_is_read_reads_the_same_again(text: str) -> None:
    try:
        read = parse_arms(text, "faithful")
    except ArmError:
        return
    assert parse_arms(",".join(arm.name for arm in read), "faithful") == read
    assert len({arm.key for arm in read}) == len(read)
    assert not any(set(arm.key) & set('/\\:*?"<>| ') for arm in read)  # a file name on every system


def test_default_is_the_apps_recipe_and_arms_take_away() -> None:
    own = RECIPES["default"]
    assert parse_arm("4/4@default", "faithful").effective_recipe == msgspec.structs.replace(own, falls=None)
    assert parse_arm(f"4/4@default+fall={own.falls}", "faithful").effective_recipe == own
    less = parse_arm("4/4@default-guard", "faithful").effective_recipe
    assert (less.checks, less.by_record, less.keeps_form, less.vigil) == ((), False, False, False)
    assert less.groups_per_step == own.groups_per_step
