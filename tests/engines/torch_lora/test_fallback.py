"""Architectures our decoder does not know run on transformers, under the same contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engines.batches import BatchLimits
from engines.contract import Batch, EngineError, Row, TokenSequence
from engines.torch_lora import open_engine
from engines.torch_lora.network.fallback import TransformersNetwork
from engines.torch_lora.network.native import NativeNetwork
from tests.engines.small_models import MakeModel, reference

YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64}
PROMPTS = [[{"role": "user", "content": text}] for text in ("w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10")]


@pytest.fixture(params=["gpt_neox", "mistral", "qwen2 with yarn"])
def folder(request: pytest.FixtureRequest, make_model: MakeModel) -> Path:
    if request.param == "qwen2 with yarn":
        return make_model("qwen2", rope_parameters=YARN)
    return make_model(request.param)


OTHERS = (
    *(
        "gemma2",
        "gemma3n_text",
        "qwen3_5_text",
        "qwen3_next",
        "lfm2",
        "granitemoehybrid",
        "falcon_h1",
        "mamba2",
    ),
)
"""A soft cap, deviations of what may be padding, a scale behind the head, gated deltas, convolutions, state
spaces, fused experts."""


@pytest.mark.parametrize("family", OTHERS)
def test_other_architectures(family: str, make_model: MakeModel, tmp_path: Path) -> None:
    hold(make_model(family), tmp_path, 1e-3)  # a state is carried on in another order than all at once


def test_an_architecture_whose_memory_is_not_known_says_so(make_model: MakeModel) -> None:
    with pytest.raises(EngineError, match="its architecture, 'rwkv', keeps"):
        open_engine(make_model("rwkv"))


def test_the_head_sees_completions_alone_and_a_prompt_is_read_once(make_model: MakeModel) -> None:
    """With the logits of every prompt position Gemma took 11 GB of a budget of 6."""
    engine = open_engine(make_model("mistral"))
    network, seen = engine._base.network, {"head": 0, "embedding": 0}
    assert isinstance(network, TransformersNetwork) and network._head is not None
    model = network._model.get_base_model()

    def count(name: str, dimensions: int) -> Callable[..., None]:
        def hook(_: object, __: object, out: torch.Tensor) -> None:
            seen[name] += out.shape[:dimensions].numel()

        return hook

    model.get_output_embeddings().register_forward_hook(count("head", 2))
    model.get_input_embeddings().register_forward_hook(count("embedding", 2))
    group = [TokenSequence(prompt_T=[5, 6, 7, 8, 9, 3], completion_T=[10, 11, 12, 1]) for _ in range(8)]
    engine.logprobs(group)
    assert seen == {"head": 2, "embedding": 6 + 8 * 3}  # one position a pass goes through, for the form's sake
    rows = [Row(prompt_T=one.prompt_T, completion_T=one.completion_T, weights_T=[1.0] * 4) for one in group]
    engine.step(Batch(rows_S=rows, learning_rate=0.01))
    assert seen == {"head": 4, "embedding": 2 * (6 + 8 * 3)}
    seen.update(head=0, embedding=0)
    engine.sample(PROMPTS, 4, 2, seed=1)
    assert seen["head"] == 2 and seen["embedding"] <= 3 * 7 + 12


def test_the_contract_holds(folder: Path, tmp_path: Path) -> None:
    hold(folder, tmp_path, 1e-4)


def hold(folder: Path, tmp_path: Path, apart: float) -> None:
    """`apart` is how far log-probabilities may differ, in nats."""
    engine = open_engine(folder)
    assert isinstance(engine._base.network, TransformersNetwork)
    groups = engine.sample(PROMPTS, 6, 16, seed=1)
    assert groups == engine.sample(PROMPTS, 6, 16, seed=1)
    sequences = [
        TokenSequence(prompt_T=engine.prompt_tokens(prompt), completion_T=c.tokens_T)
        for prompt, group in zip(PROMPTS, groups, strict=True)
        for c in group
    ]

    def check() -> None:
        """Sampler, learner and transformers itself agree on every token."""
        sampled = [c.logprobs_T for group in engine.sample(PROMPTS, 6, 16, seed=1) for c in group]
        completions = [c.tokens_T for group in engine.sample(PROMPTS, 6, 16, seed=1) for c in group]
        learned = engine.logprobs(
            [
                TokenSequence(prompt_T=s.prompt_T, completion_T=tokens)
                for s, tokens in zip(sequences, completions, strict=True)
            ]
        )
        for one, other in zip(sampled, learned, strict=True):
            assert one == pytest.approx(other, abs=apart)

    check()
    with torch.no_grad():
        tokens = sequences[-1].prompt_T + sequences[-1].completion_T
        logp = reference(folder)(torch.tensor([tokens])).logits[0].log_softmax(-1)
    start = len(sequences[-1].prompt_T) - 1
    expected = [float(logp[start + i, t]) for i, t in enumerate(sequences[-1].completion_T)]
    assert engine.logprobs(sequences)[-1] == pytest.approx(expected, abs=apart)

    rows = [
        Row(prompt_T=s.prompt_T, completion_T=s.completion_T, weights_T=[0.1 * (-1) ** i] * len(s.completion_T))
        for i, s in enumerate(sequences)
    ]
    before = engine.logprobs(sequences)
    engine.step(Batch(rows_S=rows, learning_rate=0.01))
    after = engine.logprobs(sequences)
    gain = [(sum(b) - sum(a)) * (-1) ** i for i, (a, b) in enumerate(zip(before, after, strict=True))]
    assert sum(gain) > 0
    check()

    engine.save(tmp_path)
    other = open_engine(folder, seed=9)
    other.load(tmp_path)
    assert other.logprobs(sequences) == after

    from peft import PeftModel

    model = PeftModel.from_pretrained(reference(folder), tmp_path)
    with torch.no_grad():
        logp = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
    expected = [float(logp[start + i, t]) for i, t in enumerate(sequences[-1].completion_T)]
    assert after[-1] == pytest.approx(expected, abs=apart)


def test_micro_batches_and_recomputing_change_nothing(folder: Path) -> None:
    rows = [
        Row(prompt_T=[5, 6, 3], completion_T=[10, 11, 1], weights_T=[1.0] * 3),
        Row(prompt_T=[8, 3], completion_T=[12, 13, 14, 15], weights_T=[-0.5] * 4),
    ]
    engines = [open_engine(folder) for _ in range(3)]
    engines[1]._base.learner.limits = BatchLimits(tokens=4)
    engines[2]._base.learner.limits = BatchLimits(tokens=4, checkpointing=True)
    stats = [engine.step(Batch(rows_S=rows, learning_rate=0.01)) for engine in engines]
    assert [stat.micro_batches for stat in stats] == [1, 2, 2]
    for engine, stat in zip(engines[1:], stats[1:], strict=True):
        assert stat.grad_norm == pytest.approx(stats[0].grad_norm, rel=1e-4)
        torch.testing.assert_close(engine._adapter.values, engines[0]._adapter.values, atol=1e-5, rtol=0)


def test_both_ways_agree(tiny: Path) -> None:
    """The same Qwen2 through our decoder and through transformers: loss, gradient and log-probabilities."""
    from engines.torch_lora.network.adapter import Adapter

    native = open_engine(tiny)
    assert isinstance(native._base.network, NativeNetwork)
    foreign = open_engine(tiny)
    network = TransformersNetwork(foreign._base.folder, torch.device("cpu"), torch.float32, 16)
    foreign._base.learner.network = network
    foreign._adapter = Adapter(network.projections, 16, 0, torch.device("cpu"))
    named = dict(native._adapter.named(native._adapter.values))
    with torch.no_grad():
        for name, view in foreign._adapter.named(foreign._adapter.values):
            view.copy_(named[name])
    sequence = TokenSequence(prompt_T=[5, 6, 3], completion_T=[10, 11, 12, 1])
    batch = Batch(
        rows_S=[
            Row(prompt_T=sequence.prompt_T, completion_T=sequence.completion_T, weights_T=[1.0, 0.5, -0.2, 1.0])
        ],
        learning_rate=0.01,
    )
    for _ in range(3):
        one, other = native.step(batch), foreign.step(batch)
        assert one.loss == pytest.approx(other.loss, abs=1e-4)
        assert one.grad_norm == pytest.approx(other.grad_norm, rel=1e-3)
    assert native.logprobs([sequence])[0] == pytest.approx(foreign.logprobs([sequence])[0], abs=1e-3)


def test_an_unknown_architecture(tiny: Path, tmp_path: Path) -> None:
    for file in tiny.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"qwen2"', '"perpetuum_mobile"'))
    with pytest.raises(EngineError, match="'perpetuum_mobile' is unknown"):
        open_engine(tmp_path)
