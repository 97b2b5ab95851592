"""Placement and the first lesson, as pure functions."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from app.learning import first_lesson, placement, placement_questions
from app.learning.placement import FamilyTrial, OwnExample, Placement
from app.sapo.asking import BRIEF
from app.sapo.families import FAMILIES
from app.sapo.questions import Coordinates, draw
from app.sapo.reading.expression import has_false_equation
from engines.contract import TokenSequence


def tried(family: str, any: int, questions: int = 6, solved: int | None = None) -> FamilyTrial:
    return FamilyTrial(
        family=family,
        level=0,
        questions=questions,
        any=any,
        answers=8 * questions,
        solved=any if solved is None else solved,
    )


def taught(family: str, number: int, logprob: float = -1.0) -> OwnExample:
    coordinates = Coordinates(family=family, level=0, seed=number, index=0)
    return OwnExample(
        coordinates=coordinates, question=f"q{number}", completion=f"w #{number}", logprob=logprob
    )


def first(names: str, **changes: object) -> Placement:
    """A placement at its beginning."""
    every = tuple(FamilyTrial(family=name, level=0) for name in names.split())
    return msgspec.structs.replace(Placement(way=BRIEF, families={}, tried=every, in_progress=True), **changes)


def answer(found: Placement, solved: dict[str, int]) -> Placement:
    """What is asked next is answered: so many of four answers are right in these families, and none elsewhere
    by chance."""
    asked = placement_questions.next_questions(found)
    rewards = {one: [((1,) * solved.get(one.family, 0) + (0,) * 4)[:4]] * one.questions for one in asked}
    right = [
        msgspec.structs.replace(taught(one.family, one.first + n), question=f"{one.family} {one.first + n}")
        for one in asked
        for n in range(one.questions)
        if solved.get(one.family)
    ]
    return placement_questions.with_results(
        found, [(one, [(own, (0,) * 4) for own in rewards[one]]) for one in asked], right
    )


NAMES = "chain_sum gcd lcm products count_bits dice aiw maze countdown n_queens"


@pytest.fixture
def waves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight families at a time."""
    monkeypatch.setattr(placement_questions, "QUESTIONS_PER_CALL", 8)


def test_a_look_asks_one_question_of_each_family_and_five_more_where_it_was_answered(waves: None) -> None:
    found = answer(first(NAMES), {})
    assert [one.questions for one in found.tried] == [1] * 8 + [0] * 2
    assert [tuple(one) for one in placement_questions.next_questions(found)] == [
        ("countdown", 0, 0, 1),
        ("n_queens", 0, 0, 1),
    ]
    found = answer(first(NAMES), {"gcd": 1, "maze": 1})
    found = answer(answer(found, {"gcd": 1}), {"gcd": 1})
    assert {one.family: (one.questions, one.any) for one in found.tried if one.any} == {
        "gcd": (6, 6),
        "maze": (6, 1),
    }


def test_it_begins_with_the_first_wave_that_has_families_which_do_well(waves: None) -> None:
    found = first(NAMES)
    for _ in range(50):
        if not placement_questions.next_questions(found):
            break
        found = answer(found, {"gcd": 1, "lcm": 2})
    ended = placement_questions.finish(found)
    assert ended.families == {"lcm": 0, "gcd": 0} and ended.untried == ("countdown", "n_queens")
    assert len(ended.right_answers) == placement.LESSON_ANSWERS and not ended.in_progress
    assert [placement.families_to_try(ended, {}, round) for round in (1, 2)] == [["n_queens"], ["countdown"]]
    full = msgspec.structs.replace(ended, joined={str(n): 0 for n in range(placement.MAX_ACTIVE - 3)})
    near = {"n_queens": 5.0, "countdown": 6.0}
    assert placement.families_to_try(full, near, 0) == ["n_queens"], "two that open would be one too many"
    later = placement.after_trial(ended, "countdown", 0, (0,) * 8, ())
    later = placement.after_trial(later, "n_queens", 0, (1, 1, 0, 0), (0,) * 4)
    assert later.joined == {"n_queens": 0} and later.untried == () and "countdown" in later.waiting
    assert placement.without_hopeless(later, ["n_queens"]).joined == {}


def test_a_look_that_nothing_comes_of_ends_and_one_that_its_owner_ends_begins_anyway() -> None:
    found = answer(answer(first(NAMES), {}), {})
    assert placement_questions.next_questions(found) == () and placement_questions.finish(found).families == {}
    skipped = placement_questions.finish(first(NAMES), anyway=True)
    assert (
        list(skipped.families) == NAMES.split()[: placement.MAX_STARTING_FAMILIES] and not skipped.right_answers
    )
    assert placement_questions.starting_families(skipped) == {}


