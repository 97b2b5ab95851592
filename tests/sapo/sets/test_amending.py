"""Rows are added to a set: it stays the same set, and nothing that was trained on is ever held out."""

from __future__ import annotations

import msgspec
import pytest

from app.sapo.sets import checks
from app.sapo.sets.amending import amended
from app.sapo.sets.checks import Check
from app.sapo.sets.question_set import (
    QuestionSet,
    Row,
    SetError,
    check,
    decode,
    encode,
    examples,
    held_out,
    near_duplicate_key,
)
from app.sapo.sets.templates import parse

ANSWERS = ["ham", "spam"] * 25
MAILS = QuestionSet(
    name="Mails",
    rule=checks.guess_rule(ANSWERS),
    rows=tuple(Row(question=f"Mail {n}", answer=answer) for n, answer in enumerate(ANSWERS)),
)


def aside(made: QuestionSet) -> set[str]:
    held = held_out(made) or frozenset()
    return {row.question for row in made.rows if near_duplicate_key(row.question) in held}


def test_every_row_keeps_its_side_and_new_ones_get_one_by_their_content() -> None:
    new = [Row(question=f"New {n}", answer="ham") for n in range(200)]
    found = amended(MAILS, new)
    assert (found.new, found.corrected, found.unchanged) == (200, 0, 0)
    before = {row.question for row in MAILS.rows}
    assert aside(found.made) & before == aside(MAILS) and len(aside(MAILS)) == 10
    assert len(aside(found.made) - before) == found.new_held_out and 25 <= found.new_held_out <= 55
    one_by_one = MAILS
    for row in new:
        one_by_one = amended(one_by_one, [row]).made
    assert aside(one_by_one) == aside(found.made)
    first = [one.question for one in examples(MAILS)]
    assert [one.question for one in examples(found.made)][: len(first)] == first


def test_a_correction_replaces_the_answer_and_the_set_stays_the_same_one() -> None:
    rows = [Row(question="MAIL  3", answer="ham", work="because"), Row(question="mail 4", answer=" Ham")]
    found = amended(MAILS, rows)
    assert (found.new, found.corrected, found.unchanged) == (0, 1, 1)
    corrected = Row(question="Mail 3", answer="ham", held_out="Mail 3" in aside(MAILS), amended=True)
    assert found.made.rows[3] == corrected
    assert found.made.mark == MAILS.mark and found.made.family_name != MAILS.family_name
    again = amended(found.made, [Row(question="Mail 5", answer="ham")]).made
    assert again.mark == MAILS.mark and again.family_name != found.made.family_name
    assert decode(encode(again)) == again
    assert amended(MAILS, MAILS.rows).made == MAILS, "nothing changed, so it is as it was"


def test_a_new_answer_is_one_to_choose_from() -> None:
    found = amended(MAILS, [Row(question="Your flight", answer="travel")]).made
    assert found.labels == ("ham", "spam", "travel") and found.asked_with.endswith("ham, spam, travel.")


def test_what_is_refused() -> None:
    numbers = QuestionSet(
        name="Sums",
        rule=checks.Rule(check=Check.NUMBER),
        rows=tuple(Row(question=f"{n}?", answer=f"{n}") for n in range(9)),
    )
    with pytest.raises(SetError):
        amended(numbers, [Row(question="one?", answer="many")])
    with pytest.raises(SetError):
        amended(QuestionSet(name="T", rule=checks.Rule(), templates=parse("{a} + 1?\na: 1-9\nanswer: a+1")), [])
    with pytest.raises(SetError):
        check(msgspec.structs.replace(MAILS, began="../../elsewhere"))
