from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sapo import curriculum
from app.sapo.curriculum import Curriculum, FamilyTally
from app.sapo.families import FAMILIES
from app.sapo.questions import QuestionError


def after(state: Curriculum, rounds: int, solved: int, answered: int, family: str = "chain_sum") -> Curriculum:
    for _ in range(rounds):
        state = curriculum.after_round(state, {family: FamilyTally(solved, answered)})
    return state


def test_a_family_climbs_after_twenty_rounds_above_seventy_percent_and_not_before() -> None:
    start = curriculum.start({"chain_sum": 1, "gcd": 0})
    assert after(start, 19, 7, 8).levels == {"chain_sum": 1, "gcd": 0}
    climbed = after(start, 20, 7, 8)
    assert climbed.levels == {"chain_sum": 2, "gcd": 0}
    assert climbed.families[0].window == ()
    assert after(climbed, 19, 7, 8).levels["chain_sum"] == 2
    assert after(climbed, 20, 7, 8).levels["chain_sum"] == 3


def test_a_mastered_family_climbs_at_once() -> None:
    start = curriculum.start({"chain_sum": 1, "gcd": 0})
    assert after(start, 3, 32, 32).levels["chain_sum"] == 1, "four rounds"
    assert after(start, 4, 15, 16).levels["chain_sum"] == 2
    assert after(start, 7, 8, 8).levels["chain_sum"] == 1, "64 answers"
    assert after(start, 8, 8, 8).levels["chain_sum"] == 2
    assert after(after(start, 10, 0, 8), 4, 16, 16).levels["chain_sum"] == 2, "its last ones"


def test_exactly_seventy_percent_is_not_above() -> None:
    start = curriculum.start({"chain_sum": 0})
    assert after(start, 40, 7, 10).levels == {"chain_sum": 0}
    assert after(curriculum.after_round(start, {"chain_sum": FamilyTally(8, 10)}), 19, 7, 10).levels == {
        "chain_sum": 1
    }


def test_only_the_last_twenty_rounds_count() -> None:
    failing = after(curriculum.start({"chain_sum": 0}), 50, 0, 8)
    assert len(failing.families[0].window) == 20
    assert after(failing, 16, 7, 8).levels == {"chain_sum": 0}  # 112/160 = 70 %
    assert after(failing, 17, 7, 8).levels == {"chain_sum": 1}


def test_too_few_answers_decide_nothing() -> None:
    start = curriculum.start({"chain_sum": 0})
    assert after(start, 100, 3, 3).levels == {"chain_sum": 0}  # 60 answers in the window
    assert after(start, 15, 4, 4).levels == {"chain_sum": 0}
    assert after(start, 16, 4, 4).levels == {"chain_sum": 1}


def test_the_top_level_is_the_end() -> None:
    top = len(FAMILIES["bf"].levels) - 1
    state = after(curriculum.start({"bf": top}), 45, 8, 8, "bf")
    assert state.levels == {"bf": top}
    assert len(state.families[0].window) == 20


def test_rounds_without_answers_and_foreign_families_change_nothing() -> None:
    state = curriculum.start({"chain_sum": 0})
    assert curriculum.after_round(state, {"chain_sum": FamilyTally(0, 0), "gcd": FamilyTally(8, 8)}) == state


def test_a_state_is_never_changed_in_place_and_survives_json() -> None:
    state = curriculum.start({"chain_sum": 0, "gcd": 2})
    kept = msgspec.json.encode(state)
    later = after(state, 3, 5, 8)
    assert msgspec.json.encode(state) == kept
    assert msgspec.json.decode(msgspec.json.encode(later), type=Curriculum) == later
    assert later.families[0].solved_share == 5 / 8 and later.families[1].solved_share is None


@pytest.mark.parametrize("levels", [{}, {"no_such": 0}, {"gcd": 99}, {"gcd": -1}])
def test_nonsense_is_refused(levels: dict[str, int]) -> None:
    with pytest.raises(QuestionError):
        curriculum.start(levels)


def test_families_are_drawn_uniformly_with_replacement() -> None:
    state = curriculum.start({"chain_sum": 3, "gcd": 1, "lcm": 0})
    rng = Random(1)
    counts = Counter(curriculum.draw(state, rng) for _ in range(3000))
    assert set(counts) == {("chain_sum", 3), ("gcd", 1), ("lcm", 0)}
    assert all(900 < count < 1100 for count in counts.values())


@pytest.mark.parametrize("right", [0, 16])
def test_a_family_with_hardly_any_mixed_group_is_drawn_a_quarter_as_often(right: int) -> None:
    top = len(FAMILIES["bf"].levels) - 1
    state = after(curriculum.start({"bf": top, "gcd": 0, "lcm": 0}), 4, right, 16, "bf")
    rng = Random(1)
    counts = Counter(curriculum.draw(state, rng)[0] for _ in range(3600))
    assert 330 < counts["bf"] < 470 and 1450 < counts["gcd"] < 1750 and 1450 < counts["lcm"] < 1750
    assert state.questions(8) == (6 if right else 8) and state.questions(1) == 1
    assert after(state, 3, 8, 16, "bf").questions(8) == 8, "again in full once that is over"
    assert after(curriculum.start({"bf": top}), 3, 32, 32, "bf").questions(8) == 8, "three rounds are too few"


def test_a_level_that_is_hardly_ever_solved_is_left_again_but_never_below_the_first() -> None:
    climbed = after(curriculum.start({"chain_sum": 1}), 8, 8, 8)
    assert climbed.levels == {"chain_sum": 2}
    assert after(climbed, 19, 0, 8).levels == {"chain_sum": 2}
    back = after(climbed, 20, 0, 8)
    assert back.levels == {"chain_sum": 1} and back.families[0].window == ()
    assert after(back, 60, 0, 8).levels == {"chain_sum": 1}
    assert after(climbed, 60, 1, 8).levels == {"chain_sum": 2}


def test_climbed_levels_are_still_asked_now_and_then() -> None:
    state = after(curriculum.start({"chain_sum": 1}), 16, 8, 8)
    rng = Random(1)
    counts = Counter(curriculum.draw(state, rng)[1] for _ in range(3000))
    assert set(counts) == {1, 2, 3}
    assert 1700 < counts[3] < 1900 and 500 < counts[1] < 700


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=120))
def test_levels_move_one_at_a_time_and_windows_stay_short(rounds: list[tuple[int, int]]) -> None:
    state = curriculum.start({"chain_sum": 0})
    for solved, more in rounds:
        level = state.levels["chain_sum"]
        state = curriculum.after_round(state, {"chain_sum": FamilyTally(solved, solved + more)})
        assert state.levels["chain_sum"] in (level - 1, level, level + 1)
        assert state.levels["chain_sum"] >= 0
        assert len(state.families[0].window) <= 20
