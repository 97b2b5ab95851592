from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from app.lab.arms import EXTRAS, ArmError, parse_arm
from app.lab.experiment import Experiment
from app.lab.twists import TWISTS
from app.sapo.sandbox import Sandbox
from app.sapo.scoring import score_group
from engines.contract import Batch, StepStats
from tests.lab.fake_swarm import FakeSwarm
from tests.lab.test_experiment import Lab, varied


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


def test_every_extra_of_an_arm_is_built_by_a_twist_and_its_example_reads() -> None:
    assert set(EXTRAS) == set(TWISTS) | {"steps"}
    for name, extra in EXTRAS.items():
        assert parse_arm(f"4/4{extra.example}", "faithful").extras[0][0] == name


def test_extras_have_one_order_and_are_part_of_the_key() -> None:
    arm = parse_arm("4/4+paces=4@default+churn", "faithful")
    assert arm.extras == (("churn", ""), ("paces", "4"))
    assert (arm.name, arm.key) == ("4/4@default+churn+paces=4", "4-4@default+churn+paces=4")
    assert not arm.plain and parse_arm("8/0", "faithful").plain


@pytest.mark.parametrize("text", ["4/4+paces=0", "4/4+paces=4+paces=2", "4/4+unknown", "4/4!shuffled@frontier"])
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


def test_adaptive_nodes_ask_more_while_little_is_informative(sandbox: Sandbox) -> None:
    lab = Lab(sandbox, "4/4@adaptive", varied(nodes=8, rounds=6, group=8), start=-2.0)
    asked = [record.own for record in lab.records[1:]]
    assert asked[0] == 4 and all(2 <= own <= 8 for own in asked if own)
    assert len(set(asked)) > 1
    assert all(r.informative_own + r.informative_peer <= 8 for r in lab.records)


def test_the_frontier_is_answered_again_and_rescued(sandbox: Sandbox) -> None:
    lab = Lab(sandbox, "2/2@frontier", varied(nodes=4, rounds=4, probe_every=9), start=-3.0)
    calls = lab.asked()
    own, again = calls[0::2], calls[1::2]
    assert all(not questions for questions in again[0])  # nothing had been published
    earlier: list[set[str]] = [set() for _ in range(4)]
    answered_again = 0
    for number, call in enumerate(again):
        for node, questions in enumerate(call):
            foreign = set().union(*(texts for other, texts in enumerate(earlier) if other != node))
            assert set(questions) <= foreign
            answered_again += len(questions)
        for node, questions in enumerate(own[number]):
            earlier[node] |= set(questions)
    assert answered_again
    # whatever is learned from a peer's question but one row of a rescued group is the node's own text
    assert 0 < len(lab.swarm.foreign) <= answered_again
    generated = sum(record.generated for record in lab.records)
    assert generated == sum(len(questions) for call in calls for questions in call) * 4
    assert any(record.batch_reward for record in lab.records[1:])


def test_a_node_that_gets_worse_goes_back_to_its_running_mean(sandbox: Sandbox) -> None:
    class Spoilt(FakeSwarm):
        """From the 20th round on its steps lead down."""

        def step(self, node: int, batch: Batch) -> StepStats:
            stats = super().step(node, batch)
            if node == 0 and sum(who == 0 for who, _ in self.batches) > 20:
                self.lean[0] -= 1.5
            return stats

    leans = {}
    for arm in ("8/0", "8/0+rollback"):
        swarm = Spoilt(2, start=1.0)
        plan = varied(nodes=2, rounds=34, probe_every=34, probe_items=8)
        experiment = Experiment(plan, parse_arm(arm, "faithful"), 0, swarm, partial(score_group, sandbox))
        records = list(experiment.rounds())
        leans[arm] = swarm.lean
    back = [int((record.extra or {})["rolled_back"]) for record in records[1:]]
    assert sum(back) == 1 and back.index(1) >= 20
    assert leans["8/0+rollback"][0] > leans["8/0"][0] + 2.0
    assert leans["8/0+rollback"][1] == leans["8/0"][1], "the other one never fell"
