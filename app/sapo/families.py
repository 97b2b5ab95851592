"""The families of puzzles and their ladders: from easy to hard, each level a reasoning-gym configuration.

A ladder is part of a question's meaning: when a level changes, LADDER goes up by one, and peers with another
ladder politely ignore each other's questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

LADDER = 1


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A family of puzzles. `levels[k]` is the library configuration of level k; `paper` marks the nine of
    SAPO."""

    name: str
    title: str
    levels: tuple[Mapping[str, Any], ...]
    paper: bool = False


def _ladder(*levels: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return levels


_ALL = (
    Family(
        name="chain_sum",
        title="Sums",
        levels=_ladder(
            dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1),
            dict(min_terms=3, max_terms=5, min_digits=1, max_digits=1),
            dict(min_terms=3, max_terms=5, min_digits=1, max_digits=2),
            dict(min_terms=3, max_terms=6, min_digits=2, max_digits=3),
            dict(min_terms=4, max_terms=8, min_digits=2, max_digits=4),
        ),
    ),
    Family(
        name="basic_arithmetic",
        title="Arithmetic",
        paper=True,
        # Only the form with parentheses: without them the library computes strictly from left to right and so
        # gives 2 + 3 * 4 the truth 20.
        levels=_ladder(
            dict(min_terms=2, max_terms=2, min_digits=1, max_digits=1, operators=("+", "-", "*")),
            dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1, operators=("+", "-", "*")),
            dict(min_terms=3, max_terms=4, min_digits=1, max_digits=1, operators=("+", "-", "*")),
            dict(min_terms=2, max_terms=5, min_digits=1, max_digits=2),
            dict(min_terms=2, max_terms=6, min_digits=1, max_digits=4),
        ),
    ),
    Family(
        name="gcd",
        title="Greatest common divisor",
        levels=_ladder(
            dict(min_value=2, max_value=30),
            dict(min_value=6, max_value=99),
            dict(min_value=20, max_value=300),
            dict(min_value=50, max_value=1000),
            dict(min_numbers=2, max_numbers=3, min_value=50, max_value=5000),
        ),
    ),
    Family(
        name="lcm",
        title="Least common multiple",
        levels=_ladder(
            dict(min_value=2, max_value=12),
            dict(min_value=4, max_value=30),
            dict(min_value=10, max_value=99),
            dict(min_value=20, max_value=300),
            dict(min_numbers=2, max_numbers=3, min_value=10, max_value=300),
        ),
    ),
    Family(
        name="fraction_simplification",
        title="Fractions",
        paper=True,
        levels=_ladder(
            dict(min_value=1, max_value=9, min_factor=2, max_factor=9, styles=("plain",)),
            dict(min_value=2, max_value=20, min_factor=2, max_factor=12, styles=("plain",)),
            dict(min_value=2, max_value=60, min_factor=2, max_factor=40),
            dict(min_value=5, max_value=300, min_factor=2, max_factor=60),
            dict(min_value=1, max_value=1000, min_factor=2, max_factor=100),
        ),
    ),
    Family(
        name="simple_equations",
        title="Equations",
        levels=_ladder(
            dict(min_terms=2, max_terms=2, min_value=1, max_value=9, operators_weights=[0.5, 0.5, 0.0]),
            dict(min_terms=2, max_terms=3, min_value=1, max_value=20, operators_weights=[0.5, 0.5, 0.0]),
            dict(min_terms=2, max_terms=3, min_value=1, max_value=50),
            dict(min_terms=2, max_terms=4, min_value=1, max_value=100),
            dict(min_terms=3, max_terms=6, min_value=1, max_value=200),
        ),
    ),
    Family(
        name="base_conversion",
        title="Number bases",
        paper=True,
        levels=_ladder(
            dict(min_base=2, max_base=4, min_value=4, max_value=40),
            dict(min_base=2, max_base=8, min_value=8, max_value=120),
            dict(min_base=2, max_base=10, min_value=20, max_value=400),
            dict(min_base=2, max_base=16, min_value=50, max_value=1000),
            dict(min_base=2, max_base=20, min_value=100, max_value=10000),
        ),
    ),
    Family(
        name="spell_backward",
        title="Backward spelling",
        levels=_ladder(
            dict(min_word_len=3, max_word_len=4),
            dict(min_word_len=5, max_word_len=7),
            dict(min_word_len=7, max_word_len=9),
            dict(min_word_len=9, max_word_len=10),
        ),
    ),
    Family(
        name="count_bits",
        title="Counting bits",
        levels=_ladder(
            dict(min_n=1, max_n=63),
            dict(min_n=64, max_n=1023),
            dict(min_n=1024, max_n=65535),
            dict(min_n=65536, max_n=2**31 - 1),
        ),
    ),
    Family(
        name="number_sorting",
        title="Sorting",
        levels=_ladder(
            dict(min_numbers=3, max_numbers=4, max_decimals=0, min_value=0, max_value=99),
            dict(min_numbers=4, max_numbers=6, max_decimals=0, min_value=-99, max_value=99),
            dict(min_numbers=5, max_numbers=8, max_decimals=1),
            dict(min_numbers=6, max_numbers=12, max_decimals=2, min_value=-1000, max_value=1000),
        ),
    ),
    Family(
        name="letter_counting",
        title="Counting letters",
        levels=_ladder(
            dict(min_words=3, max_words=5),
            dict(min_words=5, max_words=10),
            dict(min_words=10, max_words=20),
        ),
    ),
    Family(
        name="caesar_cipher",
        title="Caesar cipher",
        levels=_ladder(
            dict(min_words=1, max_words=2, min_rotation=1, max_rotation=3),
            dict(min_words=2, max_words=4, min_rotation=1, max_rotation=8),
            dict(min_words=3, max_words=8),
            dict(min_words=5, max_words=20),
        ),
    ),
    Family(
        name="decimal_arithmetic",
        title="Decimals",
        paper=True,
        levels=_ladder(
            dict(min_num_decimal_places=1, max_num_decimal_places=1, min_terms=2, max_terms=2, precision=4),
            dict(min_num_decimal_places=1, max_num_decimal_places=2, min_terms=2, max_terms=3, precision=5),
            dict(min_num_decimal_places=1, max_num_decimal_places=3, min_terms=2, max_terms=4, precision=5),
            dict(min_num_decimal_places=1, max_num_decimal_places=3, min_terms=2, max_terms=6, precision=8),
        ),
    ),
    Family(
        name="calendar_arithmetic",
        title="Calendar",
        paper=True,
        levels=_ladder(
            dict(tasks=["weekday_offset", "weekday_of_date"], offset_upper_bound=14),
            dict(
                tasks=["weekday_offset", "weekday_of_date", "is_leap_year", "count_days"],
                offset_upper_bound=100,
            ),
            dict(offset_upper_bound=365),
        ),
    ),
    Family(
        name="binary_matrix",
        title="Distance grids",
        paper=True,
        levels=_ladder(
            dict(min_n=3, max_n=3),
            dict(min_n=3, max_n=5),
            dict(min_n=4, max_n=7),
            dict(min_n=3, max_n=10),
        ),
    ),
    Family(
        name="arc_1d",
        title="Rows of colours",
        paper=True,
        levels=_ladder(
            dict(min_size=8, max_size=10),
            dict(min_size=8, max_size=16),
            dict(min_size=10, max_size=30),
        ),
    ),
    Family(
        name="bf",
        title="Tiny programs",
        paper=True,
        levels=_ladder(dict(difficulty=1), dict(difficulty=2)),
    ),
    Family(
        name="propositional_logic",
        title="Logic",
        paper=True,
        # A premise of complexity 1 is a bare variable: two such premises make only four different questions.
        levels=_ladder(
            dict(
                min_vars=3, max_vars=3, min_statements=2, max_statements=2, min_complexity=2, max_complexity=2
            ),
            dict(
                min_vars=3, max_vars=4, min_statements=2, max_statements=3, min_complexity=2, max_complexity=2
            ),
            dict(
                min_vars=3, max_vars=4, min_statements=2, max_statements=4, min_complexity=2, max_complexity=3
            ),
        ),
    ),
)

FAMILIES: Mapping[str, Family] = {family.name: family for family in _ALL}
"""Every enabled family by name. The tests show for each that it regenerates identically in another process, in
less than 20 ms, and that its scorer survives hostile text."""
