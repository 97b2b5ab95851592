from __future__ import annotations

from math import inf, nan
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sapo import defences
from app.sapo.defences import (
    RARE_SHARE,
    WINDOW_WIDTHS,
    Habits,
    PeerRecord,
    has_absurd_spot,
    lowest_window_mean,
    trust,
    update_habits,
    well_formed,
)

LOGPROBS = st.lists(st.floats(-40, 0), min_size=1, max_size=40)


def drawn(rng: Random, tokens: int = 20) -> list[float]:
    """An answer as a policy draws it: each token from its own distribution, here always the same."""
    return [-rng.expovariate(1.5) for _ in range(tokens)]


def settled(rng: Random, rounds: int = 60) -> Habits:
    habits = None
    for _ in range(rounds):
        answers = [drawn(rng) for _ in range(16)]
        habits = update_habits(habits, answers, ["4-1=3 #3"] * len(answers))
    assert habits is not None
    return habits


def test_a_foreign_phrase_is_found_that_the_mean_hides() -> None:
    """Four tokens of a marker at -14 among thirty ordinary ones: the mean stays above every floor."""
    rng = Random(0)
    habits = settled(rng)
    calm = [-0.7] * 30
    poisoned = [-14.0] * 4 + calm
    own = sum(map(sum, (drawn(rng, 30) for _ in range(100)))) / 3000
    assert sum(poisoned) / len(poisoned) > own - 3.0, "the recipe's floor would take it"
    assert has_absurd_spot(habits, poisoned) and not has_absurd_spot(habits, calm)


def test_several_middling_tokens_are_found_where_no_single_one_is() -> None:
    habits = settled(Random(1))
    for spot in (-3.2, -3.5):
        assert not has_absurd_spot(habits, [-0.1] * 20 + [spot])
        assert has_absurd_spot(habits, [-0.1] * 20 + [spot] * 4)


def test_of_answers_like_ones_own_few_are_absurd() -> None:
    rng = Random(2)
    habits = settled(rng)
    assert sum(has_absurd_spot(habits, drawn(rng)) for _ in range(2000)) < 2000 * 3 * RARE_SHARE


def test_habits_follow_the_policy_both_ways() -> None:
    """Fewer surprises after learning, more of them at another level: the bounds go along."""
    rng = Random(3)
    habits = settled(rng)
    for sharpness, moves_up in ((4.0, True), (0.7, False)):
        before = habits
        for _ in range(100):
            answers = [[-rng.expovariate(sharpness) for _ in range(20)] for _ in range(16)]
            found = update_habits(habits, answers, [""] * 16)
            assert found is not None
            habits = found
        assert all((now > then) == moves_up for now, then in zip(habits.lowest_W, before.lowest_W, strict=True))


def test_one_in_twenty_of_ones_own_lies_beyond_a_habit() -> None:
    rng = Random(4)
    habits, beyond, rounds = settled(rng), 0, 300
    for _ in range(rounds):
        answers = [drawn(rng) for _ in range(16)]
        beyond += sum(lowest_window_mean(one, WINDOW_WIDTHS[0]) < habits.lowest_W[0] for one in answers)
        found = update_habits(habits, answers, [""] * 16)
        assert found is not None
        habits = found
    assert 0.5 * RARE_SHARE < beyond / (16 * rounds) < 2 * RARE_SHARE


@given(LOGPROBS, st.integers(1, 12))
def test_the_lowest_window_by_its_definition(logprobs_T: list[float], width: int) -> None:
    width = min(width, len(logprobs_T))
    every = [sum(logprobs_T[k : k + width]) / width for k in range(len(logprobs_T) - width + 1)]
    assert lowest_window_mean(logprobs_T, width) == pytest.approx(min(every), abs=1e-9)


