"""The families of puzzles and their ladders: from easy to hard, each level a setting of reasoning-gym.

One family is one file here, with one record `FAMILY` (`app.sapo.families.family` says what its fields mean).
To add one: write the file, named as the library names the data set (`prime_factorization` is a short one to
begin from); name it twice below, in the imports and at the end of the table; give it a test in
`tests/sapo/families`; run `./shoal translations` for its title. `tests/sapo/test_families.py` and
`test_hostile.py` then hold it to the rules of all: -k NAME runs them for it alone, and `./shoal bench families
NAME` measures it. What several families share is in `scores` and in `app.sapo.reading`.

A ladder is part of a question's meaning: when the questions of a level change, LADDER goes up by one, and peers
with another ladder politely ignore each other's questions. A new family changes nobody's questions.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.sapo.families import (
    arc_1d,
    base_conversion,
    basic_arithmetic,
    bf,
    binary_matrix,
    caesar_cipher,
    calendar_arithmetic,
    chain_sum,
    count_bits,
    decimal_arithmetic,
    fraction_simplification,
    gcd,
    lcm,
    letter_counting,
    number_sorting,
    prime_factorization,
    propositional_logic,
    simple_equations,
    spell_backward,
)
from app.sapo.families.family import Family

LADDER = 2

FAMILIES: Mapping[str, Family] = {
    one.FAMILY.name: one.FAMILY
    for one in (
        chain_sum,
        basic_arithmetic,
        gcd,
        lcm,
        fraction_simplification,
        simple_equations,
        base_conversion,
        spell_backward,
        count_bits,
        number_sorting,
        letter_counting,
        caesar_cipher,
        decimal_arithmetic,
        calendar_arithmetic,
        binary_matrix,
        arc_1d,
        bf,
        propositional_logic,
        prime_factorization,
    )
}
"""Every enabled family by name."""
