from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from app.sapo import adaptive
from app.sapo.adaptive import BRAKED, Mixing, Round, observe, split


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(adaptive).attempted >= 3 and doctest.testmod(adaptive).failed == 0


def played(solved: list[int], nats: float | None = None) -> Mixing:
    """Rounds of four groups of eight answers, one group informative."""
    state = Mixing(budget=8)
    for right in solved:
        state = observe(state, Round(asked=4, informative=1, answered=32, solved=right, nats=nats))
    return state


def test_a_steady_node_never_brakes_and_one_that_forgets_does_for_twenty_rounds() -> None:
    assert played([8] * 60).braking == 0
    fell = played([16] * 10 + [4] * 2)
    assert fell.braking == BRAKED and split(fell, 8, 4)[1] < split(Mixing(budget=8, share=0.25), 8, 4)[1]
    for left in range(BRAKED - 1, 0, -1):
        fell = observe(fell, Round(asked=4, informative=1, answered=32, solved=16))
        assert fell.braking == left


def test_entropy_that_falls_by_a_third_brakes() -> None:
    state = played([8] * 40, nats=1.0)
    for _ in range(10):
        state = observe(state, Round(asked=4, informative=1, answered=32, solved=8, nats=0.2))
    assert state.braking > 0


def test_a_round_without_questions_only_lets_the_brake_run_on() -> None:
    state = Mixing(budget=8, share=0.5, braking=2)
    assert observe(state, Round(asked=0, informative=0, answered=0, solved=0)) == Mixing(
        budget=8, share=0.5, braking=1
    )


@given(
    st.integers(1, 64), st.integers(1, 64), st.floats(0, 1) | st.none(), st.integers(0, 3), st.integers(0, 64)
)
def test_a_split_uses_the_whole_budget_and_asks_at_least_a_quarter(
    budget: int, nodes: int, share: float | None, braking: int, first: int
) -> None:
    mixing = Mixing(budget=budget, share=share, braking=braking)
    own, peer = split(mixing, nodes, min(first, budget) or 1)
    assert own + peer == budget and peer >= 0 and own >= 1
    if share is not None:
        assert 4 * own >= budget
