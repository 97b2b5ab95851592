"""Lists of numbers: sorted, filtered, compared and continued."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from itertools import pairwise, product

from app.sapo import reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind

# Numbers in ascending or descending order.


def _sorting_score(answer: str, entry: Entry) -> float:
    """Scores 1 for exactly the numbers of the question in the requested order; `6`, `6.0` and `'6.0'` are the
    same number. The library would accept numbers that are off by one."""
    return float(reading.numbers(answer) == [Decimal(number) for number in entry["metadata"]["sorted_numbers"]])


def _sorting_wording(entry: Entry) -> str:
    asked = str(entry["question"]).partition("\n")[0]
    return f"{asked}\nGive them as a list with each number in quotes, such as ['-69', '-13', '1', '7']."


def _sorting_sound(entry: Entry) -> bool:
    """Whether the numbers are not already in the requested order."""
    metadata = entry["metadata"]
    return bool(metadata["sorted_numbers"] != metadata["original_numbers"])


NUMBER_SORTING = Family(
    name="number_sorting",
    title="Sorting",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_numbers=3, max_numbers=4, max_decimals=0, min_value=0, max_value=99),
        dict(min_numbers=4, max_numbers=6, max_decimals=0, min_value=-99, max_value=99),
        dict(min_numbers=5, max_numbers=8, max_decimals=1),
        dict(min_numbers=6, max_numbers=12, max_decimals=2, min_value=-1000, max_value=1000),
    ),
    content=lambda entry: contents.decimals(entry["metadata"]["original_numbers"]),
    wording=_sorting_wording,
    sound=_sorting_sound,
    score=_sorting_score,
)


# Which numbers of a list stay when those above or below another one are kept or removed.


def _stays(number: str, entry: Entry) -> bool:
    metadata = entry["metadata"]
    keep, size = str(metadata["operation"]).split("_")
    value, limit = Decimal(number), Decimal(metadata["filter_value"])
    chosen = value > limit if size == "larger" else value < limit
    return chosen == (keep == "keep")


def _filtering_truth(entry: Entry) -> list[str]:
    return [number for number in entry["metadata"]["original_numbers"] if _stays(number, entry)]


def _filtering_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the remaining numbers in their order, with or without quotes and brackets: 2.50 is 2.5. The
    library requires its own spelling."""
    return float(reading.numbers(answer) == [Decimal(number) for number in _filtering_truth(entry)])


def _filtering_sound(entry: Entry) -> bool:
    """Whether some numbers stay, some go, and the library's answer is right. If a list has 5 and 5.00 the
    library has one of them twice, but they are equal numbers."""
    some = 0 < len(_filtering_truth(entry)) < len(entry["metadata"]["original_numbers"])
    return some and _filtering_score(entry["answer"], entry) == 1.0


def _filtering_work(entry: Entry) -> str:
    numbers = entry["metadata"]["original_numbers"]
    return ", ".join(f"{number} {'yes' if _stays(number, entry) else 'no'}" for number in numbers) + "."


def _filtering_content(entry: Entry) -> Content:
    """Returns the numbers of the list and the remaining ones, sorted and normalised: keeping what is larger
    than 5 equals removing what is smaller."""
    return contents.decimals(entry["metadata"]["original_numbers"]), contents.decimals(_filtering_truth(entry))


NUMBER_FILTERING = Family(
    name="number_filtering",
    title="Filtering numbers",
    kind=FamilyKind.NUMBERS,
    # Of three numbers one in two leaves the largest or the smallest alone, and either could be guessed.
    levels=(
        dict(min_numbers=4, max_numbers=5, min_decimals=0, max_decimals=0, min_value=0, max_value=30),
        dict(min_numbers=4, max_numbers=6, min_decimals=0, max_decimals=0, min_value=0, max_value=100),
        dict(min_numbers=5, max_numbers=8, min_decimals=0, max_decimals=1, min_value=-100, max_value=100),
        dict(min_numbers=6, max_numbers=10, min_decimals=0, max_decimals=4, min_value=-100, max_value=100),
        dict(min_numbers=8, max_numbers=16, min_decimals=0, max_decimals=4, min_value=-1000, max_value=1000),
    ),
    content=_filtering_content,
    score=_filtering_score,
    sound=_filtering_sound,
    solution=lambda entry: str(_filtering_truth(entry)),
    work=_filtering_work,
)


