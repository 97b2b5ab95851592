"""Adapters as GGUF: on their base llama.cpp computes what peft does; what it could not apply is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engines.contract import AdapterError, EngineError
from engines.models import lora
from engines.models.folder import open_folder
from engines.models.gguf import gguf
from engines.models.gguf import tensors as adapter
from tests.engines.llama import logits
from tests.engines.small_models import MakeModel, reference

TOKENS = [5, 6, 3, 10, 11, 4, 9, 9, 20, 21, 7, 1]
LINEARS = [f"{p}_proj" for p in ("q", "k", "v", "o", "gate", "up", "down")]


def trained(folder: Path, to: Path, **settings: Any) -> Any:
    """An adapter by peft itself with B drawn at random; gives peft's own logits."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(3)
    usual = dict(r=4, lora_alpha=8, target_modules=LINEARS, task_type="CAUSAL_LM")
    model = get_peft_model(reference(folder), LoraConfig(**{**usual, **settings}))
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, 0.0, 0.3)
    model.save_pretrained(to)
    with torch.no_grad():
        return model.eval()(torch.tensor([TOKENS])).logits[0].numpy()


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {}),
    "llama": ("llama", {}),
    "a few layers": ("llama", dict(target_modules=["q_proj", "k_proj"])),
    "rank-stabilised": ("qwen2", dict(use_rslora=True)),
    "ranks and alphas of their own": (
        "llama",
        dict(rank_pattern={"k_proj": 2}, alpha_pattern={"k_proj": 3, "layers.1.mlp.up_proj": 16}),
    ),
}


@pytest.mark.parametrize("name", KINDS, ids=lambda name: name.replace(" ", "-"))
def test_the_same_logits_as_peft(name: str, make_model: MakeModel, tmp_path: Path) -> None:
    family, settings = KINDS[name]
    folder = make_model(family)
    wanted = trained(folder, tmp_path / "peft", **settings)
    gguf.write(folder, tmp_path / "base.gguf", "f32", ids_only=True)
    shape = gguf.architecture(open_folder(folder))
    adapter.write(tmp_path / "peft", shape, tmp_path / "lora.gguf")
    found = logits(tmp_path / "base.gguf", TOKENS, tmp_path / "lora.gguf")
    assert np.abs(found - wanted).max() < 5e-4 * np.abs(wanted).max()
    assert np.abs(found - logits(tmp_path / "base.gguf", TOKENS)).max() > 0.5
    state, alpha = lora.read_state(tmp_path / "peft")
    adapter.write_state(state, alpha=alpha, architecture=shape, to=tmp_path / "half.gguf", half=True)
    found = logits(tmp_path / "base.gguf", TOKENS, tmp_path / "half.gguf")
    assert np.abs(found - wanted).max() < 2e-2 * np.abs(wanted).max()


def remove(name: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).unlink()


def configured(**changes: Any) -> Callable[[Path], Any]:
    def edit(folder: Path) -> None:
        file = folder / "adapter_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    return edit


def tensors(edit: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], Any]:
    def apply(folder: Path) -> None:
        found = load_file(folder / "adapter_model.safetensors")
        edit(found)
        save_file(found, folder / "adapter_model.safetensors")

    return apply


def first(found: dict[str, torch.Tensor]) -> str:
    return min(found)


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no settings": (remove("adapter_config.json"), "has no adapter_config.json"),
    "settings of zeros": (lambda f: (f / "adapter_config.json").write_bytes(b"\0"), "is damaged"),
    "no alpha": (configured(lora_alpha=None), "is damaged"),
    "no tensors": (remove("adapter_model.safetensors"), "missing or damaged"),
    "tensors of zeros": (
        lambda f: (f / "adapter_model.safetensors").write_bytes(b"\0" * 99),
        "missing or damaged",
    ),
    "not a number": (tensors(lambda t: t[first(t)].fill_(torch.nan)), "holds no numbers"),
    "another kind": (configured(peft_type="IA3"), "no plain LoRA"),
    "biases": (configured(bias="all"), "no plain LoRA"),
    "dora": (configured(use_dora=True), "use_dora"),
    "whole layers": (configured(modules_to_save=["lm_head"]), "modules_to_save"),
    "half a pair": (tensors(lambda t: t.pop(next(n for n in t if "lora_B" in n))), "only half"),
    "a layer too many": (
        tensors(lambda t: t.update({n.replace("layers.0", "layers.7"): t[n].clone() for n in list(t)})),
        "which this model hasn't",
    ),
    "something else": (tensors(lambda t: t.update(extra=torch.ones(1))), "or more than those"),
    "no layers": (tensors(lambda t: t.clear()), "no LoRA layers"),
}


@pytest.mark.parametrize("kind", BAD, ids=lambda kind: kind.replace(" ", "-"))
def test_what_cannot_be_applied(kind: str, make_model: MakeModel, tmp_path: Path) -> None:
    damage, says = BAD[kind]
    trained(make_model("qwen2"), tmp_path / "peft")
    damage(tmp_path / "peft")
    shape = gguf.architecture(open_folder(make_model("qwen2")))
    with pytest.raises(AdapterError, match=says) as caught:
        adapter.write(tmp_path / "peft", shape, tmp_path / "lora.gguf")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "lora.gguf").exists()


def test_an_adapter_of_another_base(make_model: MakeModel, tmp_path: Path) -> None:
    """Of another shape: refused when it is written; llama.cpp itself refuses the file on its base too."""
    trained(make_model("qwen2", hidden_size=48), tmp_path / "peft")
    own = gguf.architecture(open_folder(make_model("qwen2", hidden_size=48)))
    other = gguf.architecture(open_folder(make_model("qwen2")))
    with pytest.raises(AdapterError, match="of another model"):
        adapter.write(tmp_path / "peft", other, tmp_path / "lora.gguf")
    adapter.write(tmp_path / "peft", own, tmp_path / "lora.gguf")
    gguf.write(make_model("qwen2"), tmp_path / "base.gguf", ids_only=True)
    with pytest.raises(ValueError, match="wrong base model"):
        logits(tmp_path / "base.gguf", TOKENS, tmp_path / "lora.gguf")


def test_no_room(make_model: MakeModel, tmp_path: Path) -> None:
    trained(make_model("qwen2"), tmp_path / "peft")
    shape = gguf.architecture(open_folder(make_model("qwen2")))
    with pytest.raises(EngineError, match="couldn't be written"):
        adapter.write(tmp_path / "peft", shape, tmp_path / "nowhere" / "lora.gguf")
    if Path("/dev/full").exists():
        with pytest.raises(EngineError, match="No space left"):
            adapter.write(tmp_path / "peft", shape, Path("/dev/full"))


def test_a_copied_adapter_is_the_same_file(make_model: MakeModel, tmp_path: Path) -> None:
    trained(make_model("llama"), tmp_path / "peft")
    shutil.copytree(tmp_path / "peft", tmp_path / "copy")
    shape = gguf.architecture(open_folder(make_model("llama")))
    for name in ("peft", "copy"):
        adapter.write(tmp_path / name, shape, tmp_path / f"{name}.gguf")
    assert (tmp_path / "peft.gguf").read_bytes() == (tmp_path / "copy.gguf").read_bytes()
