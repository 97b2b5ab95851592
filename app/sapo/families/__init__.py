"""The families of puzzles and their ladders: from easy to hard, each level a setting of reasoning-gym.

Families of one kind share a file below; each is one record (`app.sapo.families.family` says what its fields
mean) with the functions it needs above it. To add one: write the record in the file of its kind, named as the
library names the data set (`PRIME_FACTORIZATION` in `integers` is a short one to begin from), and name it at
the end of the table below; give it rows in `tests/sapo/families/answers.toml`; run `./shoal translations` for
its title. `tests/sapo/test_families.py` and `tests/sapo/scoring/test_hostile.py` then hold it to the rules of
all: -k NAME runs them for it alone, and `./shoal bench puzzles NAME` measures it. What several families share
is in `scores`, in `contents`, in `wording` and in `app.sapo.reading`.

A ladder is part of a question's meaning: if the questions of a level change, or their wording, or their content
(which decides what is held out), raise LEVELS by one. Peers with different ladders then ignore each other's
questions. A new family changes no existing questions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.sapo.families import (
    algebra,
    boards,
    chances,
    computing,
    deduction,
    integers,
    letters,
    lists,
    matrices,
    paths,
    people,
    rows,
    stories,
    sums,
    times,
    words,
)
from app.sapo.families.family import Family

LEVELS = 5


class Families(dict[str, Family]):
    """Families by name. `enable` adds one of the owner's question sets, which can be looked up but is not
    listed: code that iterates over all families sees puzzles only."""

    def __init__(self, listed: Iterable[Family]) -> None:
        super().__init__({one.name: one for one in listed})
        self._own: dict[str, Family] = {}

    def enable(self, own: Family) -> None:
        self._own[own.name] = own

    def __missing__(self, name: str) -> Family:
        return self._own[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._own

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name) or self._own.get(name, default)


FAMILIES = Families(
    (
        sums.CHAIN_SUM,
        sums.BASIC_ARITHMETIC,
        integers.GCD,
        integers.LCM,
        algebra.FRACTION_SIMPLIFICATION,
        algebra.SIMPLE_EQUATIONS,
        integers.BASE_CONVERSION,
        letters.SPELL_BACKWARD,
        integers.COUNT_BITS,
        lists.NUMBER_SORTING,
        letters.LETTER_COUNTING,
        letters.CAESAR_CIPHER,
        sums.DECIMAL_ARITHMETIC,
        times.CALENDAR_ARITHMETIC,
        matrices.BINARY_MATRIX,
        rows.ARC_1D,
        computing.BF,
        deduction.PROPOSITIONAL_LOGIC,
        integers.PRIME_FACTORIZATION,
        sums.PRODUCTS,
        stories.LEG_COUNTING,
        lists.NUMBER_FILTERING,
        sums.DECIMAL_CHAIN_SUM,
        integers.COUNT_PRIMES,
        stories.SIMPLE_GEOMETRY,
        algebra.COMPLEX_ARITHMETIC,
        times.TIME_INTERVALS,
        lists.NUMBER_SEQUENCE,
        sums.COUNTDOWN,
        chances.DICE,
        lists.NUMBER_FORMAT,
        algebra.BITWISE_ARITHMETIC,
        algebra.POWER_FUNCTION,
        words.NEEDLE_HAYSTACK,
        words.WORD_SEQUENCE_REVERSAL,
        words.WORD_SORTING,
        letters.PALINDROME_GENERATION,
        people.FAMILY_RELATIONSHIPS,
        stories.GSM_SYMBOLIC,
        letters.LETTER_JUMBLE,
        computing.BINARY_ALTERNATION,
        chances.COIN_FLIP,
        deduction.KNIGHTS_KNAVES,
        words.WORD_LADDER,
        matrices.SPIRAL_MATRIX,
        matrices.ROTATE_MATRIX,
        boards.MINI_SUDOKU,
        paths.PATH_STAR,
        paths.SHORTEST_PATH,
        boards.RECTANGLE_COUNT,
        paths.LARGEST_ISLAND,
        boards.N_QUEENS,
        paths.MAZE,
        paths.ROTTEN_ORANGES,
        computing.GRAPH_COLOR,
        matrices.MANIPULATE_MATRIX,
        people.AIW,
    )
)
"""Every enabled family by name."""
