"""Opening a model: what is chosen, and one clear sentence for whatever is wrong with a folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engines.contract import EngineError
from engines.models import folder
from engines.models.folder import read_architecture
from engines.torch_lora import open_engine
from engines.torch_lora.network import device
from tests.engines.small_models import MakeModel


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    """A model folder to spoil."""
    return shutil.copytree(tiny, tmp_path / "model")


def refused(path: Path | str, says: str, **options: object) -> None:
    with pytest.raises(EngineError, match=says) as caught:
        open_engine(path, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_missing_folder(tmp_path: Path) -> None:
    refused(tmp_path / "nothing", "There is no model folder at")


def test_not_a_model_folder(tmp_path: Path) -> None:
    refused(tmp_path, "has no config.json")


def test_pickle_only(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    refused(copy, "only as pickle files")


def test_no_weights(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    refused(copy, "has no .safetensors weights")


def test_weights_cut_short(copy: Path) -> None:
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-50])
    refused(copy, "model.safetensors are damaged")


def test_config_cut_short(copy: Path) -> None:
    (copy / "config.json").write_text('{"model_type": "qwen2"')
    refused(copy, "config.json of the model in .* can't be read")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("hidden_size", None, "config.json is damaged"),
        ("intermediate_size", 40, "gate_proj.weight in another shape"),
        ("num_hidden_layers", 3, "lacks the weights model.layers.2"),
        ("vocab_size", 99, "embed_tokens.weight in another shape"),
        ("quantization_config", {"bits": 4}, "quantised"),
    ],
)
def test_config_of_another_model(copy: Path, key: str, value: object, says: str) -> None:
    config = json.loads((copy / "config.json").read_text())
    config[key] = value
    (copy / "config.json").write_text(json.dumps(config))
    refused(copy, says)


def test_tokenizer_missing_or_damaged(copy: Path) -> None:
    (copy / "tokenizer.json").write_text("{}")
    refused(copy, "tokenizer.json of model can't be used")
    (copy / "tokenizer.json").unlink()
    refused(copy, "has no tokenizer")


def test_not_enough_memory(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "free_memory", lambda _: 1000)
    refused(tiny, "needs .* MB and 0 MB are free")


def test_device_and_threads(tiny: Path) -> None:
    refused(tiny, "no device 'tpu'", device="tpu")
    refused(tiny, "0 threads", threads=0)
    if not torch.cuda.is_available():
        refused(tiny, "sees no cuda device", device="cuda")


def test_a_card_that_runs_no_kernel_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_kernel(*sizes: int, device: str) -> torch.Tensor:
        raise torch.AcceleratorError(
            "CUDA error: no kernel image is available for execution on the device", 209
        )

    device.cuda_computes.cache_clear()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "ones", no_kernel)
    try:
        assert device.choose_device("auto").type == "cpu"
        with pytest.raises(EngineError, match="that it can use"):
            device.choose_device("cuda")
    finally:
        device.cuda_computes.cache_clear()


def test_threads_leave_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "cores", lambda: 8)
    assert device.default_threads(494_000_000) == 7
    assert device.default_threads(1_800_000) == 1


def test_what_is_chosen(tiny: Path) -> None:
    info = open_engine(tiny, device="cpu").info
    assert (info.device, info.dtype, info.threads, info.adapter_format) == ("CPU", "float32", 1, "peft")
    assert info.parameters == folder.count_parameters(folder.open_folder(tiny))
    assert info.memory_budget_mb > 0
    # Rank 16 on q, k, v, o, gate, up, down of two layers: 16 * (in + out) each.
    per_layer = 16 * ((32 + 32) + 2 * (32 + 16) + (32 + 32) + 2 * (32 + 48) + (48 + 32))
    assert info.trainable == 2 * per_layer
    assert open_engine(tiny, rank=4).info.trainable == info.trainable // 4


def test_a_snapshot_in_the_hub_s_cache_keeps_its_name(tiny: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--Qwen--Qwen2.5-0.5B" / "snapshots" / "abc123"
    shutil.copytree(tiny, snapshot)
    assert open_engine(snapshot).info.model == "Qwen/Qwen2.5-0.5B"


def test_sharded_weights(tiny: Path, copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = sorted(load_file(tiny / "model.safetensors").items())
    (copy / "model.safetensors").unlink()
    for number, part in enumerate((tensors[:7], tensors[7:])):
        save_file(dict(part), copy / f"model-0000{number + 1}-of-00002.safetensors", {"format": "pt"})
    prompt = [{"role": "user", "content": "w1"}]
    assert open_engine(copy).sample([prompt], 4, 8, 0) == open_engine(tiny).sample([prompt], 4, 8, 0)


def test_bf16_weights_are_read_as_fp32_where_that_is_faster(make_model: MakeModel, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(make_model("qwen2"), tmp_path / "half")
    file = tmp_path / "half" / "model.safetensors"
    save_file({name: t.bfloat16() for name, t in load_file(file).items()}, file, {"format": "pt"})
    engine = open_engine(tmp_path / "half", device="cpu")
    assert engine.info.dtype == "float32"
    engine.sample([[{"role": "user", "content": "w1"}]], 2, 4, 0)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "gemma2"},
        {"model_type": "qwen2", "use_sliding_window": True},
        {"model_type": "qwen3", "layer_types": ["full_attention", "sliding_attention"]},
        {"model_type": "llama", "hidden_act": "gelu"},
        {"model_type": "llama", "rope_scaling": {"type": "dynamic", "factor": 2.0}},
        {"model_type": "llama", "rope_parameters": {"rope_type": "llama3", "factor": 2.0}},
        {"model_type": "llama", "rope_parameters": {"partial_rotary_factor": 0.5}},
    ],
)
def test_what_our_decoder_leaves_to_transformers(config: dict[str, object]) -> None:
    assert read_architecture(config) is None


def test_both_spellings_of_rotary_settings() -> None:
    sizes = dict(hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, vocab_size=9)
    scaling = {
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    old = {**sizes, "model_type": "llama", "rope_theta": 5e5, "rope_scaling": {**scaling, "type": "llama3"}}
    new = {
        **sizes,
        "model_type": "llama",
        "rope_parameters": {**scaling, "rope_theta": 5e5, "rope_type": "llama3"},
    }
    found = read_architecture(old)
    assert found == read_architecture(new) and found is not None
    assert found.rope.theta == 5e5 and found.kv_heads == 4 and found.head_dim == 16


def test_opening_the_usual_models_imports_neither_transformers_nor_peft(tiny: Path) -> None:
    """Nor torch's compiler: together they would take most of the ten seconds until the first round is done."""
    code = (
        "import os, sys\n"
        "for name in ('OMP_WAIT_POLICY', 'GOMP_SPINCOUNT'): os.environ.pop(name, None)\n"
        "from engines.torch_lora import open_engine\n"
        "from engines.contract import Batch, Row\n"
        f"engine = open_engine({str(tiny)!r})\n"
        "prompt = [{'role': 'user', 'content': 'w1'}]\n"
        "tokens = engine.sample([prompt], 2, 4, 0)[0][0].tokens_T\n"
        "row = Row(prompt_T=engine.prompt_tokens(prompt), completion_T=tokens, weights_T=[1.0] * len(tokens))\n"
        "engine.step(Batch(rows_S=[row], learning_rate=1e-3))\n"
        "print([name for name in ('transformers', 'peft', 'torch._dynamo') if name in sys.modules])\n"
        "print(os.environ['OMP_WAIT_POLICY'], os.environ['GOMP_SPINCOUNT'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["[]", "PASSIVE 2000"], done.stderr


def test_the_contract_alone_imports_no_torch() -> None:
    code = "import sys, engines.contract, engines.models; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stderr
