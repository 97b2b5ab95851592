"""Checkpoints as GGUF: llama.cpp computes what transformers computes, for every family and every layout."""

from __future__ import annotations

import contextlib
import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engines.contract import EngineError
from engines.models.gguf import gguf
from engines.models.gguf import header as gguf_header
from tests.engines.llama import logits, opened
from tests.engines.small_models import MakeModel, reference

TOKENS = [5, 6, 3, 10, 11, 4, 9, 9, 20, 21, 7, 1]

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("qwen2", {}),
    "qwen2 untied": ("qwen2", dict(tie_word_embeddings=False)),
    "qwen2 theta": ("qwen2", dict(rope_parameters=dict(rope_type="default", rope_theta=500.0))),
    "qwen2 linear": ("qwen2", dict(rope_parameters=dict(rope_type="linear", factor=3.0, rope_theta=100.0))),
    "qwen3": ("qwen3", {}),
    "qwen3 bias": ("qwen3", dict(attention_bias=False, head_dim=16)),
    "llama": ("llama", {}),
    "llama own head size": ("llama", dict(head_dim=12)),
    "llama biases": ("llama", dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=False)),
    "llama 3 scaling": (
        "llama",
        dict(
            rope_parameters=dict(
                rope_type="llama3",
                rope_theta=500.0,
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=16,
            )
        ),
    ),
}


def expected(folder: Path, tokens: list[int] = TOKENS) -> Any:
    with torch.no_grad():
        return reference(folder)(torch.tensor([tokens])).logits[0].numpy()


def spread(values: Any) -> float:
    """Root mean square."""
    return float(np.sqrt((values**2).mean()))


@pytest.mark.parametrize("name", FAMILIES, ids=lambda name: name.replace(" ", "-"))
def test_the_same_logits(name: str, make_model: MakeModel, tmp_path: Path) -> None:
    family, changes = FAMILIES[name]
    folder = make_model(family, **changes)
    wanted = expected(folder)
    gguf.write(folder, tmp_path / "exact.gguf", "f32", ids_only=True)
    found = logits(tmp_path / "exact.gguf", TOKENS)
    assert np.abs(found - wanted).max() < 2e-4 * max(1.0, np.abs(wanted).max())
    gguf.write(folder, tmp_path / "half.gguf", "f16", ids_only=True)
    assert spread(logits(tmp_path / "half.gguf", TOKENS) - wanted) < 0.01 * spread(wanted)
    gguf.write(folder, tmp_path / "small.gguf", "q8_0", ids_only=True)
    assert spread(logits(tmp_path / "small.gguf", TOKENS) - wanted) < 0.2 * spread(wanted)


def test_a_bf16_checkpoint_in_shards(make_model: MakeModel, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    shutil.copytree(make_model("llama"), folder)
    (folder / "model.safetensors").unlink()
    reference(make_model("llama"), torch.bfloat16).save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    gguf.write(folder, tmp_path / "model.gguf", "f32", ids_only=True)
    assert np.abs(logits(tmp_path / "model.gguf", TOKENS) - expected(folder)).max() < 1e-3


def test_weights_beyond_fp16(make_model: MakeModel, tmp_path: Path) -> None:
    """A value that fp16 does not have becomes the nearest it has, not infinity."""
    large = weights(lambda t: t["model.embed_tokens.weight"].fill_(7e4))
    folder = copied(make_model("qwen2"), tmp_path / "large", large)
    gguf.write(folder, tmp_path / "model.gguf", "f16", ids_only=True)
    assert np.isfinite(logits(tmp_path / "model.gguf", TOKENS)).all()


def test_a_large_matrix_in_parts(
    make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("f16", "q8_0"):
        gguf.write(make_model("llama"), tmp_path / f"whole.{kind}", kind, ids_only=True)
        with monkeypatch.context() as patch:
            patch.setattr(gguf, "_ROWS", 7)
            gguf.write(make_model("llama"), tmp_path / f"parts.{kind}", kind, ids_only=True)
        assert (tmp_path / f"whole.{kind}").read_bytes() == (tmp_path / f"parts.{kind}").read_bytes()


def test_progress_and_nothing_left_over(make_model: MakeModel, tmp_path: Path) -> None:
    told: list[float] = []
    gguf.write(make_model("qwen2"), tmp_path / "model.gguf", "f16", told.append, ids_only=True)
    assert told == sorted(told) and told[-1] == 1.0 and len(told) > 10
    assert [file.name for file in tmp_path.iterdir()] == ["model.gguf"]


def test_the_cache(make_model: MakeModel, tmp_path: Path) -> None:
    """One file for one content and kind, found again wherever the model moves, made anew when it is damaged."""
    folder, cache = make_model("qwen2"), tmp_path / "cache"
    made = gguf.cached(folder, "f16", cache)
    first = made.stat().st_mtime_ns
    shutil.copytree(folder, tmp_path / folder.name)
    assert gguf.cached(tmp_path / folder.name, "f16", cache) == made and made.stat().st_mtime_ns == first
    assert gguf.cached(folder, "q8_0", cache) != made
    other = copied(folder, tmp_path / "other", weights(lambda t: t["model.norm.weight"].add_(1e-3)))
    assert gguf.cached(other, "f16", cache) != made
    whole = made.read_bytes()
    for damaged in (whole[:-100], b"", b"GGUF", whole.replace(b"shoal.source", b"shoal.sauces")):
        made.write_bytes(damaged)
        assert gguf.cached(folder, "f16", cache) == made
        assert made.read_bytes() == whole
    assert len(list(cache.iterdir())) == 3


def test_the_cache_lies_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path))
    assert gguf.cache_folder() == tmp_path / "cache" / "gguf"
    monkeypatch.delenv("SHOAL_HOME")
    assert not gguf.cache_folder().is_relative_to(tmp_path)