# The largest or the smallest of some numbers that are written in different ways.

_SCIENTIFIC = re.compile(r"[+-]?[0-9](?:\.[0-9]{1,20})?e[+-][0-9]{2}")
_THOUSANDTH = Decimal("0.001")
"""Precision of the numbers, which have three decimals; some show floating-point errors beyond them."""


def _format_read(text: str) -> Decimal | None:
    """Parses a number in the questions' notations, to the thousandth.

    >>> _format_read("1,234.5670000000002"), _format_read("1.234567000000000e+03"), _format_read("1e3")
    (Decimal('1234.567'), Decimal('1234.567'), None)
    """
    text = text.strip(reading.SPACE)
    number = Decimal(text) if _SCIENTIFIC.fullmatch(text) else reading.decimal(text)
    if number is None or abs(number) >= 10**12:
        return None
    return number.quantize(_THOUSANDTH)


def _numbers(entry: Entry) -> list[Decimal]:
    read = [_format_read(text) for text in entry["metadata"]["formatted_candidates"]]
    return [number for number in read if number is not None]


def _format_truth(entry: Entry) -> Decimal:
    return max(_numbers(entry)) if entry["metadata"]["size"] == "largest" else min(_numbers(entry))


def _format_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the number in any of the notations. The library tolerates a hundredth, which may be a
    different number."""
    return float(_format_read(answer) == _format_truth(entry))


def _format_sound(entry: Entry) -> bool:
    """Whether every number can be parsed, exactly one is the answer, and it is the library's."""
    numbers = _numbers(entry)
    readable = len(numbers) == len(entry["metadata"]["formatted_candidates"])
    return (
        readable and numbers.count(_format_truth(entry)) == 1 and _format_score(entry["answer"], entry) == 1.0
    )


def _plain(number: Decimal) -> str:
    return f"{number:f}".rstrip("0").removesuffix(".")


def _format_solution(entry: Entry) -> str:
    return _plain(_format_truth(entry))


def _format_work(entry: Entry) -> str:
    """Returns all numbers in one notation, without decimals if those decide nothing."""
    numbers, truth = _numbers(entry), _format_truth(entry)
    whole = [str(int(number)) for number in numbers]
    decided = whole.count(str(int(truth))) == 1
    return f"{', '.join(whole if decided else map(_plain, numbers))}."


def _format_content(entry: Entry) -> Content:
    """Returns the numbers, sorted and normalised, and which of them is asked for."""
    return contents.decimals(_numbers(entry)), entry["metadata"]["size"]


NUMBER_FORMAT = Family(
    name="number_format",
    title="Number formats",
    kind=FamilyKind.NUMBERS,
    # Of fewer than six the last one is it too often: the library adds to the first, up or down.
    levels=(
        dict(min_num_candidates=6, max_num_candidates=6, min_n=1000, max_n=10_000),
        dict(min_num_candidates=6, max_num_candidates=8, min_n=1000, max_n=100_000),
        dict(min_num_candidates=7, max_num_candidates=10, min_n=1000, max_n=1_000_000),
        dict(min_num_candidates=8, max_num_candidates=12, min_n=1000, max_n=1_000_000_000),
    ),
    content=_format_content,
    score=_format_score,
    sound=_format_sound,
    solution=_format_solution,
    work=_format_work,
    guess=(0.21, "the last number"),
)


# The next number of a sequence.

Step = tuple[str, int]
"""An operation on a number: `+` or `*` with an operand, `square`, `half` (rounded down) or `before`, which adds
the previous number of the sequence, if there is one."""


