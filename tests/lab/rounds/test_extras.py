from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.lab import study
from app.lab.arms import EXTRAS, OF_RECIPE, ArmError, parse_arm
from app.lab.rounds.extras import ROUND_EXTRAS
from app.sapo.scoring.sandbox import Sandbox
from tests.lab.rounds.test_experiment import Lab, varied


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


def test_every_extra_of_an_arm_is_built_by_a_twist_and_its_example_reads() -> None:
    assert set(EXTRAS) == set(ROUND_EXTRAS) | set(OF_RECIPE) | {study.NAME}
    for name, extra in EXTRAS.items():
        assert parse_arm(f"4/4@default{extra.example}", "faithful").extras[0][0] == name


def test_extras_have_one_order_and_are_part_of_the_key() -> None:
    arm = parse_arm("4/4+paces=4@default+churn", "faithful")
    assert arm.extras == (("churn", ""), ("paces", "4"))
    assert (arm.name, arm.key) == ("4/4@default+churn+paces=4", "4-4@default+churn+paces=4")
    assert not arm.plain and parse_arm("8/0", "faithful").plain


NONSENSE = [
    "4/4@frontier",
    "8/0+average",
    "4/4+paces=0",
    "4/4+paces=4+paces=2",
    "4/4+unknown",
    "4/4-steps",
    "4/4+guard=off",
    "4/4+guard-guard",
]


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ArmError):
        parse_arm(text, "faithful")


def test_slow_nodes_answer_and_learn_in_every_kth_round_only(sandbox: Sandbox) -> None:
    lab = Lab(sandbox, "2/2+paces=2", varied(nodes=4, rounds=4))
    asked = [[len(questions) for questions in call] for call in lab.asked()]
    assert asked == [[2, 2, 0, 2], [2, 2, 2, 0], [2, 2, 0, 2], [2, 2, 2, 0]]
    assert [record.active for record in lab.records[1:]] == [3] * 4
    assert all(record.generated == 3 * 2 * 4 for record in lab.records[1:])
    assert all(len(record.probe.pass_at_1_N) == 4 for record in lab.records if record.probe)


def test_nodes_that_come_and_go_are_half_of_them_and_the_first_stays(sandbox: Sandbox) -> None:
    lab = Lab(sandbox, "2/2+churn=2", varied(nodes=4, rounds=6))
    here = [{node for node, questions in enumerate(call) if questions} for call in lab.asked()]
    assert all(0 in nodes and len(nodes) == 2 for nodes in here)
    assert here[0] == here[1] and len({frozenset(nodes) for nodes in here}) > 1