def test_a_question_that_cannot_be_made_counts_as_unanswered() -> None:
    found = first("gcd")
    (asked,) = placement_questions.next_questions(found)
    found = placement_questions.with_results(found, [(asked, [])], [])
    assert found.tried[0].questions == 1 and placement_questions.next_questions(found) == ()


def test_a_family_that_is_too_easy_is_tried_a_level_higher() -> None:
    found = answer(answer(first("gcd"), {"gcd": 4}), {"gcd": 4})
    assert [tuple(one) for one in placement_questions.next_questions(found)] == [("gcd", 1, 0, 1)]
    assert placement_questions.finish(answer(found, {})).families == {"gcd": 0}
    assert placement_questions.finish(answer(found, {"gcd": 1})).families == {"gcd": 1}


def test_a_family_begins_where_one_question_in_ten_is_answered() -> None:
    found = placement.choose_families([tried("gcd", 1, 10), tried("lcm", 1, 11), tried("chain_sum", 5, 10)])
    assert found == {"chain_sum": 0, "gcd": 0}
    assert (
        len(placement.choose_families([tried(f"f{n}", 3) for n in range(20)]))
        == placement.MAX_STARTING_FAMILIES
    )
    assert placement.choose_families([]) == {}


def test_what_can_be_guessed_counts_for_less() -> None:
    guessed = msgspec.structs.replace(tried("coin_flip", 6, solved=20), crossed=48, lucky=19)
    known = [
        msgspec.structs.replace(tried(f"f{n}", 6, solved=12), crossed=48, lucky=1)
        for n in range(placement.MAX_STARTING_FAMILIES)
    ]
    assert "coin_flip" not in placement.choose_families([guessed, *known])
    assert "coin_flip" in placement.choose_families([guessed, *known[1:]])


def test_a_lesson_deals_its_families_in_turn_and_takes_the_likeliest_answer_of_a_question() -> None:
    found = [taught("gcd", 1, -2.0), taught("gcd", 1, -0.5), taught("gcd", 2), taught("lcm", 3), taught("x", 4)]
    lesson = placement.first_lesson_answers(found, ["gcd", "lcm"])
    assert [(one.coordinates.seed, one.logprob) for one in lesson] == [(1, -0.5), (3, -1.0), (2, -1.0)]
    assert (
        len(placement.first_lesson_answers([taught("gcd", n) for n in range(200)], ["gcd"]))
        == placement.LESSON_ANSWERS
    )


def test_a_family_is_asked_on_until_it_has_its_share_of_a_lesson() -> None:
    share = placement.LESSON_ANSWERS // 2
    found = [taught("gcd", n) for n in range(share)] + [taught("lcm", 1) for _ in range(share)]
    assert placement.short_of_answers(found, ("gcd", "lcm")) == ("lcm",)
    wrong = msgspec.structs.replace(taught("gcd", 0), completion="1 + 1 = 3. #2")
    assert placement.short_of_answers([wrong, *found[1:]], ("gcd", "lcm")) == ("gcd", "lcm")


def test_a_lesson_has_enough_steps_and_every_answer_as_often() -> None:
    for count in (1, 7, 17, 64):
        rows = [TokenSequence(prompt_T=[n], completion_T=[n, 0]) for n in range(count)]
        steps = first_lesson.lesson_batches(rows, Random(1))
        seen = [row.prompt_T[0] for step in steps for row in step.rows_S]
        assert len({seen.count(n) for n in range(count)}) == 1
        assert all(abs(sum(map(sum, (row.weights_T for row in step.rows_S))) - 1) < 1e-9 for step in steps)
    assert first_lesson.lesson_batches([], Random(1)) == []


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.work])
def test_no_worked_example_miscounts(family: str) -> None:
    for level in range(len(FAMILIES[family].levels)):
        for seed in range(8):
            text = FAMILIES[family].worked(draw(family, level, 2**45 + seed * 2**22).entry)
            assert not has_false_equation(text), text


def test_false_equations_of_decimals_are_noticed() -> None:
    assert not has_false_equation("2.5 + 1.7 = 4.2. 4.2 - 0.70 = 3.5. #3.5")
    assert has_false_equation("2.5 + 1.7 = 4.3. #4.3")
    assert has_false_equation("3. 2 + 2 = 5. #5")
    assert not has_false_equation("1" * 3000)
