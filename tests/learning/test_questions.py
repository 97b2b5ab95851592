from __future__ import annotations

from hashlib import sha256
from random import Random

import msgspec
import pytest

from app.learning.questions import own_questions
from app.sapo import curriculum, seeds
from app.sapo.families import FAMILIES
from app.sapo.probe import probe_questions
from app.sapo.questions import QUESTIONS_VERSION, Question, QuestionError, QuestionPrompt, draw, make
from app.sapo.scoring.sandbox import Sandbox

OLDEST = tuple(FAMILIES)[:18]
"""What is frozen is theirs; later families are added behind them."""


def mark(questions: list[QuestionPrompt]) -> str:
    return sha256("\n".join(question.text for question in questions).encode()).hexdigest()[:16]


def test_a_later_slot_is_asked_alone_as_among_the_others() -> None:
    state = curriculum.start({"chain_sum": 1, "gcd": 0})
    eight = own_questions(state, b"node", 5, 8, make)
    assert own_questions(state, b"node", 5, 3, make, first=4) == eight[4:7]
    assert {question.coordinates.family for question in eight} == {"chain_sum", "gcd"}


def test_own_questions_are_fixed_by_identity_and_round_and_never_held_out() -> None:
    state = curriculum.start({"chain_sum": 0, "count_bits": 0})
    four, eight = (own_questions(state, b"me", 3, count, make) for count in (4, 8))
    assert four == eight[:4]
    later, others = own_questions(state, b"me", 4, 4, make), own_questions(state, b"you", 3, 4, make)
    assert later != four != others
    assert not any(question.held_out for question in eight)
    assert all(question.coordinates.seed in seeds.TRAINING_SEEDS for question in eight)


def test_a_level_without_a_question_is_told(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    state = curriculum.start({"gcd": 0})
    with pytest.raises(QuestionError, match="gcd has levels 0 to 4, not 9"):
        wrong = curriculum.Curriculum(families=(curriculum.FamilyProgress(family="gcd", level=9),))
        own_questions(wrong, b"me", 1, 2, sandbox.questions)
    monkeypatch.setitem(FAMILIES, "gcd", msgspec.structs.replace(FAMILIES["gcd"], held_out_share=1))
    with pytest.raises(QuestionError, match="gcd at level 0 has no question to train on: all of them are held"):
        own_questions(state, b"me", 1, 2, make)


def test_training_never_meets_the_probe_even_on_a_small_level() -> None:
    probe = {question.content for question in probe_questions({"gcd": 0}, 40)}
    state = curriculum.start({"gcd": 0})
    trained = {q.content for round_ in range(1, 30) for q in own_questions(state, b"me", round_, 8, make)}
    assert probe and trained and not probe & trained


def by_the_rule(state: curriculum.Curriculum, identity: bytes, round_: int, slot: int) -> Question:
    """What a slot asks: the first of its draws that is not held out."""
    family, level = curriculum.draw(state, Random(seeds.hashed_seed("family", identity, round_, slot)))
    attempts = (seeds.training_seed(identity, round_, slot, attempt) for attempt in range(200))
    drawn = (draw(family, level, seed) for seed in attempts)
    return next(question for question in drawn if not question.held_out)


@pytest.mark.parametrize("top", [False, True])
def test_own_questions_are_the_same_wherever_they_are_made(sandbox: Sandbox, top: bool) -> None:
    state = curriculum.start({name: (len(FAMILIES[name].levels) - 1) * top for name in OLDEST})
    for round_ in (1, 2, 70):
        asked = own_questions(state, b"golden", round_, 48, sandbox.questions)
        expected = [by_the_rule(state, b"golden", round_, slot) for slot in range(48)]
        assert asked == [
            QuestionPrompt(coordinates=one.coordinates, text=one.text, held_out=False, content=one.content)
            for one in expected
        ]
    if top and QUESTIONS_VERSION == "0.1.25/5":  # what training draws of this version, for ever
        first = [q for n in (1, 2, 3) for q in own_questions(state, b"golden", n, 32, sandbox.questions)]
        assert mark(first) == "a84d08f2fdc426d3"


def test_a_family_weighs_the_same_in_a_probe_however_few_questions_it_has() -> None:
    questions = probe_questions({"products": 0, "chain_sum": 0}, 120)
    products = [one.text for one in questions if one.coordinates.family == "products"]
    assert len(products) == 60 == len(questions) - len(products)
    times = [products.count(text) for text in set(products)]
    assert len(times) < 60 and max(times) - min(times) <= 1
    assert products == sorted(products, key=products.index)  # the same ones stand together
