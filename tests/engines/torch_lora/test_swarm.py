"""Many adapters over one base do exactly what as many engines would, and never touch each other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engines.contract import Batch, Completion, Row, TokenSequence
from engines.torch_lora import TorchEngine, TorchSwarm, open_engine, open_swarm
from engines.torch_lora.network.native import NativeNetwork
from tests.engines.small_models import MakeModel

SEEDS = [3, 4, 5]
PROMPTS_NP = [
    [[{"role": "user", "content": text}] for text in texts]
    for texts in (["w1 w2", "w3"], ["w4 w5 w6 w7", "w1 w2", "w9"], ["w8"])
]
SEQUENCE = TokenSequence(prompt_T=[5, 6, 3], completion_T=[10, 11, 1])


def batch_of(
    prompts_P: list[list[dict[str, str]]], groups: list[list[Completion]], engine: TorchSwarm
) -> Batch:
    rows = [
        Row(
            prompt_T=engine.prompt_tokens(prompt),
            completion_T=c.tokens_T,
            weights_T=[(-1.0) ** i] * len(c.tokens_T),
        )
        for prompt, group in zip(prompts_P, groups, strict=True)
        for i, c in enumerate(group)
    ]
    return Batch(rows_S=rows, learning_rate=0.02)


@pytest.fixture(params=["qwen2", "qwen3", "gpt_neox"])
def both(request: pytest.FixtureRequest, make_model: MakeModel) -> tuple[TorchSwarm, list[TorchEngine]]:
    folder = make_model(request.param)
    return open_swarm(folder, SEEDS), [open_engine(folder, seed=seed) for seed in SEEDS]


def test_equals_engines_of_their_own(both: tuple[TorchSwarm, list[TorchEngine]]) -> None:
    swarm, engines = both
    for number in range(3):
        seeds = [100 * number + node for node in range(3)]
        groups_N = swarm.sample(PROMPTS_NP, 4, 12, seeds)
        alone_N = [e.sample(p, 4, 12, s) for e, p, s in zip(engines, PROMPTS_NP, seeds, strict=True)]
        for node, (groups, alone) in enumerate(zip(groups_N, alone_N, strict=True)):
            for group, other in zip(groups, alone, strict=True):
                assert [c.tokens_T for c in group] == [c.tokens_T for c in other]
                for one, two in zip(group, other, strict=True):
                    assert one.logprobs_T == pytest.approx(two.logprobs_T, abs=1e-4)
            batch = batch_of(PROMPTS_NP[node], groups, swarm)
            one_step, other_step = swarm.step(node, batch), engines[node].step(batch)
            assert one_step.loss == pytest.approx(other_step.loss, abs=1e-4)
    for node, engine in enumerate(engines):
        torch.testing.assert_close(swarm._adapters_N[node].values, engine._adapter.values, atol=1e-4, rtol=0)
        assert swarm.logprobs(node, [SEQUENCE])[0] == pytest.approx(engine.logprobs([SEQUENCE])[0], abs=1e-4)


def test_one_node_s_step_is_its_own(both: tuple[TorchSwarm, list[TorchEngine]]) -> None:
    swarm, _ = both
    before_N = [adapter.values.clone() for adapter in swarm._adapters_N]
    sampled = swarm.sample(PROMPTS_NP, 4, 12, SEEDS)
    swarm.step(1, batch_of(PROMPTS_NP[1], sampled[1], swarm))
    again = swarm.sample(PROMPTS_NP, 4, 12, SEEDS)
    for node in (0, 2):
        assert torch.equal(swarm._adapters_N[node].values, before_N[node])
        assert not swarm._adapters_N[node].gradients.any() and not swarm._adapters_N[node].moments_1.any()
        assert again[node] == sampled[node]
    assert not torch.equal(swarm._adapters_N[1].values, before_N[1])
    assert again[1] != sampled[1]


def test_too_little_memory_for_all_copies_at_once(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swarm = open_swarm(tiny, SEEDS)
    swarm.step(0, batch_of(PROMPTS_NP[0], swarm.sample(PROMPTS_NP, 4, 12, SEEDS)[0], swarm))
    together = swarm.sample(PROMPTS_NP, 4, 12, SEEDS)
    for most in (1, 2):
        monkeypatch.setattr(NativeNetwork, "nodes_per_pass", lambda self, free, most=most: most)
        apart = swarm.sample(PROMPTS_NP, 4, 12, SEEDS)
        assert [[[c.tokens_T for c in g] for g in n] for n in apart] == [
            [[c.tokens_T for c in g] for g in n] for n in together
        ]


def test_save_load_and_reset(tiny: Path, tmp_path: Path) -> None:
    swarm = open_swarm(tiny, SEEDS)
    fresh = swarm.logprobs(2, [SEQUENCE])
    swarm.step(2, batch_of(PROMPTS_NP[2], swarm.sample(PROMPTS_NP, 4, 12, SEEDS)[2], swarm))
    learned = swarm.logprobs(2, [SEQUENCE])
    swarm.save(2, tmp_path)
    swarm.reset(SEEDS)
    assert swarm.logprobs(2, [SEQUENCE]) == fresh != learned
    swarm.load(2, tmp_path)
    assert swarm.logprobs(2, [SEQUENCE]) == learned
    assert open_engine(tiny, seed=SEEDS[0])._adapter.values.equal(swarm._adapters_N[0].values)


def test_wrong_number_of_nodes(tiny: Path) -> None:
    with pytest.raises(ValueError, match="each of 3 nodes"):
        open_swarm(tiny, SEEDS).sample(PROMPTS_NP[:2], 4, 12, SEEDS)
