"""Skills answer with the likeliest label or greedily, on the starter; what is asked is what was taught."""

from __future__ import annotations

import math

import pytest

from app.models.shelf import locate
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.question_set import QuestionSet, Row, examples
from app.skills.answering import answer
from app.skills.skill import Skill, learned_sentence
from engines import opening
from engines.contract import Engine

ROWS = tuple(Row(question=f"Mail {n}?", answer="Spam" if n % 3 else "ham") for n in range(30))
MAILS = QuestionSet(name="Mails & more", rule=Rule(check=Check.CHOICE, labels=("ham", "spam")), rows=ROWS)
WORKED = QuestionSet(
    name="Times",
    rule=Rule(),
    rows=tuple(Row(question=f"{n} * 2?", answer=f"{2 * n}", work="hm") for n in range(20)),
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    if why := opening.why_not_installed("torch"):
        pytest.skip(why)
    return opening.open_engine("torch", locate("starter"), threads=1)


def test_a_choice_is_its_likeliest_label_and_the_shares_are_those_of_the_log_probabilities(
    engine: Engine,
) -> None:
    prompts = [[{"role": "user", "content": text}] for text in ("What is 2 + 3?", "7?")]
    found = answer(engine, prompts, ("5", "7", "x"), 8)
    for prompt, one in zip(prompts, found, strict=True):
        assert one is not None
        told = engine.logprobs([engine.encode(prompt, label, True) for label in ("5", "7", "x")])
        weights = [math.exp(sum(logprobs)) for logprobs in told]
        assert list(one.labels.values()) == pytest.approx(
            [weight / sum(weights) for weight in weights], rel=1e-3
        )
        assert one.sure == one.labels[one.text] == max(one.labels.values())


def test_a_free_answer_is_the_greedy_one_with_its_probability(engine: Engine) -> None:
    prompt = [{"role": "user", "content": "What is 2 + 3?"}]
    (one,) = answer(engine, [prompt], (), 12)
    assert one is not None
    greedy = engine.sample([prompt], 1, 12, 0, temperature=1e-5)[0][0]
    assert one.text == greedy.text.strip() and one.finished == greedy.finished
    assert 0.0 < one.sure <= 1.0


def test_a_skill_is_asked_as_its_table_has_it_and_taught_its_answers_bare() -> None:
    skill = Skill(MAILS)
    assert skill.prompt("ab" * 900)[1]["content"] == "ab" * 250, "the beginning of a text to sort is enough"
    assert (skill.slug, skill.labels, skill.marked) == ("mails-more", ("ham", "spam"), False)
    assert skill.prompt(" Mail\u200b 3? ") == [
        {"role": "system", "content": "Answer with one of: ham, spam."},
        {"role": "user", "content": "Mail 3?"},
    ]
    taught = examples(MAILS)
    assert {one.answer for one in taught} == {"ham", "spam"} and len(taught) == 24
    assert skill.agree(" SPAM", "spam") and not skill.agree("", "spam")
    said = learned_sentence(skill, 0.9)
    assert said.startswith("Mails & more is learned as far as its rows go") and "first of ham" in said


def test_where_work_comes_first_a_mark_tells_the_answer_from_it() -> None:
    skill = Skill(WORKED)
    assert skill.marked and skill.labels == () and examples(WORKED)[0].answer.startswith("hm #")
    assert skill.read("hm #8") == "8" and skill.read("8") is None


def test_an_own_instruction_is_asked_with_and_makes_another_set_and_none_keeps_the_old_mark() -> None:
    other = QuestionSet(name="Mails", rule=MAILS.rule, rows=ROWS, instruction="Which folder?")
    assert Skill(other).prompt("a")[0]["content"] == "Which folder?" and other.mark != MAILS.mark
    assert b"instruction" not in MAILS.canonical_json