@cache
def _rules() -> tuple[tuple[Step, ...], ...]:
    """Returns all rules of one and of two steps, shortest first."""
    others = [number for number in range(-10, 11) if number]
    steps: list[Step] = [("+", number) for number in others] + [
        ("*", number) for number in others if number != 1
    ]
    steps += [("before", 0), ("half", 0), ("square", 0)]
    return (*((step,) for step in steps), *product(steps, repeat=2))


def _after(step: Step, number: int, before: int) -> int:
    match step:
        case "+", other:
            return number + other
        case "*", other:
            return number * other
        case "before", _:
            return number + before
        case "half", _:
            return number // 2
        case _:
            return number * number


def _next(rule: tuple[Step, ...], number: int, before: int) -> int:
    for step in rule:
        number = _after(step, number, before)
    return number


def _fitting(shown: list[int]) -> Iterator[tuple[Step, ...]]:
    """Yields the rules that explain all numbers shown, shortest first."""
    *pairs, (before, number, after) = zip([0, *shown], shown, shown[1:], strict=False)
    for rule in _rules():
        if _next(rule, number, before) == after and all(_next(rule, n, b) == a for b, n, a in pairs):
            yield rule


def _shown(entry: Entry) -> list[int]:
    return list(entry["metadata"]["sequence"][:-1])


def _after_two(shown: list[int]) -> Iterator[int]:
    """Yields the next number by rules with two free start values: each number follows from the two before, as
    in a Fibonacci sequence, or every other number grows by a constant. At least four numbers are shown."""
    triples = list(zip(shown, shown[1:], shown[2:], strict=False))
    for rule in _rules():
        if ("before", 0) in rule and all(_next(rule, n, b) == a for b, n, a in triples):
            yield _next(rule, shown[-1], shown[-2])
    if len(steps := {last - first for first, _, last in triples}) == 1:
        yield shown[-2] + steps.pop()


def _sequence_sound(entry: Entry) -> bool:
    """Whether a rule of at most two steps explains the sequence, no other one continues it differently, and the
    answer is not the last number repeated. For 10, 5, 2, 1, halving is as good as differences that shrink by 2.
    """
    shown, truth = _shown(entry), int(entry["answer"])
    following = {_next(rule, shown[-1], shown[-2]) for rule in _fitting(shown)}
    differences = [after - number for number, after in pairwise(shown)]
    bends = {after - number for number, after in pairwise(differences)}
    if len(bends) == 1:
        following.add(shown[-1] + differences[-1] + bends.pop())
    following.update(_after_two(shown))
    return following == {truth} and truth != shown[-1]


def _sequence_work(entry: Entry) -> str:
    """Returns the work: the shortest rule applied to the last number shown, and to the next one."""
    shown = _shown(entry)
    rule = next(_fitting(shown))
    before, last, latest = shown[-3:]
    return f"{_worked(rule, last, before)} {_worked(rule, latest, last)}"


def _worked(rule: tuple[Step, ...], number: int, before: int) -> str:
    said = []
    for step in rule:
        after = _after(step, number, before)
        match step:
            case "half", _:
                said.append(f"Half of {number} is {after}.")
            case "square", _:
                said.append(f"{_in(number)} * {_in(number)} = {after}.")
            case "*", other:
                said.append(f"{number} * {_in(other)} = {after}.")
            case kind, other:
                other = before if kind == "before" else other
                said.append(f"{number} {'-' if other < 0 else '+'} {abs(other)} = {after}.")
        number = after
    return " ".join(said)


def _in(number: int) -> str:
    return f"({number})" if number < 0 else str(number)


NUMBER_SEQUENCE = Family(
    name="number_sequence",
    title="Sequences",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_terms=8, max_terms=8, max_complexity=1),
        dict(min_terms=6, max_terms=8, max_complexity=1),
        dict(min_terms=5, max_terms=8, max_complexity=2),
        dict(min_terms=4, max_terms=8, max_complexity=3),
    ),
    content=lambda entry: tuple(_shown(entry)),
    score=scores.integer,
    sound=_sequence_sound,
    work=_sequence_work,
)
