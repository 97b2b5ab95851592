"""Our scorers beside the library's own, where those only read: 500 right answers and 500 wrong ones of each
family, then 10,000 that are made of the same characters. Every difference has its reason here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from random import Random
from typing import Any

import pytest

from app.sapo import library, reading
from app.sapo.families import FAMILIES
from app.sapo.groups import SOLVED_SCORE
from app.sapo.questions import Question, draw

Why = Callable[[str, Question], bool]
"""Whether the reason holds for this answer."""


def integer_in_another_form(text: str, question: Question) -> bool:
    """The library compares characters: +5, 05, 5.0 and white space are none of the truth's."""
    return reading.integer(text) == int(question.entry["answer"])


def decimal_that_we_do_not_read(text: str, question: Question) -> bool:
    """The library reads 5e0, 5_0 and 5. and, for whole numbers, commas anywhere."""
    plain = text.replace(",", "") if "," not in str(question.entry["answer"]) else text
    try:
        same = Decimal(plain) == Decimal(question.entry["answer"])
    except InvalidOperation:
        return False
    return same and (reading.decimal(text) is None or "." in text)


def decimal_with_thousands(text: str, question: Question) -> bool:
    """We read 1,234.5."""
    return "," in text and reading.decimal(text) == Decimal(question.entry["answer"])


def same_list(text: str, question: Question) -> bool:
    """The library wants its quotes, spaces and trailing zeros."""
    return reading.numbers(text) == reading.numbers(question.entry["answer"])


def complex_that_we_do_not_read(text: str, question: Question) -> bool:
    """The library takes brackets, j, capital letters, exponents, spaces anywhere and 5. for 5."""
    return bool(re.search(r"[()jeIJ]|\.(?![0-9])|(?<![0-9])\.|[0-9] +[0-9.i]|[+-] |[-+]\s*[-+]", text))


def imaginary_part_first(text: str, question: Question) -> bool:
    """The library reads no -i + 4, and no i alone with a plus."""
    return bool(re.fullmatch(r"\s*[-+]?[0-9.]*i(\s*[-+]\s*[0-9.]+)?\s*", text))


def time_in_loose_form(text: str, question: Question) -> bool:
    """The library reads whatever Python takes for a whole number between the colons, any length of them,
    seconds where none are asked for, and nothing behind the number of days."""
    kind = question.entry["metadata"]["task_type"]
    return not re.fullmatch(r"\s*(?:\d{1,3}:\d\d(?::\d\d)?|\d+(?: days?)?)\s*", text) or (
        text.count(":") == 2
    ) != (kind == "time_seconds")


def fraction_in_another_form(text: str, question: Question) -> bool:
    """The library compares characters."""
    return reading.fraction(text) == reading.fraction(question.entry["answer"])


def expression_with_leading_zeros(text: str, question: Question) -> bool:
    """The library gives it to Python's own reader, which refuses 07."""
    return bool(re.search(r"\b0[0-9]", text))


def rounded_or_with_two_signs(text: str, question: Question) -> bool:
    """The library forgives a millionth of the target, and 5 ++ 3."""
    return "/" in text or bool(re.search(r"(^|[-+*/(])\s*\+", text))


def number_nearby(text: str, question: Question) -> bool:
    """The library forgives a hundredth, reads exponents and underscores as Python does, and commas anywhere."""
    return abs(float(text.replace(",", "")) - float(question.entry["answer"])) < 0.01


def another_base(text: str, question: Question) -> bool:
    """The library reads decimal, octal and binary numbers too, and underscores."""
    same = int(text, 0) == int(question.entry["answer"], 16)
    return same and not re.fullmatch(r"\s*[+-]?0[xX][0-9a-fA-F]+\s*", text)


def longer_than_three_figures(text: str, question: Question) -> bool:
    """The library rounds the answer first, and rounds a five to the even digit."""
    return Context(prec=3).plus(Decimal(text)) == Context(prec=3).plus(Decimal(question.entry["answer"]))


