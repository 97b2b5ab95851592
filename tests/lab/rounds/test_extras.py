"""Extras of an arm: their names, and the real starter beside attackers that say nothing
false."""

from __future__ import annotations

from functools import partial

import pytest

from app.lab.arms import EXTRAS, OF_RECIPE, ArmError, parse_arm
from app.lab.plan import StudyPlan, identity
from app.lab.rounds.experiment import Experiment
from app.lab.rounds.extras import ROUND_EXTRAS
from app.models.shelf import locate
from app.sapo.questions import VERSION
from app.sapo.scoring.sandbox import Sandbox, score_group
from app.sapo.seeds import sampling_seed
from engines.models.folder import read_settings


def test_every_extra_of_an_arm_is_built_by_a_twist_and_its_example_reads() -> None:
    assert set(EXTRAS) == set(ROUND_EXTRAS) | set(OF_RECIPE)
    for name, extra in EXTRAS.items():
        assert parse_arm(f"4/4@default{extra.example}", "faithful").extras[0][0] == name


def test_extras_have_one_order_and_are_part_of_the_key() -> None:
    arm = parse_arm("4/4+fall=4@default+foes=liar30", "faithful")
    assert arm.extras == (("foes", "liar30"), ("fall", "4"))
    assert (arm.name, arm.key) == ("4/4@default+foes=liar30+fall=4", "4-4@default+foes=liar30+fall=4")
    assert not arm.is_plain_solo and parse_arm("8/0", "faithful").is_plain_solo


NONSENSE = [
    "4/4@frontier",
    "8/0+average",
    "4/4+paces=4",
    "4/4+fall=0",
    "4/4+fall=4+fall=2",
    "4/4+unknown",
    "4/4-steps",
    "4/4+guard=off",
    "4/4+guard-guard",
]


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ArmError):
        parse_arm(text, "faithful")


NODES = 2


def worked(arm: str) -> float:
    """Share of held-out answers that show work after so many rounds that a node alone has learnt to."""
    pytest.importorskip("torch")
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
