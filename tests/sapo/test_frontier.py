from __future__ import annotations

import doctest
from collections import Counter
from random import Random

from app.sapo import frontier
from app.sapo.frontier import Sighting, choose, priority, rate


def seen(solved: int, age: int = 0, own: tuple[int, int] = (0, 0)) -> Sighting:
    return Sighting(age=age, peer_solved=solved, peer_answered=8, own_solved=own[0], own_answered=own[1])


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(frontier).attempted >= 4 and doctest.testmod(frontier).failed == 0


def test_own_answers_weigh_more_than_a_peers() -> None:
    assert rate(seen(8, own=(0, 8))) < 0.5 < rate(seen(0, own=(8, 8)))


def test_the_frontier_comes_first_and_age_fades_it() -> None:
    assert priority(seen(4)) > priority(seen(1)) > priority(seen(1, age=5)) > 0
    assert abs(priority(seen(1, age=10)) / priority(seen(1)) - 0.3679) < 1e-4


def test_the_choice_is_distinct_and_follows_the_priorities() -> None:
    offers = [seen(4), seen(4, age=30)]
    first = Counter(choose(offers, 1, Random(seed))[0] for seed in range(300))
    assert first[0] > 10 * first[1]
    assert sorted(choose(offers, 9, Random(0))) == [0, 1] and choose([], 3, Random(0)) == []
    assert choose(offers, 2, Random(5)) == choose(offers, 2, Random(5))
