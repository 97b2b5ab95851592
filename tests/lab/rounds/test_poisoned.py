"""The real starter beside as many attackers that say nothing false, `app.lab.attackers`: a minute or more
each."""

from __future__ import annotations

from functools import partial

import pytest

from app.lab.arms import parse_arm
from app.lab.plan import StudyPlan, identity
from app.lab.rounds.experiment import Experiment
from app.models.shelf import locate
from app.sapo.questions import VERSION
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.scoring.scoring import score_group
from app.sapo.seeds import sampling_seed
from engines.models.folder import read_settings

pytest.importorskip("torch")

NODES = 2


def worked(arm: str) -> float:
    """Share of held-out answers that show work after so many rounds that a node alone has learnt to."""
    from engines.torch_lora import open_swarm

    folder = locate("starter")
    settings = read_settings(folder)
    plan = StudyPlan(
        model="starter",
        weights="",
        questions=VERSION,
        levels={"chain_sum": 1, "gcd": 1, "lcm": 1, "simple_equations": 1},
        nodes=NODES,
        rounds=20,
        group=8,
        learning_rate=settings.learning_rate,
        rank=settings.rank,
        max_tokens=settings.max_tokens,
        probe_every=20,
        probe_items=96,
        window=None,
        attempts=1,
        tried=4,
    )
    seeds_N = [sampling_seed(identity(0, node), 0, "adapter") for node in range(NODES)]
    with Sandbox() as sandbox:
        swarm = open_swarm(folder, seeds_N, rank=settings.rank, device="cpu")
        records = list(
            Experiment(plan, parse_arm(arm, "default"), 0, swarm, partial(score_group, sandbox)).rounds()
        )
    probe = records[-1].probe
    assert probe is not None
    return probe.worked


@pytest.mark.long
def test_right_answers_without_work_do_not_teach_that_work_is_useless() -> None:
    alone = worked("8/0")
    assert worked("8/4+foes=terse50") > alone - 0.1
    assert worked("8/4+foes=terse50+guard=tokens.form.length.trust") < alone / 2, "the attack is none"
