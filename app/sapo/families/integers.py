"""Integers: divisors, multiples and primes, and digits in other bases."""

from __future__ import annotations

import re
from math import prod

from app.sapo import reading
from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

# The greatest number that divides all of the numbers.


def _gcd_work(entry: Entry) -> str:
    numbers, divisor = entry["metadata"]["numbers"], int(entry["answer"])
    return " ".join(f"{number} = {divisor} * {number // divisor}." for number in numbers)


def _difference(entry: Entry) -> str:
    numbers = sorted(entry["metadata"]["numbers"])
    return str(numbers[-1] - numbers[-2])


def _gcd_sort(entry: Entry) -> str:
    if int(entry["answer"]) == min(entry["metadata"]["numbers"]):
        return "smaller"
    return "difference" if entry["answer"] == _difference(entry) else str(entry["answer"])


GCD = Family(
    name="gcd",
    title="Greatest common divisor",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_value=2, max_value=60),
        dict(min_value=6, max_value=99),
        dict(min_value=20, max_value=300),
        dict(min_value=50, max_value=1000),
        dict(min_numbers=2, max_numbers=3, min_value=50, max_value=5000),
    ),
    content=lambda entry: tuple(sorted(entry["metadata"]["numbers"])),
    sort=_gcd_sort,
    shortcuts={"difference": _difference},
    score=scores.integer,
    work=_gcd_work,
    thinned=(
        {"smaller": 0.42, "difference": 0.8, "1": 0.5, "2": 0.26, "3": 0.7},
        {"1": 0.53, "2": 0.37, "3": 0.82},
        {"1": 0.48, "2": 0.34, "3": 0.79},
        {"1": 0.41, "2": 0.3, "3": 0.71},
        {"1": 0.17, "2": 0.22, "3": 0.54},
    ),
    guess=(0.21, "2"),
)


# The least number that all of the numbers divide.


def _lcm_work(entry: Entry) -> str:
    """Returns the work: multiples of the largest number until the others divide one."""
    *others, largest = sorted(entry["metadata"]["numbers"])
    multiples = [largest]
    while any(multiples[-1] % other for other in others) and len(multiples) < 12:
        multiples.append(multiples[-1] + largest)
    result = int(entry["answer"])
    checks = " ".join(f"{result} = {result // other} * {other}." for other in others)
    return f"{', '.join(map(str, multiples))}. {checks}"


def _lcm_sort(entry: Entry) -> str:
    numbers, truth = entry["metadata"]["numbers"], int(entry["answer"])
    return "larger" if truth == max(numbers) else "product" if truth == prod(numbers) else ""


LCM = Family(
    name="lcm",
    title="Least common multiple",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_value=2, max_value=30),
        dict(min_value=4, max_value=40),
        dict(min_value=10, max_value=99),
        dict(min_value=20, max_value=300),
        dict(min_numbers=2, max_numbers=3, min_value=10, max_value=300),
    ),
    content=lambda entry: tuple(sorted(entry["metadata"]["numbers"])),
    sort=_lcm_sort,
    shortcuts={"product": lambda entry: str(prod(entry["metadata"]["numbers"]))},
    score=scores.integer,
    work=_lcm_work,
    thinned=({"larger": 0.55, "product": 0.8}, {"product": 0.95}, {"product": 0.94}),
    guess=(0.23, "the product"),
)


# The prime numbers whose product a number is.

_FACTORS_SHOWN = 12
"""The number in the example, shown in every question, of how to write factors."""

_SIGN = re.compile(r"[×*x·]|\\times")


def _factors_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the prime factors in any order, each as often as it divides. The library only reads `×`,
    pays for any other text and fails on text that is not a number."""
    read = [reading.integer(part) for part in _SIGN.split(answer)]
    factors = sorted(factor for factor in read if factor is not None)
    return float(len(factors) == len(read) and factors == entry["metadata"]["factors"])


def _factors_sound(entry: Entry) -> bool:
    """Whether the number is composite: the factorization of a prime is the prime itself."""
    metadata = entry["metadata"]
    return len(metadata["factors"]) > 1 and metadata["number"] != _FACTORS_SHOWN


def _factors_work(entry: Entry) -> str:
    rest, steps = entry["metadata"]["number"], []
    for factor in entry["metadata"]["factors"][:-1]:
        steps.append(f"{rest} / {factor} = {rest // factor}.")
        rest //= factor
    return " ".join(steps)


PRIME_FACTORIZATION = Family(
    name="prime_factorization",
    title="Prime factors",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_value=4, max_value=300),
        dict(min_value=20, max_value=600),
        dict(min_value=100, max_value=1000),
        dict(min_value=500, max_value=10_000),
    ),
    content=lambda entry: entry["metadata"]["number"],
    score=_factors_score,
    sound=_factors_sound,
    work=_factors_work,
)


# How many prime numbers lie between two numbers.


def _primes(entry: Entry) -> list[int]:
    first, last = entry["metadata"]["start"], entry["metadata"]["end"]
    return [n for n in range(max(first, 2), last + 1) if all(n % d for d in range(2, int(n**0.5) + 1))]


def _primes_sound(entry: Entry) -> bool:
    return len(_primes(entry)) == int(entry["answer"])


def _primes_work(entry: Entry) -> str:
    return f"{', '.join(map(str, _primes(entry))) or 'none'}."


COUNT_PRIMES = Family(
    name="count_primes",
    title="Counting primes",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_n=1, max_n=30),
        dict(min_n=1, max_n=60),
        dict(min_n=1, max_n=120),
        dict(min_n=50, max_n=300),
        dict(min_n=100, max_n=1000),
    ),
    content=lambda entry: (entry["metadata"]["start"], entry["metadata"]["end"]),
    wording=replaced((" ?", "?")),
    score=scores.integer,
    sound=_primes_sound,
    work=_primes_work,
    thinned=({"0": 0.6, "1": 0.4}, {"0": 0.9, "1": 0.6}),
)


# Numbers written in another base.


def _base_work(entry: Entry) -> str:
    return f"{entry['metadata']['source_repr']} is {entry['metadata']['decimal_value']}."


BASE_CONVERSION = Family(
    name="base_conversion",
    title="Number bases",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_base=2, max_base=4, min_value=4, max_value=40),
        dict(min_base=2, max_base=8, min_value=8, max_value=120),
        dict(min_base=2, max_base=10, min_value=20, max_value=400),
        dict(min_base=2, max_base=16, min_value=50, max_value=1000),
        dict(min_base=2, max_base=20, min_value=100, max_value=10000),
    ),
    content=lambda entry: (
        entry["metadata"]["decimal_value"],
        entry["metadata"]["source_base"],
        entry["metadata"]["target_base"],
    ),
    score=scores.word,
    work=_base_work,
)


# How many ones a number has in base two.


def _bits_work(entry: Entry) -> str:
    return f"{entry['metadata']['number']} is {' '.join(entry['metadata']['binary'])}."


COUNT_BITS = Family(
    name="count_bits",
    title="Counting bits",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_n=1, max_n=511),
        dict(min_n=64, max_n=1023),
        dict(min_n=1024, max_n=65535),
        dict(min_n=65536, max_n=2**31 - 1),
    ),
    content=lambda entry: entry["metadata"]["number"],
    score=scores.integer,
    work=_bits_work,
    thinned=(
        {"3": 0.48, "4": 0.32, "5": 0.32, "6": 0.48},
        {"3": 0.83, "4": 0.43, "5": 0.32, "6": 0.32, "7": 0.65},
        {"7": 0.9, "8": 0.8, "9": 0.9},
    ),
)
