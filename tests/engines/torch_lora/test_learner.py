"""The optimiser step: what moves, what must not, and what happens when something is wrong."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
import torch

from engines.batches import BatchLimits, micro_batches
from engines.contract import EngineError, Row, TokenSequence
from engines.torch_lora import learner, open_engine
from engines.torch_lora.engine import TorchEngine
from engines.torch_lora.learner import measured_limits
from engines.torch_lora.network.adapter import Adapter, Projection
from tests.engines.lessons import BAD, GOOD, LONG, OTHER, PROMPT, ROWS, batch, likelihood, row


def adapter_of(engine: TorchEngine) -> Adapter:
    return engine._adapter


def test_better_becomes_likelier(tiny: Path) -> None:
    engine = open_engine(tiny)
    before = likelihood(engine, (PROMPT, GOOD), (PROMPT, BAD))
    stats = engine.step(batch(row(PROMPT, GOOD, 1.0), row(PROMPT, BAD, -1.0)))
    after = likelihood(engine, (PROMPT, GOOD), (PROMPT, BAD))
    assert after[0] > before[0] and after[1] < before[1]
    assert stats.rows == 2 and stats.tokens == 6 and stats.grad_norm > 0
    assert stats.loss == pytest.approx(before[1] - before[0], abs=1e-4)


def test_weights_are_per_token(tiny: Path) -> None:
    """Only the token with weight moves on purpose: the first up, while the second is left alone."""
    engine = open_engine(tiny)
    sequence = TokenSequence(prompt_T=PROMPT, completion_T=GOOD)
    before = engine.logprobs([sequence])[0]
    stats = engine.step(batch(Row(prompt_T=PROMPT, completion_T=GOOD, weights_T=[2.0, 0.0, 0.0])))
    assert stats.loss == pytest.approx(-2 * before[0], abs=1e-4)
    assert engine.logprobs([sequence])[0][0] > before[0]


def test_same_batch_same_loss(tiny: Path) -> None:
    first, second = open_engine(tiny), open_engine(tiny)
    one, other = first.step(batch(*ROWS)), second.step(batch(*ROWS))
    assert (one.loss, one.grad_norm) == (other.loss, other.grad_norm)
    assert torch.equal(adapter_of(first).values, adapter_of(second).values)


def test_rows_without_weight_change_nothing(tiny: Path) -> None:
    plain, padded = open_engine(tiny), open_engine(tiny)
    one = plain.step(batch(*ROWS))
    other = padded.step(batch(row(PROMPT, LONG, 0.0), *ROWS, row([21] * 9, BAD, 0.0)))
    assert other.rows == one.rows == 4 and other.loss == one.loss
    assert torch.equal(adapter_of(plain).values, adapter_of(padded).values)


def test_nothing_to_learn(tiny: Path) -> None:
    """Not even the momentum of earlier steps moves the adapter then."""
    engine = open_engine(tiny)
    engine.step(batch(*ROWS))
    before = adapter_of(engine).values.clone()
    stats = engine.step(batch(row(PROMPT, GOOD, 0.0)))
    assert stats.rows == 0 and stats.micro_batches == 0
    assert torch.equal(adapter_of(engine).values, before) and adapter_of(engine).steps == 1


def test_micro_batches_change_nothing(tiny: Path) -> None:
    whole, parts = open_engine(tiny), open_engine(tiny)
    parts._base.learner.limits = BatchLimits(tokens=8)
    recomputed = open_engine(tiny)
    recomputed._base.learner.limits = BatchLimits(tokens=8, checkpointing=True)
    stats = [engine.step(batch(*ROWS)) for engine in (whole, parts, recomputed)]
    assert stats[0].micro_batches == 1 and stats[1].micro_batches > 2
    for engine, stat in ((parts, stats[1]), (recomputed, stats[2])):
        assert stat.loss == pytest.approx(stats[0].loss, abs=1e-5)
        assert stat.grad_norm == pytest.approx(stats[0].grad_norm, rel=1e-5)
        torch.testing.assert_close(adapter_of(engine).values, adapter_of(whole).values, atol=1e-5, rtol=0)


def test_micro_batches_keep_groups_and_sort_by_length() -> None:
    # Computed tokens: group of prompt 5 is 1 + 1 + 1, of prompt 7 is 1 + 8, of prompt 9 is 1 + 3 + 3 + 3.
    rows = [([5], [1, 2]), ([7], [1] * 9), ([9], [1] * 4), ([5], [3, 4]), ([9], [2] * 4), ([9], [3] * 4)]
    assert micro_batches(rows, 13) == [[0, 3, 2, 4, 5], [1]]
    assert micro_batches(rows, 10) == [[0, 3], [2, 4, 5], [1]]
    assert micro_batches(rows, 7) == [[0, 3], [2, 4], [5], [1]]  # a group that must be split, a row too long
    assert sorted(index for piece in micro_batches(rows, 1) for index in piece) == list(range(6))


def test_clip_stops_what_moved_too_far(tiny: Path) -> None:
    engine = open_engine(tiny)
    logp = engine.logprobs([TokenSequence(prompt_T=PROMPT, completion_T=GOOD)])[0]
    near, far = [value - 0.1 for value in logp], [value - 1.0 for value in logp]
    stats = engine.step(batch(row(PROMPT, GOOD, 1.0, far), clip=(0.2, 0.28)))
    assert stats.loss == pytest.approx(-3 * 1.28, abs=1e-4) and stats.grad_norm == 0.0
    fresh = open_engine(tiny)
    stats = fresh.step(batch(row(PROMPT, GOOD, 1.0, near), row(OTHER, GOOD, -1.0), clip=(0.2, 0.28)))
    other = likelihood(open_engine(tiny), (OTHER, GOOD))[0]
    assert stats.loss == pytest.approx(-3 * math.exp(0.1) + other, abs=1e-3) and stats.grad_norm > 0


def test_rows_of_another_sampler(tiny: Path) -> None:
    """Where the sampler found a token e^0.1 too unlikely, it counts e^0.1 as much; at most twice."""
    engine = open_engine(tiny)
    logp = engine.logprobs([TokenSequence(prompt_T=PROMPT, completion_T=GOOD)])[0]
    sampler = [logp[0] - 0.1, logp[1] + 0.2, logp[2] - 3.0]
    sampled = msgspec.structs.replace(row(PROMPT, GOOD, 1.0), sampler_logprobs_T=sampler)
    capped = msgspec.structs.replace(batch(sampled, row(OTHER, GOOD, -1.0)), sampler_cap=2.0)
    stats = engine.step(capped)
    factors = [math.exp(0.1), math.exp(-0.2), 2.0]
    same = Row(prompt_T=PROMPT, completion_T=GOOD, weights_T=factors)
    fresh = open_engine(tiny)
    expected = fresh.step(batch(same, row(OTHER, GOOD, -1.0)))
    assert stats.loss == pytest.approx(expected.loss, abs=1e-4)
    assert stats.grad_norm == pytest.approx(expected.grad_norm, rel=1e-4)
    assert stats.mismatch == pytest.approx(3.3 / 3, abs=1e-5) and stats.capped == pytest.approx(1 / 3)
    assert expected.mismatch is None and expected.capped is None
    engine._base.learner.limits = BatchLimits(tokens=1)  # one row after another
    again = engine.step(msgspec.structs.replace(capped, rows_S=[sampled, *capped.rows_S]))
    assert again.micro_batches > 1 and again.mismatch is not None and 0 < again.capped < 1  # type: ignore[operator]


def test_gradient_is_clipped_to_norm_one(tiny: Path) -> None:
    small, large = open_engine(tiny), open_engine(tiny)
    norms = [engine.step(batch(row(PROMPT, GOOD, w))).grad_norm for engine, w in ((small, 50), (large, 5000))]
    assert norms[0] > 1 and norms[1] == pytest.approx(100 * norms[0], rel=1e-3)
    torch.testing.assert_close(adapter_of(small).moments_1, adapter_of(large).moments_1, atol=1e-6, rtol=1e-3)
    assert adapter_of(small).moments_1.norm().item() == pytest.approx(0.1, rel=1e-4)  # (1 - 0.9) * 1


def test_update_is_torch_s_adamw() -> None:
    adapter = Adapter([Projection(("layer",), 4, (3,))], 2, 0, torch.device("cpu"))
    parameter = torch.nn.Parameter(adapter.values.clone())
    optimiser = torch.optim.AdamW([parameter], lr=1.0, betas=(0.9, 0.95), weight_decay=0.0)
    generator = torch.Generator().manual_seed(3)
    for rate in (0.1, 0.02, 0.5):
        gradient = torch.randn(adapter.values.shape, generator=generator)
        optimiser.param_groups[0]["lr"] = rate
        parameter.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_([parameter], 1.0)
        optimiser.step()
        adapter.gradients.copy_(gradient)
        adapter.update(rate, float(gradient.norm()))
        torch.testing.assert_close(adapter.values, parameter.data, atol=1e-6, rtol=1e-5)


def test_learning_rate_must_be_a_number(tiny: Path) -> None:
    with pytest.raises(EngineError, match="learning rate"):
        open_engine(tiny).step(batch(*ROWS, rate=math.inf))


def test_memory_pressure_steps_down_and_says_so(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, calm = open_engine(tiny), open_engine(tiny)
    engine._base.learner.limits = BatchLimits(tokens=600)
    states, seen = engine._base.network.states, []

    def short_of_memory(adapter: Adapter, sequences: object, checkpointing: bool, upper: bool) -> object:
        seen.append((engine._base.learner.limits.tokens, checkpointing))
        if len(seen) in (2, 3, 4):  # in the middle of a step: what was gathered until then must not count twice
            raise torch.OutOfMemoryError("CUDA out of memory")
        return states(adapter, sequences, checkpointing)  # type: ignore[arg-type]

    monkeypatch.setattr(engine._base.network, "states", short_of_memory)
    monkeypatch.setattr(learner, "micro_batches", lambda rows, tokens, shared: [[0, 1], [2, 3]])
    stats = engine.step(batch(*ROWS))
    assert seen == [(600, False), (600, False), (300, False), (150, False), (150, True), (150, True)]
    assert engine.notes == [
        "Memory ran short: it now learns from 300 tokens at a time.",
        "Memory ran short: it now learns from 150 tokens at a time.",
        "Memory ran short: it now computes layers twice instead of keeping them.",
    ]
    assert stats.grad_norm == pytest.approx(calm.step(batch(*ROWS)).grad_norm, rel=1e-5)


def test_no_memory_at_all(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_at_all(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes")

    engine = open_engine(tiny)
    before = adapter_of(engine).values.clone()
    monkeypatch.setattr(engine._base.network, "states", none_at_all)
    with pytest.raises(EngineError, match="doesn't fit into the memory"):
        engine.step(batch(*ROWS))
    with pytest.raises(EngineError, match="doesn't fit into the memory"):
        likelihood(engine, (PROMPT, GOOD))
    assert torch.equal(adapter_of(engine).values, before)


def test_limits_follow_the_free_memory(tiny: Path) -> None:
    network = open_engine(tiny)._base.network
    assert measured_limits(network, 2**34) == BatchLimits(2048)
    tight = measured_limits(network, 2 * 500 * network.token_bytes(checkpointing=False))
    assert tight.checkpointing and 500 < tight.tokens < 2048
    assert measured_limits(network, 1).tokens == 1


def test_a_large_model_on_a_processor_takes_small_pieces(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than half of what its weights take, where memory would allow more; a GPU takes what is free."""
    network = open_engine(tiny)._base.network
    monkeypatch.setattr(network, "weight_bytes", 2**31)
    monkeypatch.setattr(network, "token_bytes", lambda checkpointing: 2**20)
    assert measured_limits(network, 2**40) == BatchLimits(1024)
    monkeypatch.setattr(network, "weight_bytes", 2**10)
    assert measured_limits(network, 2**40) == BatchLimits(512)
    monkeypatch.setattr(network, "device", torch.device("cuda"))
    assert measured_limits(network, 2**40) == BatchLimits(32768)


def test_reward_rises(tiny: Path) -> None:
    """Fifteen real steps: answers that begin with one particular word are rewarded, and soon most do."""
    engine = open_engine(tiny)
    prompts = [[{"role": "user", "content": f"w{i} w{i + 1}"}] for i in range(8)]
    wanted, rates = 9, []
    for number in range(15):
        groups = engine.sample(prompts, 16, 6, seed=number)
        rewards = [[float(c.tokens_T[0] == wanted) for c in group] for group in groups]
        rates.append(sum(map(sum, rewards)) / 128)
        rows = [
            row(engine.prompt_tokens(prompt), c.tokens_T, (reward - sum(rs) / 16) / 128)
            for prompt, group, rs in zip(prompts, groups, rewards, strict=True)
            for c, reward in zip(group, rs, strict=True)
        ]
        engine.step(batch(*rows, rate=0.02))
    assert sum(rates[:2]) / 2 < 0.3
    assert sum(rates[-2:]) / 2 > 0.8
