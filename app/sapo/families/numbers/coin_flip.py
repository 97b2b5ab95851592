"""The chance of some heads in some tosses of a coin."""

from __future__ import annotations

from fractions import Fraction
from math import comb

from app.sapo import reading
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced


def _score(answer: str, entry: Entry) -> float:
    """1 for exactly the chance: as a fraction, reduced or not, as a decimal number or in percent. The library
    would pay for numbers that are near, or that begin alike."""
    read = reading.fraction(answer)
    if read is not None:
        return float(read[1] > 0 and Fraction(*read) == _chance(entry))
    percent = answer.rstrip(reading.SPACE).endswith("%")
    number = reading.decimal(answer.rstrip(reading.SPACE).removesuffix("%"))
    return float(number is not None and Fraction(number) == _chance(entry) * (100 if percent else 1))


def _counted(entry: Entry) -> tuple[int, int]:
    """How many equally likely rows of tosses there are, and how many of them have the heads asked for."""
    metadata = entry["metadata"]
    tosses, heads = metadata["num_trials"], metadata["k_heads"]
    most = heads if metadata["problem_type"] == "exact" else tosses
    return sum(comb(tosses, k) for k in range(heads, most + 1)), 2**tosses


def _chance(entry: Entry) -> Fraction:
    return Fraction(*_counted(entry))


def _sound(entry: Entry) -> bool:
    """Whether anything is left to chance, and the truth is exact: it is rounded to ten digits."""
    return _chance(entry) == Fraction(entry["answer"]) != 1


def _solution(entry: Entry) -> str:
    return str(_chance(entry))


def _work(entry: Entry) -> str:
    fitting, rows = _counted(entry)
    twos = " * ".join(["2"] * entry["metadata"]["num_trials"])
    reduced = f" {fitting}/{rows} = {_chance(entry)}." if _chance(entry).denominator < rows else ""
    return f"{twos} = {rows} ways, {fitting} fit.{reduced}"


FAMILY = Family(
    name="coin_flip",
    title="Coin tosses",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_trials=2, max_trials=8),
        dict(min_trials=4, max_trials=10),
        dict(min_trials=7, max_trials=10),
    ),
    content=lambda entry: (entry["metadata"]["num_trials"], entry["metadata"]["k_heads"], str(_chance(entry))),
    wording=replaced((" 1 heads ", " 1 head ")),
    score=_score,
    sound=_sound,
    solution=_solution,
    work=_work,
    held_out_share=3,  # ten tosses, the most whose chance the library gives exactly, make 105 questions
)
