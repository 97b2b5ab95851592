"""Family ties are worked out from the story."""

from __future__ import annotations

from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["family_relationships"]

STORY = (
    "James is married to Mary. They have children called John, Robert and Anna. "
    "John is married to Linda. They have children called Peter and Emma. "
    "Robert is married to Alice. Anna is married to David. They have a child called Samuel."
)


def entry(one: str, other: str, answer: str, story: str = STORY) -> dict[str, Any]:
    return {
        "question": f"{story}\n\nWhat is {one} to {other}?",
        "answer": answer,
        "metadata": dict(person1=one, person2=other),
    }


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        ("Mary", "James", "wife"),
        ("James", "Mary", "husband"),
        ("Mary", "Anna", "mother"),
        ("James", "Robert", "father"),
        ("Emma", "Linda", "daughter"),
        ("John", "James", "son"),
        ("Anna", "Robert", "sister"),
        ("Peter", "Emma", "brother"),
        ("Mary", "Samuel", "grandmother"),
        ("James", "Emma", "grandfather"),
        ("Anna", "Peter", "aunt"),
        ("Robert", "Samuel", "uncle"),
        ("Emma", "Robert", "niece"),
        ("Samuel", "John", "nephew"),
    ],
)
def test_every_tie_is_worked_out_from_the_story(one: str, other: str, word: str) -> None:
    question = entry(one, other, word)
    assert FAMILY.sound(question)
    assert FAMILY.judge(f" {word.upper()}\n", question) == 1.0
    assert FAMILY.worked(question).endswith(f". #{word}")


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        ("Emma", "Robert", "nephew"),  # the library says what Robert's sex would make of Emma
        ("Emma", "Robert", "uncle"),
        ("Linda", "Mary", "mother-in-law"),  # what Mary is to Linda
        ("David", "James", "father-in-law"),
        ("David", "Peter", "uncle"),  # by marriage alone
        ("Peter", "Samuel", "brother"),
        ("Mary", "James", "husband"),
    ],
)
def test_what_the_story_does_not_give_is_no_question(one: str, other: str, word: str) -> None:
    assert not FAMILY.sound(entry(one, other, word))
