"""What the lab did before it played the app's own round, step for step: frozen from the version before.

Digests of every optimiser step of a small run on a made-up swarm: rate, clip, tokens, weights and old log-probs
of all rows. Then `@default` had neither defences nor several steps unless an arm said so, and none of the form;
its name of today stands here. One thing differs on purpose, and no arm here shows it: where the library has an
unsound item, own questions are now drawn on from the same seed, as the app does, and no longer from the next
attempt's. And one arm is of today: whom a node doubts (`app.sapo.mixing`) fills up no round, so the steps
beside poisoners are others than they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import sha256

import msgspec
import pytest

from app.lab.arms.arms import parse_arm
from app.lab.rounds.experiment import Experiment
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.scoring.scoring import score_group
from tests.lab.fake_swarm import FakeSwarm
from tests.lab.rounds.test_experiment import varied

PLAN = varied(rounds=6)
FROZEN = {
    "4/0": "3b1ce0ffd6947a33",
    "8/0": "8bc2f1e91685d9aa",
    "4/4": "5b14a409c445f105",
    "2/6": "dd7ceab32c219dbe",
    "2/2+ds": "f28d22b83125bdeb",
    "4/4!shuffled": "fd7bda85f920e79f",
    "4/4+paces=2": "2234c4c5ea0f515d",
    "4/4+churn=2": "4e6da03bdaa70522",
    "4/4@default-guard+steps=1": "08ad1181a40d72c6",
    "4/4@default-guard": "bf2d363403d60b3d",
    "4/4@default+guard=tokens.form.length.trust": "cdcc20b646e9e734",
    "4/4@default+guard=form.length": "bf2d363403d60b3d",
    "4/4@default+guard=tokens.form.length.trust+foes=poison30": "51c64d504270bf8e",
    "4/4@default-guard+foes=liar30believed": "52bb05df29603975",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


@pytest.mark.parametrize("arm", FROZEN)
def test_every_step_is_the_one_of_before(sandbox: Sandbox, arm: str) -> None:
    swarm = FakeSwarm(PLAN.nodes)
    list(Experiment(PLAN, parse_arm(arm, "faithful"), 0, swarm, partial(score_group, sandbox)).rounds())
    steps = [
        (
            node,
            batch.learning_rate,
            batch.clip,
            [
                (row.prompt_T, row.completion_T, row.weights_T, row.old_logprobs_T, row.sampler_logprobs_T)
                for row in batch.rows_S
            ],
        )
        for node, batch in swarm.batches
    ]
    assert sha256(msgspec.json.encode(steps)).hexdigest()[:16] == FROZEN[arm]
