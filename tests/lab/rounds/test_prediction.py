from __future__ import annotations

from random import Random

import pytest

from app.lab.rounds import probing
from app.sapo.groups import informative, informative_probability

# Informative groups per round with 8 nodes, for arms 8/0, 6/2, 4/4, 2/6: the table of the research note (2.7).
TABLE = {
    0.004: (0.25, 1.31, 1.01, 0.50),
    0.01: (0.62, 2.28, 2.39, 1.24),
    0.03: (1.73, 3.30, 4.70, 3.44),
    0.05: (2.69, 4.02, 5.34, 5.14),
    0.1: (4.56, 5.42, 6.28, 7.01),
    0.3: (7.54, 7.65, 7.77, 7.88),
}


@pytest.mark.parametrize("p", TABLE)
def test_the_table_of_the_counting_model(p: float) -> None:
    share = informative_probability(p, 8)
    counted = [
        probing.expected_own_groups(own, share, 1) + probing.expected_peer_groups(8 - own, 7 * own, share)
        for own in (8, 6, 4, 2)
    ]
    assert counted == pytest.approx(TABLE[p], abs=0.0051)


def test_dynamic_sampling_against_a_simulation() -> None:
    rng, p, attempts, own, found = Random(5), 0.05, 3, 4, 0
    for _ in range(4000):
        for _ in range(own):
            found += any(informative([int(rng.random() < p) for _ in range(8)]) for _ in range(attempts))
    share = informative_probability(p, 8)
    assert found / 4000 == pytest.approx(probing.expected_own_groups(own, share, attempts), abs=0.06)


def test_shares_are_averaged_over_families_not_rates() -> None:
    mixed = probing.informative_share([0.0, 1.0], 8)
    assert mixed == 0.0 and probing.informative_share([0.5], 8) > 0.99
