"""The MLX engine on this computer's processor: the same code that runs on Apple's GPU."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engines import mlx_lora
from engines.contract import EngineError, TokenSequence
from tests.engines.lessons import GOOD, LONG, PROMPT, PROMPTS, ROWS, batch, likelihood, move, row, worst
from tests.engines.small_models import MakeModel, reference

if reason := mlx_lora.why_unavailable():
    pytest.skip(reason, allow_module_level=True)

import mlx.core as mx

from engines.batches import BatchLimits
from engines.mlx_lora import learner, network, open_engine, sampler
from engines.mlx_lora.engine import MlxEngine
from engines.mlx_lora.learner import measured_limits, pack


def state(engine: MlxEngine) -> tuple[list[Any], int]:
    adapter = engine._adapter
    return [array.tolist() for array in (adapter.values, *adapter.moments)], adapter.steps


def test_sampling_without_a_merged_copy(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tokens from LoRA beside the weights, where memory has no room for a copy."""
    merged, beside = open_engine(tiny), open_engine(tiny)
    lesson = merged.sample(PROMPTS, 4, 8, seed=1)
    for engine in (merged, beside):
        move(engine, lesson)
    monkeypatch.setattr(network.Network, "merge_bytes", 2**60)
    beside_groups = beside.sample(PROMPTS, 4, 16, seed=3)
    assert beside.notes == ["Memory is short: answers are sampled without a merged copy, more slowly."]
    monkeypatch.undo()
    groups = merged.sample(PROMPTS, 4, 16, seed=3)
    assert [[c.tokens_T for c in g] for g in groups] == [[c.tokens_T for c in g] for g in beside_groups]
    assert worst(beside, beside_groups) < 1e-4


