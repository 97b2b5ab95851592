"""Our decoder against transformers' own, in fp32: learning and sampling, mixed lengths, shared prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engines.batches import packed_tokens
from engines.contract import Batch, Row, TokenSequence
from engines.torch_lora.engine import Base
from engines.torch_lora.network import decoder
from engines.torch_lora.network.adapter import Adapter
from engines.torch_lora.network.layout import pack
from engines.torch_lora.network.native import NativeNetwork
from tests.engines.small_models import MakeModel, reference

LLAMA_3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("qwen2", {}),
    "qwen2 untied, high theta": (
        "qwen2",
        {"tie_word_embeddings": False, "rope_parameters": {"rope_theta": 1e6}},
    ),
    "qwen3": ("qwen3", {}),
    "qwen3, as many keys as queries": ("qwen3", {"num_key_value_heads": 4}),
    "llama": ("llama", {}),
    "llama 3 scaling, biases": (
        "llama",
        {"rope_parameters": LLAMA_3, "attention_bias": True, "mlp_bias": True},
    ),
    "llama linear scaling": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}},
    ),
}
# The same prompt twice, one alone, prompts longer and shorter than completions, a completion of one token.
SEQUENCES = [
    ([3, 4, 5], [6, 7, 8, 1]),
    ([3, 4, 5], [9]),
    ([5] * 40, [6, 7]),
    ([3, 4, 5], [8, 9, 10, 11, 12, 13]),
    ([2], [20, 21]),
]


@pytest.fixture(params=FAMILIES, ids=lambda name: name.replace(" ", "-"))
def folder(request: pytest.FixtureRequest, make_model: MakeModel) -> Path:
    family, changes = FAMILIES[request.param]
    return make_model(family, **changes)


def disturbed(base: Base, seed: int = 1) -> Adapter:
    """An adapter that changes the model, as one that has learned."""
    adapter = base.new_adapter(seed)
    with torch.no_grad():
        adapter.values.add_(
            torch.randn(adapter.values.shape, generator=torch.Generator().manual_seed(seed)), alpha=0.1
        )
    adapter.version += 1
    return adapter


def logits_of(model: Any, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        out: torch.Tensor = model(torch.tensor([tokens])).logits[0]
    return out


def test_learner_logits(folder: Path) -> None:
    base, model = Base(folder), reference(folder)
    assert isinstance(base.network, NativeNetwork)
    states = base.network.states(base.new_adapter(0), SEQUENCES, checkpointing=False)
    assert states.head_Vd is not None
    expected = torch.cat([logits_of(model, p + c)[len(p) - 1 : -1] for p, c in SEQUENCES])
    torch.testing.assert_close(states.hidden_Cd @ states.head_Vd.t(), expected, atol=1e-4, rtol=0)


def test_sampler_logits_with_mixed_prompts(folder: Path) -> None:
    base, model = Base(folder), reference(folder)
    prompts = [prompt for prompt, _ in SEQUENCES]
    rows = [list(prompt) for prompt in prompts for _ in range(2)]
    rollout = base.network.rollout([base.new_adapter(0)])

    logits = rollout.prefill([prompts], 2, 8)
    for step in range(6):
        expected = torch.stack([logits_of(model, row)[-1] for row in rows])
        torch.testing.assert_close(logits[0], expected, atol=1e-4, rtol=0)
        if step == 2:  # rows leave, the others go on in another order
            kept = torch.tensor([[7, 0, 4]])
            rollout.keep(kept)
            rows = [rows[index] for index in kept[0].tolist()]
        tokens = torch.tensor([[(5 * step + row) % 28 for row in range(len(rows))]])
        rows = [[*row, token] for row, token in zip(rows, tokens[0].tolist(), strict=True)]
        logits = rollout.advance(tokens)


def test_company_does_not_matter(tiny: Path) -> None:
    """A prompt alone and among longer ones gives the same logits: padding leaks nowhere."""
    base = Base(tiny)
    adapter = disturbed(base)

    def walk(prompts: list[list[int]]) -> list[torch.Tensor]:
        rollout = base.network.rollout([adapter])
        found = [rollout.prefill([prompts], 1, 4)[0, 0]]
        found += [rollout.advance(torch.full((1, len(prompts)), token))[0, 0] for token in (4, 5, 6)]
        return found

    alone, together = walk([[7, 8]]), walk([[7, 8], [9] * 30, [3]])
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)

    first = base.network.states(adapter, SEQUENCES[:1], checkpointing=False).hidden_Cd
    among = base.network.states(adapter, SEQUENCES, checkpointing=False).hidden_Cd[:4]
    torch.testing.assert_close(first, among, atol=1e-5, rtol=0)


def test_teaching_the_upper_half_reads_known_rows_from_the_middle_and_leaves_the_lower_half(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, read = Base(folder), list[int]()
    lower = decoder.lower_states
    monkeypatch.setattr(decoder, "lower_states", lambda *all: read.append(1) or lower(*all))  # type: ignore[func-returns-value]
    adapter, whole = base.new_adapter(1), base.new_adapter(1)
    lesson = [Row(prompt_T=p, completion_T=c, weights_T=[1.0] * len(c)) for p, c in SEQUENCES]
    asked = [TokenSequence(prompt_T=p, completion_T=c) for p, c in SEQUENCES]
    for rows in (lesson, lesson[1:], lesson[::-1]):
        base.learner.step(adapter, Batch(rows_S=rows, learning_rate=0.01, upper=True))
    assert len(read) == 1, "known rows are read from the middle, in any company"
    known = base.learner.logprobs(adapter, asked)
    for rows in (lesson, lesson):
        base.learner.step(whole, Batch(rows_S=rows, learning_rate=0.01))
    for one, other in zip(known, base.learner.logprobs(adapter, asked), strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    lowest = adapter.pairs[: len(adapter.pairs) // 2]
    assert not any(pair.b.any() for pair in lowest) and adapter.pairs[-1].b.any() and whole.pairs[0].b.any()
    base.learner.step(whole, Batch(rows_S=lesson, learning_rate=0.01, upper=True))
    assert len(read) == 1, "an adapter that changes the lower half is taught as a whole"


def test_the_adapter_is_peft_s(folder: Path, tmp_path: Path) -> None:
    """Merged for sampling, beside the weights for learning, and as peft applies the saved file: all the
    same."""
    from peft import PeftModel

    base = Base(folder)
    adapter = disturbed(base)
    base.save(adapter, tmp_path)
    model = PeftModel.from_pretrained(reference(folder), tmp_path)
    expected = [logits_of(model, p + c)[len(p) - 1 : -1] for p, c in SEQUENCES]
    plain = [logits_of(reference(folder), p + c)[len(p) - 1 : -1] for p, c in SEQUENCES]
    assert (torch.cat(expected) - torch.cat(plain)).abs().max() > 0.1  # the adapter does something

    states = base.network.states(adapter, SEQUENCES, checkpointing=False)
    assert states.head_Vd is not None
    torch.testing.assert_close(states.hidden_Cd @ states.head_Vd.t(), torch.cat(expected), atol=2e-4, rtol=0)
    merged = base.network.rollout([adapter]).prefill([[p for p, _ in SEQUENCES]], 1, 1)
    torch.testing.assert_close(merged[0], torch.stack([rows[0] for rows in expected]), atol=2e-4, rtol=0)


def test_gradients_are_peft_s(folder: Path, tmp_path: Path) -> None:
    from peft import PeftModel

    base = Base(folder)
    adapter = disturbed(base)
    base.save(adapter, tmp_path)
    model = PeftModel.from_pretrained(reference(folder), tmp_path, is_trainable=True)
    for prompt, completion in SEQUENCES:
        logits = model(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        logits.log_softmax(-1).gather(1, torch.tensor(completion)[:, None]).sum().backward()
    expected = {name.replace(".default", ""): p.grad for name, p in model.named_parameters() if p.requires_grad}

    states = base.network.states(adapter, SEQUENCES, checkpointing=False)
    assert states.head_Vd is not None
    logits = states.hidden_Cd @ states.head_Vd.t()
    targets = torch.tensor([token for _, completion in SEQUENCES for token in completion])
    logits.log_softmax(-1).gather(1, targets[:, None]).sum().backward()
    found = dict(adapter.named(adapter.gradients))
    assert set(found) == set(expected)
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-4, rtol=1e-3, msg=name)


def test_recomputing_layers_changes_nothing(tiny: Path) -> None:
    base = Base(tiny)
    gradients = []
    for checkpointing in (False, True):
        adapter = disturbed(base)
        base.network.states(adapter, SEQUENCES, checkpointing).hidden_Cd.square().sum().backward()
        gradients.append(adapter.gradients)
    assert torch.equal(*gradients)


def test_a_shared_prompt_is_computed_once() -> None:
    # 3 + 40 + 1 prompt tokens, and all completion tokens but each last: 3 + 0 + 1 + 5 + 1
    assert packed_tokens(SEQUENCES) == 54
    layout = pack(SEQUENCES, torch.device("cpu"))
    assert layout.tokens_M.shape == (54,)


def test_a_shared_beginning_is_computed_once_and_changes_nothing(tiny: Path) -> None:
    alike = [
        ([3, 4, 5, 6], [7, 8, 1]),
        ([3, 4, 5, 9, 2], [6]),
        ([3, 4], [20, 21]),
        ([3, 4, 5, 9, 7], [8, 9]),
        ([2], [5, 6]),
    ]
    layout = pack(alike, torch.device("cpu"), 2)
    assert layout.tokens_M.tolist() == [3, 4, 5, 6, 9, 2, 3, 4, 7, 2, 7, 8, 20, 8, 5]
    base = Base(tiny)
    network, found = base.network, []
    assert isinstance(network, NativeNetwork)
    for least in (None, 2):
        network._least_shared = least
        adapter = disturbed(base)
        hidden = network.states(adapter, alike, False).hidden_Cd
        hidden.square().sum().backward()
        found.append((hidden.detach(), adapter.gradients.clone()))
    for apart, together in zip(*found, strict=True):
        torch.testing.assert_close(apart, together, rtol=1e-4, atol=1e-5)


def test_an_adapter_is_merged_anew_only_after_a_change(tiny: Path) -> None:
    base = Base(tiny)
    assert isinstance(base.network, NativeNetwork)
    adapter = base.new_adapter(0)

    def first() -> torch.Tensor:
        return base.network.rollout([adapter]).prefill([[[5, 6]]], 1, 1)

    before = first()
    assert torch.equal(first(), before)
    with torch.no_grad():
        adapter.values.add_(0.05)
    adapter.version += 1
    assert not torch.allclose(first(), before)
    other = base.new_adapter(0)
    torch.testing.assert_close(base.network.rollout([other]).prefill([[[5, 6]]], 1, 1), before)
