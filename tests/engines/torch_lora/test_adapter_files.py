"""Saving and loading: exact, readable by peft, and nothing is lost to a damaged file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engines.contract import AdapterError, Batch, EngineError, Row, TokenSequence
from engines.torch_lora import open_engine
from engines.torch_lora.engine import TorchEngine
from tests.engines.small_models import MakeModel, reference

SEQUENCE = TokenSequence(prompt_T=[5, 6, 3], completion_T=[10, 11, 1])
BATCH = Batch(
    rows_S=[Row(prompt_T=[5, 6, 3], completion_T=[10, 11, 1], weights_T=[1.0] * 3)], learning_rate=0.02
)


@pytest.fixture
def saved(tiny: Path, tmp_path: Path) -> tuple[TorchEngine, Path]:
    """An engine after two steps, and where it was saved."""
    engine = open_engine(tiny, seed=4)
    for _ in range(2):
        engine.step(BATCH)
    folder = tmp_path / "deep" / "checkpoint"
    engine.save(folder)
    return engine, folder


def state(engine: TorchEngine) -> tuple[list[torch.Tensor], int]:
    adapter = engine._adapter
    return [t.clone() for t in (adapter.values, adapter.moments_1, adapter.moments_2)], adapter.steps


def same(one: tuple[list[torch.Tensor], int], other: tuple[list[torch.Tensor], int]) -> bool:
    return one[1] == other[1] and all(torch.equal(a, b) for a, b in zip(one[0], other[0], strict=True))


def test_round_trip_is_exact(tiny: Path, saved: tuple[TorchEngine, Path]) -> None:
    engine, folder = saved
    other = open_engine(tiny, seed=5)
    sampled = other.sample([[{"role": "user", "content": "w1"}]], 4, 8, seed=0)
    other.load(folder)
    assert same(state(engine), state(other))
    assert engine.logprobs([SEQUENCE]) == other.logprobs([SEQUENCE])
    again = other.sample([[{"role": "user", "content": "w1"}]], 4, 8, seed=0)
    assert again == engine.sample([[{"role": "user", "content": "w1"}]], 4, 8, seed=0) != sampled
    engine.step(BATCH), other.step(BATCH)  # with its momentum and step count
    assert same(state(engine), state(other))


def test_opens_in_peft(tiny: Path, saved: tuple[TorchEngine, Path]) -> None:
    from peft import PeftModel

    engine, folder = saved
    model = PeftModel.from_pretrained(reference(tiny), folder)
    tokens = SEQUENCE.prompt_T + SEQUENCE.completion_T
    with torch.no_grad():
        logp = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
    expected = [float(logp[2 + i, t]) for i, t in enumerate(SEQUENCE.completion_T)]
    assert engine.logprobs([SEQUENCE])[0] == pytest.approx(expected, abs=1e-4)


def test_names_and_settings_are_peft_s(tiny: Path, saved: tuple[TorchEngine, Path], tmp_path: Path) -> None:
    """The same tensors, names and shapes as peft itself writes, and nothing else in the folder."""
    from peft import LoraConfig, get_peft_model

    _, folder = saved
    linears = [f"{p}_proj" for p in ("q", "k", "v", "o", "gate", "up", "down")]
    made = get_peft_model(reference(tiny), LoraConfig(r=16, target_modules=linears, task_type="CAUSAL_LM"))
    made.save_pretrained(tmp_path / "peft")
    theirs, ours = (load_file(f / "adapter_model.safetensors") for f in (tmp_path / "peft", folder))
    assert {name: t.shape for name, t in ours.items()} == {name: t.shape for name, t in theirs.items()}
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["r"] == 16 and config["lora_alpha"] == 32
    assert set(config["target_modules"]) == set(linears)
    assert str(tmp_path) not in (folder / "adapter_config.json").read_text()
    assert {file.name for file in folder.iterdir()} == {
        "adapter_model.safetensors",
        "adapter_config.json",
        "optimizer.safetensors",
        "optimizer.json",
    }


def truncate(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-10])  # type: ignore[return-value]


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def garble(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(b"\x00" * 200)  # type: ignore[return-value]


def change(name: str, edit: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / name)
        edit(tensors)
        save_file(tensors, folder / name)

    return apply


def first(tensors: dict[str, torch.Tensor]) -> str:
    return sorted(tensors)[0]


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "adapter cut": (truncate("adapter_model.safetensors"), "damaged"),
    "adapter missing": (remove("adapter_model.safetensors"), "missing"),
    "adapter zeros": (garble("adapter_model.safetensors"), "damaged"),
    "optimiser cut": (truncate("optimizer.safetensors"), "damaged"),
    "optimiser missing": (remove("optimizer.safetensors"), "missing"),
    "state cut": (truncate("optimizer.json"), "damaged"),
    "state missing": (remove("optimizer.json"), "missing"),
    "folder missing": (shutil.rmtree, "missing"),
    "t finite": (change("adapter_model.safetensors", lambda t: t[first(t)].fill_(torch.nan)), "damaged"),
    "moment not finite": (change("optimizer.safetensors", lambda t: t[first(t)].fill_(torch.inf)), "damaged"),
    "negative spread": (
        change("optimizer.safetensors", lambda t: t[next(n for n in t if "exp_avg_sq" in n)].fill_(-1.0)),
        "damaged",
    ),
    "layer missing": (change("adapter_model.safetensors", lambda t: t.pop(first(t))), "of another model"),
    "layer added": (
        change("adapter_model.safetensors", lambda t: t.update(extra=torch.zeros(1))),
        "of another model",
    ),
    "other shape": (
        change("adapter_model.safetensors", lambda t: t.update({first(t): t[first(t)][:-1].contiguous()})),
        "another shape",
    ),
    "other format": (
        change("adapter_model.safetensors", lambda t: t.update({first(t): t[first(t)].half()})),
        "shape",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE, ids=lambda kind: kind.replace(" ", "-"))
def test_damage_is_refused_and_loses_nothing(kind: str, tiny: Path, saved: tuple[TorchEngine, Path]) -> None:
    damage, says = DAMAGE[kind]
    _, folder = saved
    damage(folder)
    engine = open_engine(tiny, seed=9)
    engine.step(BATCH)
    before = state(engine)
    with pytest.raises(AdapterError, match=says) as caught:
        engine.load(folder)
    assert "\n" not in str(caught.value)
    assert same(state(engine), before)


def test_another_model_s_adapter(make_model: MakeModel, saved: tuple[TorchEngine, Path]) -> None:
    """Even one of the same shape, whose files differ only in the weights."""
    _, folder = saved
    for other in (make_model("qwen2", seed=1), make_model("llama"), make_model("qwen2", num_hidden_layers=3)):
        engine = open_engine(other)
        before = state(engine)
        with pytest.raises(AdapterError, match="another model"):
            engine.load(folder)
        assert same(state(engine), before)


def test_another_rank(tiny: Path, saved: tuple[TorchEngine, Path]) -> None:
    with pytest.raises(AdapterError, match="rank 16, not 4"):
        open_engine(tiny, rank=4).load(saved[1])


def test_a_moved_model_keeps_its_adapter(tiny: Path, saved: tuple[TorchEngine, Path], tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "elsewhere")
    open_engine(tmp_path / "elsewhere").load(saved[1])


def test_a_folder_that_cannot_be_written(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(EngineError, match="couldn't be saved"):
        open_engine(tiny).save(tmp_path / "file" / "checkpoint")
