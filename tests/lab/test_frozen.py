"""What the lab did before, step for step: digests of every optimiser step of a small run on a
made-up swarm (rate, clip, tokens, weights and old log-probs of all rows). A change that leaves rounds as they
are leaves these as they are."""

from __future__ import annotations

import builtins
import operator
import sys
from functools import partial, reduce
from hashlib import sha256

import msgspec
import pytest

from app.lab.arms import parse_arm
from app.lab.rounds.experiment import Experiment
from app.sapo.scoring.sandbox import Sandbox, score_group
from tests.lab.fake_swarm import FakeSwarm
from tests.lab.rounds.test_experiment import varied

PLAN = varied(rounds=6)
FROZEN = {
    "4/0": "ca6739d29c832029",
    "8/0": "80bebc9772e8dbba",
    "4/4": "9b8a45704212842d",
    "2/6": "b41d059d640cc0fa",
    "2/2+ds": "2f48f259d937eddd",
    "4/4!shuffled": "db3d8aa84e230400",
    "4/4@default-guard": "7212f4e21e6412b4",
    "4/4@default": "03239b45cd25010f",
    "4/4@default+fall=40": "256039b7ac27db74",
    "4/4@default+foes=poison30": "a383b7f575b876da",
    "4/4@default+foes=terse30": "aeb0546df4823144",
    "4/4@default+foes=whispers30": "429750979da76235",
    "4/4@default+foes=liar30": "03239b45cd25010f",
    "4/4@default+foes=copy30": "03239b45cd25010f",
}
"""The last two are what the arm is without them: not a bit arrives of liars and copies."""
ALWAYS = ("4/4", "2/2+ds", "4/4@default", "4/4@default+foes=poison30", "4/4@default+foes=liar30")
"""Together: peers, dynamic sampling, the default recipe with its defences, attackers."""


@pytest.fixture(autouse=True)
def sums_of_python_3_11(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 3.12 on, sum() of floats carries what each addition rounds away, and every digest is another."""
    if sys.version_info >= (3, 12):
        monkeypatch.setattr(builtins, "sum", lambda them, start=0: reduce(operator.add, them, start))


@pytest.mark.parametrize(
    "arm", [arm if arm in ALWAYS else pytest.param(arm, marks=pytest.mark.long) for arm in FROZEN]
)
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
