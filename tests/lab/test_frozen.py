"""What the lab did before it played the app's own round, step for step: frozen from the version before.

Digests of every optimiser step of a small run on a made-up swarm: rate, clip, tokens, weights and old log-probs
of all rows. Then `@default` had neither defences nor several steps unless an arm said so, and none of the form;
its name of today stands here. One thing differs on purpose, and no arm here shows it: where the library has an
unsound item, own questions are now drawn on from the same seed, as the app does, and no longer from the next
attempt's. And one arm is of today: whom a node doubts (`app.learning.choosing`) fills up no round, so the steps
beside poisoners are others than they were. The digests were taken anew when questions came to be held out by
content instead of by text, which changes what is drawn and nothing else. Two arms with the check of tokens
have the steps of today's habits, which leave no slack.
"""

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
    "4/4@default-guard+steps=1": "099a71b76bdd2cc9",
    "4/4@default-guard": "7212f4e21e6412b4",
    "4/4@default+guard=tokens.form.length.trust": "72da598879f19fb4",
    "4/4@default+guard=form.length": "7212f4e21e6412b4",
    "4/4@default+guard=tokens.form.length.trust+foes=poison30": "b0169a49695ddb52",
    "4/4@default-guard+foes=liar30believed": "ba3850223f69dd79",
}
ALWAYS = (
    "4/4",
    "2/2+ds",
    "4/4@default-guard+steps=1",
    "4/4@default+guard=tokens.form.length.trust+foes=poison30",
)
"""Together: peers, dynamic sampling, the default recipe, its defences, attackers."""


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
