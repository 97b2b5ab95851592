from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lab.arms import Arm, ArmError, parse_arm, parse_arms
from app.sapo.recipes import RECIPES


def test_the_grammar() -> None:
    assert parse_arm("8/0", "faithful") == Arm(name="8/0", own=8, peer=0, recipe="faithful")
    full = parse_arm("4/4+ds@default!shuffled", "faithful")
    assert (full.own, full.peer, full.recipe, full.dynamic, full.shuffled) == (4, 4, "default", True, True)
    assert full.name == "4/4+ds@default!shuffled" and full.key == "4-4+ds@default!shuffled"


def test_options_may_come_in_any_order_and_are_named_in_one() -> None:
    assert parse_arm("4/4!shuffled@default+ds", "faithful") == parse_arm("4/4+ds@default!shuffled", "faithful")


def test_an_arm_without_a_recipe_takes_the_studys_but_keeps_its_short_name() -> None:
    (arm,) = parse_arms(" 04/4 ,", "default")
    assert (arm.name, arm.recipe, arm.key) == ("4/4", "default", "4-4@default")


@pytest.mark.parametrize(
    "text",
    ["", ",", "8", "8/", "/4", "8/0+", "8/0+sd", "8/0@", "8/0@best", "8/0!", "0/8", "8/-1", "8.0/0", "999/0"],
)
def test_nonsense_is_refused_in_one_sentence(text: str) -> None:
    assert_refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "8/999",
        "8/0+ds+ds",
        "8/0@default@faithful",
        "8/0,8/0",
        "8/0,8/0@faithful",
        "٨/٠x",
        "8/0;4/4",
        "8/0\n4/4",
    ],
)
def test_doubles_and_strange_characters_are_refused_too(text: str) -> None:
    assert_refused(text)


def assert_refused(text: str) -> None:
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
    rules = {
        text: parse_arm(text, "faithful").effective_recipe
        for text in ("4/4@default", "4/4@default-guard+steps=1")
    }
    assert rules["4/4@default"] == msgspec.structs.replace(RECIPES["default"], falls=None)
    assert (
        parse_arm(f"4/4@default+fall={RECIPES['default'].falls}", "faithful").effective_recipe
        == RECIPES["default"]
    )
    less = rules["4/4@default-guard+steps=1"]
    assert (less.checks, less.by_record, less.groups_per_step) == ((), False, None)
    some = parse_arm("4/4@default+guard=form.trust", "faithful").effective_recipe
    assert (some.checks, some.by_record, some.groups_per_step) == (("form",), True, 2)


def test_what_the_recipe_does_anyway_is_not_in_the_name() -> None:
    for text in ("4/4@default+guard", "4/4@default+steps=2", "4/4@default+steps=2+guard"):
        assert parse_arm(text, "faithful") == parse_arm("4/4@default", "faithful")
    assert parse_arm("8/0@default-guard", "faithful").name == "8/0@default", (
        "there are no peers to guard against"
    )
    assert parse_arm("4/4+steps=1", "faithful").name == "4/4"
