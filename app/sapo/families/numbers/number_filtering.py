"""Which numbers of a list stay when those above or below another one are kept or removed."""

from __future__ import annotations

from decimal import Decimal

from app.sapo import reading
from app.sapo.families import contents
from app.sapo.families.family import Content, Entry, Family, FamilyKind


def _stays(number: str, entry: Entry) -> bool:
    metadata = entry["metadata"]
    keep, size = str(metadata["operation"]).split("_")
    value, limit = Decimal(number), Decimal(metadata["filter_value"])
    chosen = value > limit if size == "larger" else value < limit
    return chosen == (keep == "keep")


def _truth(entry: Entry) -> list[str]:
    return [number for number in entry["metadata"]["original_numbers"] if _stays(number, entry)]


def _score(answer: str, entry: Entry) -> float:
    """1 for the numbers that stay, in their order, in quotes and brackets or not: 2.50 is 2.5. The library
    wants its own characters."""
    return float(reading.numbers(answer) == [Decimal(number) for number in _truth(entry)])


def _sound(entry: Entry) -> bool:
    """Whether something stays, something goes, and the library's answer is the same. Where 5 and 5.00 are in a
    list it has one of them twice, which are the same numbers."""
    some = 0 < len(_truth(entry)) < len(entry["metadata"]["original_numbers"])
    return some and _score(entry["answer"], entry) == 1.0


def _work(entry: Entry) -> str:
    numbers = entry["metadata"]["original_numbers"]
    return ", ".join(f"{number} {'yes' if _stays(number, entry) else 'no'}" for number in numbers) + "."


def _content(entry: Entry) -> Content:
    """The numbers of the list and those that stay, each in any order and however they are written: to keep
    what is larger than 5 is to remove what is smaller."""
    return contents.decimals(entry["metadata"]["original_numbers"]), contents.decimals(_truth(entry))


FAMILY = Family(
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
    content=_content,
    score=_score,
    sound=_sound,
    solution=lambda entry: str(_truth(entry)),
    work=_work,
)
