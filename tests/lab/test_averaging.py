"""Averaging in pairs: the formula, who meets whom, and what it does to real adapters."""

from __future__ import annotations

import pytest

from app.lab.averaging import Outer, outer_step, pairs


def test_the_pull_moves_partners_together_and_leaves_their_mean() -> None:
    slow, _ = outer_step([1.0, 5.0], [1.0, 5.0], [0.0, 0.0], Outer(alpha=0.5, beta=0.7, gamma=0.7))
    assert slow == pytest.approx([1.0 + 0.7 * 2, 5.0 - 0.7 * 2])
    assert sum(slow) == pytest.approx(6.0)


def test_a_node_alone_follows_its_own_steps() -> None:
    slow, momentum = outer_step([2.0], [3.0], [0.4], Outer(alpha=0.5, beta=0.7, gamma=0.7))
    assert momentum == pytest.approx([0.5 * 0.4 + 0.7])
    assert slow == pytest.approx([2.9])


def test_everybody_meets_once_and_not_always_the_same() -> None:
    meetings = [pairs(range(8), number, 3) for number in range(20)]
    assert all(sorted(node for group in meeting for node in group) == list(range(8)) for meeting in meetings)
    assert len({group for meeting in meetings for group in meeting}) > 15


def test_adapters_share_a_and_their_b_come_together() -> None:
    torch = pytest.importorskip("torch")
    from engines.contract import Batch, Row
    from engines.torch_lora import open_swarm

    swarm = open_swarm("starter", [1, 2], threads=1)
    swarm.hold_a()
    start = swarm.values(0)
    assert torch.equal(start, swarm.values(1))
    for node, (word, weight) in enumerate((("#1", 0.5), ("#2", -0.5))):
        sequence = swarm.encode([{"role": "user", "content": "1 + 1"}], word, True)
        row = Row(
            prompt_T=sequence.prompt_T,
            completion_T=sequence.completion_T,
            weights_T=[weight] * len(sequence.completion_T),
        )
        for _ in range(3):
            swarm.step(node, Batch(rows_S=[row], learning_rate=1e-2, clip=None))
    fast = [swarm.values(node) for node in (0, 1)]
    moved = (fast[0] != start).float().mean()
    assert 0.0 < moved < 1.0, "B learns and A is held"
    slow, _ = outer_step(
        [start, start], fast, [0.0 * start, 0.0 * start], Outer(alpha=0.5, beta=1.0, gamma=0.7)
    )
    swarm.put(0, slow[0])
    swarm.put(1, slow[1])
    assert torch.allclose(swarm.values(0), (fast[0] + fast[1]) / 2, atol=1e-6)
    assert torch.equal(swarm.values(0), swarm.values(1))
