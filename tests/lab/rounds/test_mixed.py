"""Nodes of different models in one swarm: every node does what it would do among its own kind."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from app.lab.arms import parse_arm
from app.lab.plan import named
from app.lab.rounds.experiment import Experiment
from app.lab.swarm import MixedSwarm
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.scoring.scoring import score_group
from engines.contract import Messages
from tests.lab.fake_swarm import FakeSwarm
from tests.lab.rounds.test_experiment import Lab, varied

PROMPT: Messages = [{"role": "user", "content": "3 + 4"}]


def test_nodes_are_dealt_to_their_models_and_calls_delegated() -> None:
    able, weak = FakeSwarm(2, start=1.0), FakeSwarm(1, start=-3.0)
    swarm = MixedSwarm([able, weak], [0, 1, 0])
    swarm.sample([[PROMPT], [PROMPT] * 2, []], 4, 8, [7, 8, 9])
    assert [[len(questions) for questions in member.asked[0][1]] for member in (able, weak)] == [[1, 0], [2]]
    told = swarm.logprobs(1, [swarm.encode(PROMPT, "w #7", True)])
    assert (
        told
        == weak.logprobs(0, [weak.encode(PROMPT, "w #7", True)])
        != able.logprobs(0, [able.encode(PROMPT, "w #7", True)])
    )
    with pytest.raises(ValueError, match="each of 3 nodes"):
        swarm.sample([[PROMPT]], 1, 8, [7])


def test_alone_a_node_learns_as_among_its_own_kind(sandbox: Sandbox) -> None:
    able, weak = FakeSwarm(2, start=0.0), FakeSwarm(2, start=-2.0)
    plan = varied(nodes=4, rounds=3, probe_every=3, models=("big", "little", "big", "little"))
    swarm = MixedSwarm([able, weak], [0, 1, 0, 1])
    list(Experiment(plan, parse_arm("4/0", "faithful"), 0, swarm, partial(score_group, sandbox)).rounds())
    all_able = Lab(sandbox, "4/0", varied(nodes=4, rounds=3, probe_every=3), start=0.0).swarm
    all_weak = Lab(sandbox, "4/0", varied(nodes=4, rounds=3, probe_every=3), start=-2.0).swarm
    assert able.lean == [all_able.lean[0], all_able.lean[2]]
    assert weak.lean == [all_weak.lean[1], all_weak.lean[3]]


def test_text_goes_from_one_model_to_the_other(sandbox: Sandbox) -> None:
    able, weak = FakeSwarm(1, start=1.0), FakeSwarm(1, start=-4.0)
    plan = varied(nodes=2, rounds=8, probe_every=8, models=("big", "little"))
    swarm = MixedSwarm([able, weak], [0, 1])
    records = list(
        Experiment(plan, parse_arm("2/2", "faithful"), 0, swarm, partial(score_group, sandbox)).rounds()
    )
    assert sum(record.informative_peer for record in records) > 0
    # a row of a peer's text is one that the member never sampled itself
    learnt = [row.completion_T for _, batch in weak.batches for row in batch.rows_S]
    assert any(tokens_T[0] == ord("w") for tokens_T in learnt)
    assert records[-1].probe is not None and len(records[-1].probe.pass_at_1_N) == 2


def test_a_plan_names_its_models() -> None:
    assert named(varied()) == "fake"
    assert named(varied(models=("a", "b", "a"))) == "a (2 nodes), b (1 node)"


def test_models_are_alike_in_reading_or_not(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from app.lab.starter.pretrain import PretrainPlan, new_model, save
    from app.lab.swarm import read_alike
    from app.models.shelf import locate

    plan = PretrainPlan(hidden=16, layers=1, heads=2, kv_heads=1, feed_forward=16)
    save(new_model(plan), plan, tmp_path)
    assert read_alike(tmp_path, locate("starter"))
    template = tmp_path / "chat_template.jinja"
    template.write_text("Question: " + template.read_text())
    assert not read_alike(tmp_path, locate("starter"))
