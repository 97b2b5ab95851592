"""Coordinates: what they refuse, and how sound questions are found."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import getcontext
from typing import Any

import msgspec
import pytest

from app.sapo import questions
from app.sapo.families import FAMILIES
from app.sapo.questions import Coordinates, QuestionError, UnsoundQuestion, draw, generate


def coordinates(**changes: Any) -> Coordinates:
    return Coordinates(**({"family": "gcd", "level": 0, "seed": 1, "index": 0} | changes))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"family": "rubiks_cube"}, "no family called 'rubiks_cube'. Known families: aiw, arc_1d"),
        ({"level": 5}, "gcd has levels 0 to 4, not 5"),
        ({"level": -1}, "gcd has levels 0 to 4, not -1"),
        ({"version": "0.1.0/1"}, "version 0.1.0/1; this node speaks"),
        ({"seed": -1}, "out of range"),
        ({"seed": 2**53}, "out of range"),
        ({"index": 2**20}, "out of range"),
    ],
)
def test_coordinates_that_name_nothing(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(QuestionError, match=sentence.replace(".", r"\.")) as refusal:
        generate(coordinates(**changes))
    assert not isinstance(refusal.value, UnsoundQuestion)


def unsound(family: str, level: int) -> Iterator[Coordinates]:
    for seed in range(200):
        place = coordinates(family=family, level=level, seed=seed * 10**7)
        try:
            generate(place)
        except UnsoundQuestion:
            yield place


@pytest.mark.parametrize(
    ("family", "level", "share"),
    [
        ("propositional_logic", 1, 0.48),
        ("caesar_cipher", 0, 0.25),
        ("calendar_arithmetic", 2, 0.21),
        ("binary_matrix", 0, 0.22),
        ("letter_counting", 2, 0.34),
        ("decimal_arithmetic", 3, 0.10),
        ("arc_1d", 0, 0.07),
        ("chain_sum", 0, 0.0),
        ("gcd", 4, 0.6),
    ],
)
def test_items_that_are_no_questions_are_refused(family: str, level: int, share: float) -> None:
    assert len(list(unsound(family, level))) / 200 == pytest.approx(share, abs=0.08)


def test_draw_walks_on_to_a_sound_question_of_the_same_seed() -> None:
    place = next(unsound("propositional_logic", 0))
    question = draw("propositional_logic", 0, place.seed)
    assert question.coordinates.seed == place.seed
    assert question.coordinates.index > 0 and question.coordinates.index % questions.INDEX_STRIDE == 0
    assert generate(question.coordinates) == question == draw("propositional_logic", 0, place.seed)


def but_for(sound: Callable[[object], bool]) -> Any:
    return msgspec.structs.replace(FAMILIES["gcd"], sound=sound)


def test_draw_gives_up_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "gcd", but_for(lambda entry: False))  # type: ignore[arg-type]
    with pytest.raises(QuestionError, match="gcd at level 0 has no question at seed 9: take another seed"):
        draw("gcd", 0, 9)


def test_an_error_inside_the_library_is_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "gcd", but_for(lambda entry: bool(1 // 0)))  # type: ignore[arg-type]
    with pytest.raises(UnsoundQuestion):
        generate(coordinates())


def test_threads_may_generate_at_the_same_time_and_leave_nothing_changed() -> None:
    places = [
        draw(family, level, 10**8 * seed).coordinates
        for seed in range(30)
        for family, level in (("gcd", 1), ("decimal_arithmetic", 0), ("number_sorting", 2), ("bf", 0))
    ]
    alone = [generate(place).text for place in places]
    before = sys.stdout
    with ThreadPoolExecutor(8) as threads:
        together = [question.text for question in threads.map(generate, places)]
    assert together == alone
    assert sys.stdout is before
    assert getcontext().prec == 28
    assert max(Counter(alone).values()) < 5
