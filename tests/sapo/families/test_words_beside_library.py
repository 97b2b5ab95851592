"""The library's own scorers beside ours, where they are safe, and fuzzed answers.

Safe are those that neither run an answer nor compute with numbers of any size; those of coin_flip and
gsm_symbolic see whole numbers and fractions of ours only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest

from app.bench.runs.puzzles import generate_questions
from app.sapo import library
from app.sapo.families import FAMILIES
from app.sapo.families.family import Entry

NAMES = (
    "needle_haystack",
    "word_sequence_reversal",
    "word_sorting",
    "palindrome_generation",
    "family_relationships",
    "gsm_symbolic",
    "letter_jumble",
    "binary_alternation",
    "coin_flip",
    "knights_knaves",
)
QUESTIONS = 500


def questions(name: str) -> list[Entry]:
    levels = len(FAMILIES[name].levels)
    return [
        one.entry
        for level in range(levels)
        for one in generate_questions(name, level, QUESTIONS // levels + 1)[0]
    ]


EQUAL: dict[str, Callable[[str], object]] = {
    "needle_haystack": lambda text: text.strip(" \t\r\n").lower(),
    "family_relationships": lambda text: text.strip(" \t\r\n").lower(),
    "word_sequence_reversal": lambda text: re.sub(r"[ \t\r\n]*(,|^|$)[ \t\r\n]*", r"\1", text),
    "word_sorting": lambda text: re.sub(r"[ \t\r\n]*(,|^|$)[ \t\r\n]*", r"\1", text),
    "palindrome_generation": lambda text: sorted(text.strip(" \t\r\n").lower()),
    "gsm_symbolic": lambda text: Fraction(text.strip(" \t\r\n").replace(",", "")),
    "binary_alternation": lambda text: Fraction(text.strip(" \t\r\n").replace(",", "")),
    "letter_jumble": lambda text: re.sub(r"[ \t\r\n]+", " ", text.strip(" \t\r\n").lower()),
    "coin_flip": lambda text: Fraction(re.sub(r"[ \t\r\n$]", "", text)),
    "knights_knaves": lambda text: sorted(re.findall(r"(\w+) +is +an? +(\w+)", text.lower())),
}
"""What two answers have in common that say the same, each found another way than its scorer does."""

STRANGE = ["", " ", "\n", ",", ".", "-", "+", "0", "1", "/", "a", "A", "'", "\0", "\u200b", "\u212a", "\u0661"]


def fuzzed(rng: Random, text: str) -> str:
    """The text with one to three characters inserted, removed, replaced or doubled, or in another case."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(text))
        new = rng.choice([*STRANGE, text[at : at + 1] * 2, text[at : at + 1].swapcase()])
        text = text[:at] + new + text[at + rng.randint(0, 1) :]
    return text


def fuzz(name: str, count: int) -> int:
    """How many of the fuzzed answers were paid; each of them says what the solution says."""
    family, rng = FAMILIES[name], Random(name)
    entries = [
        one.entry for level in range(len(family.levels)) for one in generate_questions(name, level, 10)[0]
    ]
    paid = 0
    for _ in range(count):
        entry = rng.choice(entries)
        solution = family.solution(entry)
        answer = fuzzed(rng, solution)
        if family.judge(answer, entry) == 1.0:
            paid += 1
            assert EQUAL[name](answer) == EQUAL[name](solution), (answer, solution)
            assert answer.isascii() and "\0" not in answer
        else:
            assert family.judge(answer, entry) == 0.0
            assert answer != solution
    return paid


def number(text: str) -> str:
    """The first number, as the library finds it."""
    found = re.search(r"\b-?\d+(?:\.\d+)?\b", text)
    return found[0] if found else ""


PAID_BY_THEM: dict[str, Callable[[str, str], bool]] = {
    # Spaces within the name, and letters that become the same in small ones (the kelvin sign).
    "needle_haystack": lambda answer, truth: answer.replace(" ", "").strip().lower() == truth.lower(),
    # Words after the right ones.
    "letter_jumble": lambda answer, truth: (
        answer.lower().split()[: truth.count(" ") + 1] == truth.lower().split()
    ),
    # The right number first, whatever stands around it.
    "gsm_symbolic": lambda answer, truth: float(number(answer)) == float(truth),
    # Commas anywhere, digits of other scripts, and chances that are 0.0001 off.
    "coin_flip": lambda answer, truth: (
        abs(Fraction(answer.replace(",", "")) - Fraction(truth)) <= Fraction(1, 10_000)
    ),
    # Every name with its role, whatever stands between.
    "knights_knaves": lambda answer, truth: (
        set(re.findall(r"\w+", truth.lower())) - {"is", "a", "an", "and"}
        <= set(re.findall(r"\w+", answer.lower()))
    ),
}
"""What the library pays for and we do not: never an answer in a form that was asked for."""

PAID_BY_US = ("word_sequence_reversal", "binary_alternation", "coin_flip", "gsm_symbolic")
"""Whose default scorer in the library minds white space or zeros in front."""


@pytest.mark.parametrize("name", NAMES)
def test_right_and_wrong_answers_are_judged_as_the_library_judges_them(name: str) -> None:
    family, theirs, rng = FAMILIES[name], library.gym().get_score_answer_fn(name), Random(name)
    entries = questions(name)
    assert len(entries) >= QUESTIONS
    wrong = 0
    for entry, other in zip(entries, entries[1:] + entries[:1], strict=True):
        right = family.solution(entry)
        assert family.judge(right, entry) == theirs(right, entry) == 1.0
        for answer in (family.solution(other), fuzzed(rng, right)):
            ours, paid = family.judge(answer, entry) == 1.0, theirs(answer, entry) == 1.0
            wrong += not ours
            if ours and not paid:
                assert name in PAID_BY_US and EQUAL[name](answer) == EQUAL[name](right), (answer, right)
            elif paid and not ours:
                assert name in PAID_BY_THEM and PAID_BY_THEM[name](answer, right), (answer, right)
    assert wrong >= QUESTIONS


@pytest.mark.parametrize("name", NAMES)
def test_no_fuzzed_answer_is_paid_that_says_something_else(name: str) -> None:
    assert fuzz(name, 1000) > 10


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_no_fuzzed_answer_of_many_is_paid_that_says_something_else(name: str) -> None:
    assert fuzz(name, 10_000) > 100
