"""Small talk that is held: what its rows weigh."""

from __future__ import annotations

from random import Random

import pytest

from app.learning.language import MAX_PULL_NATS, ROUND_RETENTION, PreservedReply, add_replies, needed_rise
from engines.contract import Batch, Row, TokenSequence

STEP = Batch(
    rows_S=[Row(prompt_T=[9], completion_T=[8], weights_T=[1.0])], learning_rate=1e-4, clip=(0.2, 0.28)
)


def held(number: int, pull_T: list[float]) -> PreservedReply:
    tokens = TokenSequence(prompt_T=[number], completion_T=[number] * len(pull_T))
    return PreservedReply(sequence=tokens, pull_T=pull_T)


def test_every_step_keeps_its_own_rows_and_carries_some_of_the_replies() -> None:
    some = [held(number, [0.25, 0.0]) for number in range(6)]
    steps = add_replies([STEP] * 4, some, Random(3))
    assert [step.rows_S[0] for step in steps] == STEP.rows_S * 4
    assert {len(step.rows_S) for step in steps} == {1 + ROUND_RETENTION.per_step}
    assert all(step.learning_rate == STEP.learning_rate and step.clip == STEP.clip for step in steps)
    carried = [tuple(row.prompt_T[0] for row in step.rows_S[1:]) for step in steps]
    assert len(set(carried)) > 1 and all(len(set(one)) == ROUND_RETENTION.per_step for one in carried)
    assert all(row.old_logprobs_T is row.sampler_logprobs_T is None for row in steps[0].rows_S[1:])


def test_nothing_changed_weighs_nothing_and_far_off_no_more_than_the_most() -> None:
    assert not any(needed_rise([-2.0, -3.0, -1.0], [-2.0, -3.0, -4.0]))
    (step,) = add_replies(
        [STEP],
        [held(1, needed_rise([-1.0] * 3, [-50.0] * 3)) for _ in range(ROUND_RETENTION.per_step)],
        Random(0),
    )
    weights = [weight for row in step.rows_S[1:] for weight in row.weights_T]
    assert max(weights) * len(weights) == pytest.approx(ROUND_RETENTION.strength * MAX_PULL_NATS)


def test_without_replies_a_round_is_as_it_was() -> None:
    assert add_replies([STEP], [], Random(0)) == [STEP]