OURS_ALONE: dict[str, Why] = {
    "leg_counting": integer_in_another_form,
    "count_primes": integer_in_another_form,
    "number_sequence": integer_in_another_form,
    "number_filtering": same_list,
    "decimal_chain_sum": decimal_with_thousands,
    "simple_geometry": integer_in_another_form,
    "complex_arithmetic": imaginary_part_first,
    "dice": fraction_in_another_form,
    "countdown": expression_with_leading_zeros,
}
"""Why we pay where the library does not."""

THEIRS_ALONE: dict[str, Why] = {
    "products": decimal_that_we_do_not_read,
    "decimal_chain_sum": decimal_that_we_do_not_read,
    "complex_arithmetic": complex_that_we_do_not_read,
    "time_intervals": time_in_loose_form,
    "countdown": rounded_or_with_two_signs,
    "number_format": number_nearby,
    "bitwise_arithmetic": another_base,
    "power_function": longer_than_three_figures,
}
"""Why the library pays where we do not."""

COMPARED = (*dict.fromkeys([*OURS_ALONE, *THEIRS_ALONE]),)
CHARACTERS = {"countdown": "0123456789 +-*/()", "bitwise_arithmetic": "0123456789abcdefx +-_"}
"""The library runs answers of countdown: it is given nothing but arithmetic, and short."""


def theirs(text: str, question: Question) -> bool:
    if question.coordinates.family == "countdown":
        if "**" in text.replace(" ", "") or "//" in text.replace(" ", "") or len(text) > 40:
            return False
        assert set(text) <= set(CHARACTERS["countdown"])
    score = library.gym().get_score_answer_fn(question.coordinates.family)
    with library.silence():
        return bool(score(text, question.entry) == 1.0)


def compare(text: str, question: Question) -> tuple[bool, bool]:
    family = question.coordinates.family
    ours = FAMILIES[family].judge(text, question.entry) >= SOLVED_SCORE
    library_says = theirs(text, question)
    if ours and not library_says:
        assert family in OURS_ALONE and OURS_ALONE[family](text, question), (text, question.entry)
    if library_says and not ours:
        assert family in THEIRS_ALONE and THEIRS_ALONE[family](text, question), (text, question.entry)
    return ours, library_says


def changed(text: str, characters: str, random: Random) -> str:
    for _ in range(random.randint(1, 2)):
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice([*characters, ""]) + text[at + random.randrange(2) :]
    return text


def questions(family: str, count: int) -> list[Question]:
    levels = len(FAMILIES[family].levels)
    return [draw(family, number % levels, number * 10**7 + 3) for number in range(count)]


@pytest.mark.parametrize("family", COMPARED)
def test_right_and_wrong_answers_as_the_library_judges_them(family: str) -> None:
    random, characters = Random(5), CHARACTERS.get(family, "0123456789 +-.,:/i'e")
    right = wrong = 0
    asked: list[Any] = questions(family, 100)
    for question in asked * 5:
        solution = FAMILIES[family].solution(question.entry)
        ours, library_says = compare(solution, question)
        assert ours
        right += library_says
        wrong += compare(changed(solution, characters, random), question) == (False, False)
    assert right >= 100 and wrong >= 350, (right, wrong)


@pytest.mark.long
@pytest.mark.parametrize("family", COMPARED)
def test_any_characters_as_the_library_judges_them(family: str) -> None:
    random, characters = Random(6), CHARACTERS.get(family, "0123456789 +-.,:/i'e[]")
    asked = questions(family, 100)
    for number in range(10_000):
        question = asked[number % len(asked)]
        solution = FAMILIES[family].solution(question.entry)
        text = "".join(random.choices(characters, k=random.randint(1, 30)))
        compare(
            text if number % 2 else changed(changed(solution, characters, random), characters, random), question
        )
