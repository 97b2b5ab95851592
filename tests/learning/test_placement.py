"""Placement and lesson zero, as pure functions."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from app.learning import placement, zero
from app.learning.placement import FamilyTried, Taught, miscounts
from app.sapo.families import FAMILIES
from app.sapo.questions import Coordinates, draw
from engines.contract import TokenSequence


def tried(family: str, any: int, questions: int = 6, solved: int | None = None) -> FamilyTried:
    return FamilyTried(
        family=family,
        level=0,
        questions=questions,
        any=any,
        answers=8 * questions,
        solved=any if solved is None else solved,
    )


def taught(family: str, number: int, logprob: float = -1.0) -> Taught:
    coordinates = Coordinates(family=family, level=0, seed=number, index=0)
    return Taught(coordinates=coordinates, question=f"q{number}", completion=f"w #{number}", logprob=logprob)


def test_only_what_looks_best_is_asked_further() -> None:
    every = [tried(f"f{n:02}", n % 3, questions=2) for n in range(60)]
    first = placement.next_stage([FamilyTried(family=one.family, level=0) for one in every], 0)
    assert first is not None and len(first.families) == 48 and (first.first, first.count) == (0, 2)
    second = placement.next_stage(every, 1)
    assert second is not None and len(second.families) == 12 and (second.first, second.count) == (2, 4)
    assert all(tried(name, 0).any or int(name[1:]) % 3 == 2 for name in second.families)
    assert placement.next_stage(every, len(placement.STAGES)) is None
    assert placement.next_stage([tried("gcd", 0)], 1) is not None
    assert placement.next_stage([tried("gcd", 0)], 2) is None


def test_what_time_did_not_suffice_for_is_not_asked_further() -> None:
    left = [FamilyTried(family=f"late{n}", level=0) for n in range(20)]
    second = placement.next_stage([*left, tried("gcd", 0, questions=2)], 1)
    assert second is not None and second.families == ("gcd",)


def test_a_family_begins_where_one_question_in_ten_is_answered() -> None:
    found = placement.families([tried("gcd", 1, 10), tried("lcm", 1, 11), tried("chain_sum", 5, 10)])
    assert found == {"chain_sum": 0, "gcd": 0}
    assert len(placement.families([tried(f"f{n}", 3) for n in range(20)])) == placement.MOST_FAMILIES
    assert placement.families([]) == {}


def test_what_can_be_guessed_counts_for_less() -> None:
    guessed = msgspec.structs.replace(tried("coin_flip", 6, solved=20), crossed=48, lucky=19)
    known = [
        msgspec.structs.replace(tried(f"f{n}", 6, solved=12), crossed=48, lucky=1)
        for n in range(placement.MOST_FAMILIES)
    ]
    assert "coin_flip" not in placement.families([guessed, *known])
    assert "coin_flip" in placement.families([guessed, *known[1:]])


def test_a_lesson_deals_its_families_in_turn_and_takes_the_likeliest_answer_of_a_question() -> None:
    found = [taught("gcd", 1, -2.0), taught("gcd", 1, -0.5), taught("gcd", 2), taught("lcm", 3), taught("x", 4)]
    lesson = placement.lesson(found, ["gcd", "lcm"])
    assert [(one.coordinates.seed, one.logprob) for one in lesson] == [(1, -0.5), (3, -1.0), (2, -1.0)]
    assert len(placement.lesson([taught("gcd", n) for n in range(200)], ["gcd"])) == placement.ENOUGH


def test_a_family_is_asked_on_until_it_has_its_share_of_a_lesson() -> None:
    share = placement.ENOUGH // 2
    found = [taught("gcd", n) for n in range(share)] + [taught("lcm", 1) for _ in range(share)]
    assert placement.short_of(found, ("gcd", "lcm")) == ("lcm",)
    wrong = msgspec.structs.replace(taught("gcd", 0), completion="1 + 1 = 3. #2")
    assert placement.short_of([wrong, *found[1:]], ("gcd", "lcm")) == ("gcd", "lcm")


def test_a_lesson_has_enough_steps_and_every_answer_as_often() -> None:
    for count in (1, 7, 17, 64):
        rows = [TokenSequence(prompt_T=[n], completion_T=[n, 0]) for n in range(count)]
        steps = zero.batches(rows, Random(1))
        seen = [row.prompt_T[0] for step in steps for row in step.rows_S]
        assert len({seen.count(n) for n in range(count)}) == 1
        assert all(abs(sum(map(sum, (row.weights_T for row in step.rows_S))) - 1) < 1e-9 for step in steps)
    assert zero.batches([], Random(1)) == []


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.work])
def test_no_worked_example_miscounts(family: str) -> None:
    for level in range(len(FAMILIES[family].levels)):
        for seed in range(8):
            text = FAMILIES[family].worked(draw(family, level, 2**45 + seed * 2**22).entry)
            assert not miscounts(text), text


def test_false_equations_of_decimals_are_noticed() -> None:
    assert not miscounts("2.5 + 1.7 = 4.2. 4.2 - 0.70 = 3.5. #3.5")
    assert miscounts("2.5 + 1.7 = 4.3. #4.3")
    assert miscounts("3. 2 + 2 = 5. #5")
    assert not miscounts("1" * 3000)
