"""Numbers in ascending or descending order."""

from __future__ import annotations

from decimal import Decimal

from app.sapo import reading
from app.sapo.families import contents
from app.sapo.families.family import Entry, Family, FamilyKind


def _score(answer: str, entry: Entry) -> float:
    """1 for exactly the numbers of the question in the order asked for; `6`, `6.0` and `'6.0'` are the same
    number. The library would accept numbers that are one off."""
    return float(reading.numbers(answer) == [Decimal(number) for number in entry["metadata"]["sorted_numbers"]])


def _wording(entry: Entry) -> str:
    asked = str(entry["question"]).partition("\n")[0]
    return f"{asked}\nGive them as a list with each number in quotes, such as ['-69', '-13', '1', '7']."


def _sound(entry: Entry) -> bool:
    """Whether the numbers stand in another order than the one asked for."""
    metadata = entry["metadata"]
    return bool(metadata["sorted_numbers"] != metadata["original_numbers"])


FAMILY = Family(
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
    wording=_wording,
    sound=_sound,
    score=_score,
)