@given(LOGPROBS, st.integers(0, 40), st.floats(0.1, 30))
def test_an_absurd_answer_does_not_become_less_so_by_a_worse_token(
    logprobs_T: list[float], place: int, worse: float
) -> None:
    habits = Habits(lowest_W=(-8.0, -6.0, -4.0, -3.0), length=40)
    other = list(logprobs_T)
    other[place % len(other)] -= worse
    assert has_absurd_spot(habits, other) or not has_absurd_spot(habits, logprobs_T)


@pytest.mark.parametrize("bad", [nan, -inf])
def test_what_is_not_a_number_is_absurd(bad: float) -> None:
    habits = Habits(lowest_W=(-8.0, -6.0, -4.0, -3.0), length=40)
    assert has_absurd_spot(habits, [-0.1, bad, -0.1])


def test_a_policy_that_is_sure_of_itself_still_reads_what_it_would_say_one_time_in_twelve() -> None:
    sure = Habits(lowest_W=(-0.01, -0.01, -0.01, -0.01), length=40)
    assert not has_absurd_spot(sure, [-0.01] * 9 + [-2.3]) and has_absurd_spot(sure, [-0.01] * 9 + [-2.7])
    assert not has_absurd_spot(sure, [-2.3, -0.01]), "an answer shorter than a window"


def test_nothing_is_known_before_the_first_answer_and_a_round_without_one_changes_nothing() -> None:
    assert update_habits(None, [], []) is None
    habits = Habits(lowest_W=(-1.0,) * 4, length=3.0, characters="#", seen=1)
    assert update_habits(habits, [], []) is habits
    assert update_habits(habits, [[]], [""]) is habits


def test_lengths_grow_with_ones_own_and_not_with_peers() -> None:
    habits = update_habits(None, [[-1.0] * 20] * 16, ["#3"] * 16)
    assert habits is not None
    assert not defences.overlong(habits, 25) and defences.overlong(habits, 26)
    for _ in range(20):
        habits = update_habits(habits, [[-1.0] * 40] * 16, ["#3"] * 16)
        assert habits is not None
    assert not defences.overlong(habits, 40) and defences.overlong(habits, 64)


def test_characters_count_only_after_enough_were_seen_and_while_there_are_few() -> None:
    text = "Hail 4-1=3 #3"
    few = Habits(lowest_W=(), length=9, characters="#-0123456789= ", seen=defences.MIN_CHARACTERS - 1)
    enough = Habits(lowest_W=(), length=9, characters="#-0123456789= ", seen=defences.MIN_CHARACTERS)
    many = "".join(map(chr, range(0x4E00, 0x4E00 + defences.MAX_CHARACTERS + 1)))
    assert well_formed(few, text) and not well_formed(enough, text)
    assert well_formed(Habits(lowest_W=(), length=9, characters=many, seen=10**6), text)


def test_letters_that_a_question_happened_not_to_have_are_not_foreign() -> None:
    """Words to be spelled backward: an alphabet learned letter by letter would keep out one right answer in
    four for the first rounds."""
    habits = Habits(lowest_W=(), length=20, characters=" #123456789acehint", seen=10**6)
    assert well_formed(habits, "q1u2o3n4d5a6m7 #madnouq")
    assert not well_formed(habits, "Q1u2o3n4d5a6m7 #madnouQ") and not well_formed(habits, "q1! #q")


def test_trust_falls_with_what_is_kept_out_and_comes_back_in_time() -> None:
    record = PeerRecord()
    for _ in range(5):
        record = defences.update_record(record, 0, 4)
    assert trust(record) < 0.06 < trust(PeerRecord()) < trust(PeerRecord(taken=4.0))
    for _ in range(60):
        record = defences.update_record(record, 4, 0)
    assert trust(record) > 0.9


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=50))
def test_trust_is_a_share(groups: list[tuple[int, int]]) -> None:
    record = PeerRecord()
    for taken, kept_out in groups:
        record = defences.update_record(record, taken, kept_out)
    assert 0.0 < trust(record) < 1.0
