"""The families of puzzles and their ladders: from easy to hard, each level a setting of reasoning-gym.

One family is one file in a folder below, with one record `FAMILY` (`app.sapo.families.family` says what its
fields mean). To add one: write the file, named as the library names the data set (`prime_factorization` is a
short one to begin from); name it twice below, in the imports and at the end of the table; give it a test in
`tests/sapo/families`; run `./shoal translations` for its title. `tests/sapo/test_families.py` and
`test_hostile.py` then hold it to the rules of all: -k NAME runs them for it alone, and `./shoal bench puzzles
NAME` measures it. What several families share is in `scores`, in `wording` and in `app.sapo.reading`.

A ladder is part of a question's meaning: when the questions of a level change, or their wording, or what a
family takes for their content, which decides what is held out, LADDER goes up by one, and peers with another
ladder politely ignore each other's questions. A new family changes no one's questions.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.sapo.families.arithmetic import (
    basic_arithmetic,
    bitwise_arithmetic,
    chain_sum,
    complex_arithmetic,
    countdown,
    decimal_arithmetic,
    decimal_chain_sum,
    fraction_simplification,
    gsm_symbolic,
    leg_counting,
    power_function,
    products,
    simple_equations,
    simple_geometry,
)
from app.sapo.families.family import Family
from app.sapo.families.grids import (
    arc_1d,
    binary_matrix,
    largest_island,
    manipulate_matrix,
    maze,
    mini_sudoku,
    n_queens,
    path_star,
    rectangle_count,
    rotate_matrix,
    rotten_oranges,
    shortest_path,
    spiral_matrix,
)
from app.sapo.families.logic import (
    aiw,
    bf,
    binary_alternation,
    family_relationships,
    graph_color,
    knights_knaves,
    propositional_logic,
)
from app.sapo.families.numbers import (
    base_conversion,
    coin_flip,
    count_bits,
    count_primes,
    dice,
    gcd,
    lcm,
    number_filtering,
    number_format,
    number_sequence,
    number_sorting,
    prime_factorization,
)
from app.sapo.families.times import calendar_arithmetic, time_intervals
from app.sapo.families.words import (
    caesar_cipher,
    letter_counting,
    letter_jumble,
    needle_haystack,
    palindrome_generation,
    spell_backward,
    word_ladder,
    word_sequence_reversal,
    word_sorting,
)

LADDER = 4

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
        products,
        leg_counting,
        number_filtering,
        decimal_chain_sum,
        count_primes,
        simple_geometry,
        complex_arithmetic,
        time_intervals,
        number_sequence,
        countdown,
        dice,
        number_format,
        bitwise_arithmetic,
        power_function,
        needle_haystack,
        word_sequence_reversal,
        word_sorting,
        palindrome_generation,
        family_relationships,
        gsm_symbolic,
        letter_jumble,
        binary_alternation,
        coin_flip,
        knights_knaves,
        word_ladder,
        spiral_matrix,
        rotate_matrix,
        mini_sudoku,
        path_star,
        shortest_path,
        rectangle_count,
        largest_island,
        n_queens,
        maze,
        rotten_oranges,
        graph_color,
        manipulate_matrix,
        aiw,
    )
}
"""Every enabled family by name."""
