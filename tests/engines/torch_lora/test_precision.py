"""bf16 weights under fp32 adapters, on whatever device is here. CUDA's part skips without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engines.contract import Batch, Row, TokenSequence
from engines.torch_lora import TorchEngine, open_engine, open_swarm
from engines.torch_lora.network import device
from engines.torch_lora.network.native import NativeNetwork
from tests.engines.small_models import MakeModel

PROMPTS = [[{"role": "user", "content": text}] for text in ("w1 w2 w3", "w4", "w5 w6 w7 w8 w9")]


@pytest.fixture
def bf16(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A processor for which bf16 is the faster format."""
    monkeypatch.setattr(device, "LARGE_PARAMETERS", 0)
    monkeypatch.setattr(device, "bf16_is_faster", lambda threads: True)
    yield


def sequences(engine: TorchEngine, seed: int) -> tuple[list[TokenSequence], list[list[float]]]:
    groups = engine.sample(PROMPTS, 8, 16, seed)
    found = [
        (TokenSequence(prompt_T=engine.prompt_tokens(prompt), completion_T=c.tokens_T), c.logprobs_T)
        for prompt, group in zip(PROMPTS, groups, strict=True)
        for c in group
    ]
    return [sequence for sequence, _ in found], [logps for _, logps in found]


def praise(tokens: list[TokenSequence]) -> Batch:
    rows = [
        Row(prompt_T=s.prompt_T, completion_T=s.completion_T, weights_T=[0.1] * len(s.completion_T))
        for s in tokens
    ]
    return Batch(rows_S=rows, learning_rate=0.01)


def close(one: list[list[float]], other: list[list[float]], most: float) -> bool:
    flat = [abs(a - b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True)]
    return sum(flat) / len(flat) < most


@pytest.mark.usefixtures("bf16")
@pytest.mark.parametrize("family", ["qwen2", "qwen3", "gpt_neox"])
def test_bf16_on_the_processor(family: str, make_model: MakeModel, tmp_path: Path) -> None:
    folder = make_model(family)
    engine = open_engine(folder, device="cpu")
    assert engine.info.dtype == "bfloat16"
    assert engine._adapter.values.dtype == torch.float32
    tokens, sampled = sequences(engine, 1)
    before = engine.logprobs(tokens)
    assert close(sampled, before, 0.03)
    rows = [
        Row(prompt_T=s.prompt_T, completion_T=s.completion_T, weights_T=[0.1 * (-1) ** i] * len(s.completion_T))
        for i, s in enumerate(tokens)
    ]
    stats = engine.step(Batch(rows_S=rows, learning_rate=0.01))
    after = engine.logprobs(tokens)
    assert sum((sum(b) - sum(a)) * (-1) ** i for i, (a, b) in enumerate(zip(before, after, strict=True))) > 0
    engine.save(tmp_path)
    other = open_engine(folder, device="cpu", seed=2)
    other.load(tmp_path)
    assert other.logprobs(tokens) == after
    assert stats.grad_norm > 0


@pytest.mark.usefixtures("bf16")
def test_bf16_is_near_fp32(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = open_engine(tiny, device="cpu")
    monkeypatch.undo()
    full = open_engine(tiny, device="cpu")
    assert (half.info.dtype, full.info.dtype) == ("bfloat16", "float32")
    tokens, _ = sequences(full, 1)
    assert close(half.logprobs(tokens), full.logprobs(tokens), 0.03)
    batch = praise(tokens)
    assert half.step(batch).grad_norm == pytest.approx(full.step(batch).grad_norm, rel=0.05)


def test_the_micro_benchmark_answers() -> None:
    assert device.bf16_is_faster(1) in (True, False)
    assert device.bf16_is_faster.cache_info().currsize >= 1


cuda = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device, or it is hidden (CUDA_VISIBLE_DEVICES)"
)


@cuda
@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama", "gpt_neox"])
def test_cuda_engine(family: str, make_model: MakeModel, tmp_path: Path) -> None:
    """bf16 on the device against fp32 on the processor: near log-probabilities, the same direction of a
    step."""
    folder = make_model(family)
    engine, processor = open_engine(folder, device="cuda"), open_engine(folder, device="cpu")
    assert engine.info.dtype == "bfloat16" and engine._adapter.values.is_cuda
    tokens, sampled = sequences(engine, 1)
    assert sequences(engine, 1)[0] == tokens
    assert close(sampled, engine.logprobs(tokens), 0.03)
    assert close(engine.logprobs(tokens), processor.logprobs(tokens), 0.03)
    batch = praise(tokens)
    assert engine.step(batch).grad_norm == pytest.approx(processor.step(batch).grad_norm, rel=0.05)
    engine.save(tmp_path)
    processor.load(tmp_path)
    assert close(engine.logprobs(tokens), processor.logprobs(tokens), 0.05)


@cuda
def test_cuda_in_fp32_is_exact(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: False)
    engine, processor = open_engine(tiny, device="cuda"), open_engine(tiny, device="cpu")
    tokens, sampled = sequences(engine, 1)
    for one, other in zip(sampled, processor.logprobs(tokens), strict=True):
        assert one == pytest.approx(other, abs=1e-3)
    assert torch.equal(engine._adapter.values.cpu(), processor._adapter.values)


@cuda
def test_cuda_swarm_samples_together(tiny: Path) -> None:
    swarm = open_swarm(tiny, [1, 2, 3], device="cuda")
    assert isinstance(swarm._base.network, NativeNetwork)
    groups = swarm.sample([PROMPTS, PROMPTS[:1], []], 4, 12, [5, 6, 7])
    assert [len(node) for node in groups] == [3, 1, 0]
    assert groups == swarm.sample([PROMPTS, PROMPTS[:1], []], 4, 12, [5, 6, 7])
