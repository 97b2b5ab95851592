"""How long a part of a peer's answer is given, and what is learned behind it."""

from __future__ import annotations

import doctest
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.learning import rescue
from app.learning.lesson import Own, PeerTokens, lesson
from app.learning.rescue import Begun, Search, begun, narrowed, openings
from app.learning.state import fresh
from app.sapo.asking import OPEN, SHORT
from app.sapo.defences import Habits
from app.sapo.recipes import RECIPES
from engines.contract import TokenSequence
from tests.learning.test_lesson import own, scored

DEFAULT = RECIPES["default"]


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(rescue)
    assert results.attempted >= 3 and results.failed == 0


@given(st.text(alphabet="4-1= #<answer>", max_size=60))
def test_an_opening_is_the_answers_own_and_never_reaches_its_mark(answer: str) -> None:
    found = openings(answer)
    assert all(answer.startswith(opening) and opening != answer for opening in found)
    assert not any(SHORT in opening or OPEN in opening for opening in found)
    assert found == sorted(set(found), key=len)


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_search_finds_the_length_from_which_on_answers_are_right(length: int, enough: int) -> None:
    search, tried = Search(low=0, high=length), []
    while search.at is not None:
        tried.append(search.at)
        search = narrowed(search, [1, 1] if search.at >= enough else [0, 0])
    assert len(tried) <= 6 and len(set(tried)) == len(tried)
    assert not length or min(abs(at - enough) for at in tried) <= 1 or enough >= length


def test_rescued_groups_teach_and_say_nothing_of_what_own_answers_are_like() -> None:
    failed, other = own([0, 0]), own([1, 0], 2)
    long = [msgspec.structs.replace(one, logprobs_T=[-9.0, -9.0]) for one in other.completions_G]
    behind = Own(other.scored, [1, 7, 8], long)
    start = fresh({"gcd": 0})
    plain = lesson(DEFAULT, start, [failed], [], rate=0.1, order=Random(0))
    taught = lesson(DEFAULT, start, [failed], [], rate=0.1, order=Random(0), rescued_P=[behind])
    assert plain.batches == []
    (batch,) = taught.batches
    assert [row.prompt_T for row in batch.rows_S] == [[1, 7, 8]] * 2
    assert [row.completion_T for row in batch.rows_S] == [one.tokens_T for one in long]
    assert msgspec.structs.replace(taught.state, vigil=plain.state.vigil) == plain.state
    assert taught.state.vigil.mixed and not plain.state.vigil.mixed


def test_the_likeliest_right_answer_that_passes_and_shows_work_is_gone_on_from() -> None:
    texts = ("4-1=3 9 #3", "hail 4-1=3 #3", "#3", "4-1=3 #3", "4-1=2 #2")
    group = msgspec.structs.replace(scored([1, 1, 1, 1, 0]).group, completions_G=texts)
    right = msgspec.structs.replace(scored([1, 1, 1, 1, 0]), group=group)
    logprobs = [[-0.9], [-9.0], [-0.1], [-0.5], [-0.1]]
    sequences = [TokenSequence(prompt_T=[9], completion_T=[7])] * 5
    habits = Habits(lowest_W=(-1.0,) * 4, length=4.0)
    found = begun(DEFAULT, habits, PeerTokens(right, sequences, logprobs))
    assert found == Begun(openings=["4-1=3"], taken=3, kept_out=1)
    assert begun(DEFAULT, None, PeerTokens(right, sequences, logprobs)).taken == 4