def copied(folder: Path, to: Path, edit: Callable[[Path], Any]) -> Path:
    shutil.copytree(folder, to)
    edit(to)
    return to


def cut(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def configured(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}))

    return edit


def weights(edit: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        edit(tensors)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return apply


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "weights cut off": (cut, "damaged: download"),
    "weights of zeros": (lambda f: (f / "model.safetensors").write_bytes(b"\0" * 500), "damaged: download"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no .safetensors weights"),
    "config of zeros": (lambda f: (f / "config.json").write_bytes(b"\0" * 50), "can't be read"),
    "no config": (lambda f: (f / "config.json").unlink(), "no config.json"),
    "no tokenizer": (lambda f: [t.unlink() for t in f.glob("token*")], "no tokenizer"),
    "tokenizer cut off": (lambda f: (f / "tokenizer.json").write_text("{"), "tokenizer.json .* is damaged"),
    "another architecture": (configured(model_type="gpt_neox"), "is gpt_neox, and only"),
    "heads of another width": (configured(head_dim=6), "wider than llama.cpp expects"),
    "another rotary scaling": (
        configured(rope_parameters=dict(rope_type="yarn", factor=2.0)),
        "a rotary scaling",
    ),
    "a layer missing": (weights(lambda t: t.pop("model.layers.1.mlp.up_proj.weight")), "lacks the weights"),
    "another shape": (configured(intermediate_size=40), "another shape than its config"),
    "unknown weights": (
        weights(lambda t: t.update({"model.layers.0.self_attn.gate.weight": torch.ones(2, 2)})),
        "doesn't know",
    ),
    "whole numbers": (
        weights(lambda t: t.update({"model.norm.weight": torch.ones(32, dtype=torch.int8)})),
        "is quantised",
    ),
}


@pytest.mark.parametrize("kind", BAD, ids=lambda kind: kind.replace(" ", "-"))
def test_bad_input_is_one_sentence(kind: str, make_model: MakeModel, tmp_path: Path) -> None:
    damage, says = BAD[kind]
    folder = copied(make_model("qwen2"), tmp_path / "model", damage)
    out = tmp_path / "out"
    with pytest.raises(EngineError, match=says) as caught:
        gguf.write(folder, out / "model.gguf", ids_only="tokenizer" not in kind)
    assert "\n" not in str(caught.value)
    assert not out.exists() or not list(out.iterdir())


def test_no_room(make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known before anything is written, or noticed while writing: nothing is left either way."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 2**20))
    with pytest.raises(EngineError, match=r"needs .* MB and 1 MB are free"):
        gguf.write(make_model("qwen2"), tmp_path / "model.gguf", ids_only=True)
    monkeypatch.undo()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(gguf.gguf.GGUFWriter, "write_tensor_data", full)
    with pytest.raises(EngineError, match=r"couldn't be written .*No space left"):
        gguf.write(make_model("qwen2"), tmp_path / "model.gguf", ids_only=True)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written(make_model: MakeModel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="couldn't be written"):
        gguf.write(make_model("qwen2"), tmp_path / "file" / "model.gguf", ids_only=True)


def test_the_header(make_model: MakeModel, tmp_path: Path) -> None:
    """As the gguf package itself reads it; any cut and any flipped byte of it is one sentence or no harm."""
    file = tmp_path / "model.gguf"
    gguf.write(make_model("qwen2"), file, "q8_0", ids_only=True)
    header = gguf_header.read(file)
    theirs = gguf.gguf.GGUFReader(file)
    assert header.bytes == file.stat().st_size
    assert {t.name: (tuple(t.shape)[::-1], t.tensor_type) for t in theirs.tensors} == header.tensors
    assert header.values["general.architecture"] == "qwen2" and header.values["qwen2.block_count"] == 2
    whole = file.read_bytes()
    for end in range(0, len(whole), 97):
        file.write_bytes(whole[:end])
        with pytest.raises(EngineError, match=r"damaged|cut off"):
            gguf_header.read(file)
    generator = np.random.default_rng(0)
    for position in generator.integers(0, 3000, 300):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        with contextlib.suppress(EngineError):
            gguf_header.read(file)


def test_llama_cpp_refuses_what_the_header_does(make_model: MakeModel, tmp_path: Path) -> None:
    gguf.write(make_model("qwen2"), tmp_path / "model.gguf", ids_only=True)
    (tmp_path / "model.gguf").write_bytes((tmp_path / "model.gguf").read_bytes()[:-200])
    with pytest.raises(ValueError), opened(tmp_path / "model.gguf"):
        pass
