"""Sampling: reproducible, from the exact distribution, with the learner's own log-probabilities."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engines.contract import Batch, EngineError, Row
from engines.torch_lora import open_engine, sampler
from engines.torch_lora.sampler import Request, draw
from tests.engines.lessons import PROMPTS
from tests.engines.small_models import MakeModel

END = 1


@pytest.mark.parametrize("family", ["qwen2", "mistral"])
def test_plain_is_the_model_before_training(family: str, make_model: MakeModel) -> None:
    """Of our decoder and of transformers: the adapter is left away, and is there again afterwards."""
    engine = open_engine(make_model(family))
    untrained = engine.sample(PROMPTS, 4, 16, seed=3)
    row = Row(prompt_T=[5, 3], completion_T=[6, 7, END], weights_T=[1.0] * 3)
    engine.step(Batch(rows_S=[row], learning_rate=0.1))
    trained = engine.sample(PROMPTS, 4, 16, seed=3)
    assert engine.sample(PROMPTS, 4, 16, seed=3, plain=True) == untrained
    assert engine.sample(PROMPTS, 4, 16, seed=3) == trained != untrained


def test_rows_that_leave_the_batch_change_nothing(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(tiny)
    monkeypatch.setattr(sampler, "COMPACT_BELOW", 0.99)
    eager = engine.sample(PROMPTS, 16, 32, seed=5)
    monkeypatch.setattr(sampler, "COMPACT_BELOW", 0.0)
    never = engine.sample(PROMPTS, 16, 32, seed=5)
    assert [[c.tokens_T for c in g] for g in eager] == [[c.tokens_T for c in g] for g in never]


def test_passes_by_memory_change_nothing(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tokens whether all questions fit into one pass, or memory runs out until one is left."""
    engine = open_engine(tiny)
    whole = engine.sample(PROMPTS, 4, 8, seed=5)
    original, sizes = sampler._run, []

    def short_of_memory(prompts_NP: list[list[list[int]]], *rest: object) -> object:
        sizes.append(len(prompts_NP[0]))
        if len(prompts_NP[0]) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(prompts_NP, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(sampler, "_run", short_of_memory)
    parts = engine.sample(PROMPTS, 4, 8, seed=5)
    assert sizes == [4, 2, 1, 1, 1, 1]
    assert [[c.tokens_T for c in g] for g in parts] == [[c.tokens_T for c in g] for g in whole]
    assert engine.notes == ["Memory ran short: 1 questions are now answered at a time."]


def test_no_memory_for_one_question(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_at_all(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes")

    engine = open_engine(tiny)
    monkeypatch.setattr(sampler, "_run", none_at_all)
    with pytest.raises(EngineError, match="don't fit into the free memory"):
        engine.sample(PROMPTS, 4, 8, seed=5)


def test_draw_at_the_edges() -> None:
    logits = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.0]]).log().repeat(6, 1)
    token, logp = draw(logits, torch.tensor([0.0, 0.099, 0.101, 0.599, 0.601, 1 - 2**-24]))
    assert token.tolist() == [0, 0, 1, 2, 3, 3]  # never the impossible last one
    torch.testing.assert_close(logp.exp(), torch.tensor([0.1, 0.1, 0.2, 0.3, 0.4, 0.4]))
    token, logp = draw(torch.tensor([[0.0, 1.0]]).log(), torch.tensor([0.0]))
    assert token.tolist() == [1] and logp.item() == 0.0  # nor an impossible first


def test_numbers_that_are_not_finite(make_model: MakeModel, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = make_model("qwen2")
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    weights["model.norm.weight"][0] = torch.nan
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(EngineError, match="t finite"):
        open_engine(tmp_path).sample(PROMPTS, 2, 4, seed=0)


def test_too_long_for_the_model(tiny: Path) -> None:
    with pytest.raises(EngineError, match="more exceed the 256 tokens"):
        open_engine(tiny).sample(PROMPTS, 2, 250, seed=0)


def test_nothing_to_sample(tiny: Path) -> None:
    engine = open_engine(tiny)
    assert engine.sample([], 4, 8, seed=0) == []
    with pytest.raises(EngineError, match="at least 1"):
        engine.sample(PROMPTS, 4, 0, seed=0)


def test_a_node_without_prompts() -> None:
    class Never:
        def __call__(self) -> None:
            raise AssertionError

    found, _ = sampler.sample(Request([[], []], 2, 4, [1, 2], [END]), Never(), torch.device("cpu"), 1)  # type: ignore[arg-type]
    assert found == [[], []]