@pytest.mark.parametrize("on_gpu", [False, True], ids=["look-at-once", "look-now-and-then"])
def test_rows_that_leave_the_batch_change_nothing(
    tiny: Path, on_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(tiny)
    monkeypatch.setattr(sampler, "COMPACT_BELOW", 0.0)
    never = engine.sample(PROMPTS, 16, 32, seed=5)
    monkeypatch.setattr(sampler, "COMPACT_BELOW", 0.99)
    engine._on_gpu = on_gpu
    monkeypatch.setattr("engines.mlx_lora.engine.free_memory", lambda _: 2**30)
    rows: list[int] = []
    keep = sampler.Rollout.keep
    monkeypatch.setattr(
        sampler.Rollout, "keep", lambda self, kept: (rows.append(len(kept)), keep(self, kept))[1]
    )
    eager = engine.sample(PROMPTS, 16, 32, seed=5)
    assert [[c.tokens_T for c in g] for g in eager] == [[c.tokens_T for c in g] for g in never]
    assert worst(engine, eager) < 1e-4
    assert rows == sorted(rows, reverse=True) and rows[-1] < 32  # finished rows stop costing


def test_passes_by_memory_change_nothing(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tokens whether all questions fit into one pass, or memory runs out until one is left."""
    engine = open_engine(tiny)
    whole = engine.sample(PROMPTS, 4, 8, seed=5)
    original, sizes = sampler._run, []

    def short_of_memory(prompts_P: list[list[int]], *rest: Any) -> Any:
        sizes.append(len(prompts_P))
        if len(prompts_P) > 1:
            raise RuntimeError("[metal::malloc] Unable to allocate 9 bytes")
        return original(prompts_P, *rest)

    monkeypatch.setattr(sampler, "_run", short_of_memory)
    parts = engine.sample(PROMPTS, 4, 8, seed=5)
    assert sizes == [4, 2, 1, 1, 1, 1]
    assert [[c.tokens_T for c in g] for g in parts] == [[c.tokens_T for c in g] for g in whole]
    assert engine.notes == ["Memory ran short: 1 questions are now answered at a time."]


def test_long_prompts_are_read_in_parts(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engines.mlx_lora import sampler as rollout

    engine = open_engine(tiny)
    whole = engine.sample(PROMPTS, 2, 8, seed=5)
    monkeypatch.setattr(rollout, "PREFILL_TOKENS", 8)
    parts = engine.sample(PROMPTS, 2, 8, seed=5)
    assert [[c.tokens_T for c in g] for g in parts] == [[c.tokens_T for c in g] for g in whole]


def test_no_memory_at_all(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_at_all(*_: object, **__: object) -> None:
        raise RuntimeError("[METAL] Command buffer execution failed: Insufficient Memory")

    engine = open_engine(tiny)
    before = state(engine)
    monkeypatch.setattr(sampler, "_run", none_at_all)
    with pytest.raises(EngineError, match="don't fit into the free memory"):
        engine.sample(PROMPTS, 4, 8, seed=5)
    monkeypatch.setattr(learner.Learner, "_embedded", none_at_all)
    with pytest.raises(EngineError, match="doesn't fit into the memory"):
        engine.step(batch(*ROWS))
    with pytest.raises(EngineError, match="doesn't fit into the memory"):
        likelihood(engine, (PROMPT, GOOD))
    assert state(engine) == before


def test_memory_pressure_steps_down_and_says_so(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, calm = open_engine(tiny), open_engine(tiny)
    engine._learner.limits = BatchLimits(tokens=600)
    gradient, seen = learner.Learner._gradient, []

    def short_of_memory(self: learner.Learner, *rest: Any) -> Any:
        seen.append((self.limits.tokens, self.limits.checkpointing))
        if len(seen) in (2, 3, 4):  # in the middle of a step: what was gathered until then must not count twice
            raise RuntimeError("[metal::malloc] Attempting to allocate 9 bytes: maximum allowed buffer size")
        return gradient(self, *rest)

    monkeypatch.setattr(learner.Learner, "_gradient", short_of_memory)
    monkeypatch.setattr(learner, "micro_batches", lambda rows, tokens: [[0, 1], [2, 3]])
    stats = engine.step(batch(*ROWS))
    assert seen == [(600, False), (600, False), (300, False), (150, False), (150, True), (150, True)]
    assert engine.notes == [
        "Memory ran short: it now learns from 300 tokens at a time.",
        "Memory ran short: it now learns from 150 tokens at a time.",
        "Memory ran short: it now computes layers twice instead of keeping them.",
    ]
    assert stats.grad_norm == pytest.approx(calm.step(batch(*ROWS)).grad_norm, rel=1e-5)


def test_limits_follow_the_free_memory(make_model: MakeModel) -> None:
    engine = open_engine(make_model("qwen2", num_hidden_layers=16))
    net = engine._network
    assert measured_limits(net, 2**34, on_gpu=False) == BatchLimits(2048)
    tight = measured_limits(net, 2 * 100 * net.token_bytes(checkpointing=False), on_gpu=False)
    assert tight.checkpointing and 300 < tight.tokens < 2048
    assert measured_limits(net, 1, on_gpu=False).tokens == 1
    engine._learner.limits.tokens = 512
    assert engine.step_down() == "Memory ran short: it now learns from 256 tokens at a time."
    assert "computes layers twice" in str(engine.step_down())
    assert engine.step_down() is None


def test_a_step_stays_within_what_its_tokens_were_said_to_take(make_model: MakeModel) -> None:
    """Peak memory of a gradient beside `token_bytes`; recomputed layers take less."""
    engine = open_engine(make_model("qwen2", num_hidden_layers=16))
    rows = [row(PROMPT, [7 + (i * j) % 20 for j in range(100)], 0.01 * i) for i in range(1, 9)]
    peaks = []
    for checkpointing in (False, True):
        engine._learner.limits = BatchLimits(tokens=2048, checkpointing=checkpointing)
        mx.clear_cache()
        mx.reset_peak_memory()
        before = mx.get_active_memory()
        engine.step(batch(*rows))
        peaks.append(mx.get_peak_memory() - before)
    assert peaks[1] < 0.3 * peaks[0]
    said = [796 * engine._network.token_bytes(checkpointing, keys=128) for checkpointing in (False, True)]
    assert all(peak < 1.3 * bytes for peak, bytes in zip(peaks, said, strict=True))


def test_micro_batches_change_nothing(tiny: Path) -> None:
    whole, parts, recomputed = (open_engine(tiny) for _ in range(3))
    parts._learner.limits = BatchLimits(tokens=8)
    recomputed._learner.limits = BatchLimits(tokens=8, checkpointing=True)
    stats = [engine.step(batch(*ROWS)) for engine in (whole, parts, recomputed)]
    assert stats[0].micro_batches == 1 and stats[1].micro_batches > 2
    for engine, stat in ((parts, stats[1]), (recomputed, stats[2])):
        assert stat.loss == pytest.approx(stats[0].loss, abs=1e-5)
        assert stat.grad_norm == pytest.approx(stats[0].grad_norm, rel=1e-5)
        assert mx.abs(engine._adapter.values - whole._adapter.values).max().item() < 1e-5


def test_completions_of_like_length_share_a_block() -> None:
    layout = pack([([5], [1] * 9), ([6, 7], [1] * 40), ([5], [2]), ([5], [3, 4, 5]), ([6, 7], [1] * 33)])
    assert layout.prompt_PL.tolist() == [[5, 0], [6, 7]]
    assert [block.fed_SF.shape for block in layout.blocks] == [(2, 8), (1, 32), (1, 39)]
    assert [block.before_S.tolist() for block in layout.blocks] == [[1, 1], [2], [2]]
    assert layout.predict_C.shape == (9 + 40 + 1 + 3 + 33,)


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
ROPES = [
    {"rope_type": "default", "rope_theta": 500.0},
    {"rope_type": "default", "rope_theta": 1e6},
    {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
    {**LLAMA3, "rope_theta": 5e5},
]


@pytest.mark.parametrize("rope", ROPES, ids=["theta-500", "theta-1e6", "linear", "llama3"])
@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama"])
def test_rotary_settings_are_transformers_s(
    family: str, rope: dict[str, Any], make_model: MakeModel, tmp_path: Path
) -> None:
    """In both spellings; mlx-lm itself ignores the newer one for Qwen2 and Llama."""
    folder = make_model(family, rope_parameters=rope)
    tokens = [5, *LONG, 7, *LONG, 9, *GOOD]
    expected = reference(folder).eval()
    import torch

    with torch.no_grad():
        logp = expected(torch.tensor([tokens])).logits[0].log_softmax(-1)
    exact = [float(logp[index, token]) for index, token in enumerate(tokens[1:])]
    sequence = TokenSequence(prompt_T=tokens[:1], completion_T=tokens[1:])
    assert open_engine(folder).logprobs([sequence])[0] == pytest.approx(exact, abs=1e-4)
    older = shutil.copytree(folder, tmp_path / "older")
    config = json.loads((older / "config.json").read_text())
    scaling = config.pop("rope_parameters")
    config["rope_theta"] = scaling.pop("rope_theta")
    config["rope_scaling"] = scaling if scaling["rope_type"] != "default" else None
    (older / "config.json").write_text(json.dumps(config))
    assert open_engine(older).logprobs([sequence])[0] == pytest.approx(exact, abs=1e-4)


def test_a_decoder_that_turns_otherwise_is_refused(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = network._settings
    monkeypatch.setattr(network, "_settings", lambda *given: settings(*given) | {"rope_theta": 999.0})
    with pytest.raises(EngineError, match="rotary settings"):
        open_engine(tiny)


def test_untied_head(make_model: MakeModel, tmp_path: Path) -> None:
    engine = open_engine(make_model("qwen2", tie_word_embeddings=False))
    assert worst(engine, engine.sample(PROMPTS, 2, 8, seed=1)) < 1e-4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "gemma2"}, "doesn't know the architecture 'gemma2'"),
        ({"num_hidden_layers": 3}, "other weights than its config.json says"),
        ({"num_hidden_layers": 1}, "other weights than its config.json says"),
        ({"intermediate_size": 40}, "other weights than its config.json says"),
        ({"hidden_size": None}, "config.json is damaged"),
    ],
)
def test_a_model_that_does_not_fit(tiny: Path, tmp_path: Path, change: dict[str, Any], says: str) -> None:
    shutil.copytree(tiny, tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(EngineError, match=says) as caught:
        open_engine(tmp_path / "model")
    assert "\n" not in str(caught.value)


def test_damaged_weights(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(EngineError, match="damaged"):
        open_engine(tmp_path / "model")


def test_devices_and_memory(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="no device 'tpu'"):
        open_engine(tiny, device="tpu")
    if not mx.metal.is_available():
        with pytest.raises(EngineError, match="sees no Apple GPU"):
            open_engine(tiny, device="gpu")
    info = open_engine(tiny, device="cpu", rank=4).info
    assert (info.name, info.device, info.dtype, info.sampler) == ("mlx", "CPU", "float32", "")
    assert info.trainable == 2 * 4 * ((32 + 32) + 2 * (32 + 16) + (32 + 32) + 2 * (32 + 48) + (48 + 32))
    monkeypatch.setattr("engines.mlx_lora.engine.free_memory", lambda _: 1000)
    with pytest.raises(EngineError, match="and 0 MB are free"):
        open_engine(tiny)


def test_where_it_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert "Apple Silicon" in mlx_lora.why_unavailable()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert "Intel" in mlx_lora.why_unavailable()
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "isn't installed" in mlx_lora.why_unavailable()


WORK = (
    "import sys\n"
    "from engines.mlx_lora import open_engine\n"
    "from engines.contract import Batch, Row\n"
    "engine = open_engine({folder!r})\n"
    "prompt = [{{'role': 'user', 'content': 'w1'}}]\n"
    "tokens = engine.sample([prompt], 2, 4, 0)[0][0].tokens_T\n"
    "row = Row(prompt_T=engine.prompt_tokens(prompt), completion_T=tokens, weights_T=[1.0] * len(tokens))\n"
    "print(round(engine.step(Batch(rows_S=[row], learning_rate=1e-3)).loss, 3))\n"
    "print([name for name in ('torch', 'transformers', 'peft') if name in sys.modules])\n"
)


def test_neither_torch_nor_a_compiler_is_needed(tiny: Path, tmp_path: Path) -> None:
    """Torch is not even imported; without a compiler on the path, mlx-lm's activations are not fused."""
    said = []
    for changed in ({}, {"PATH": str(tmp_path), "TMPDIR": str(tmp_path)}):
        done = subprocess.run(
            [sys.executable, "-c", WORK.format(folder=str(tiny))],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, **changed},
        )
        said.append(done.stdout.splitlines())
        assert said[-1][1:] == ["[]"], done.stderr
    assert said[0] == said[1]
