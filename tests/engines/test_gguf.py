"""Checkpoints as GGUF: llama.cpp computes what transformers computes, for every family and every layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines.models import gguf
from tests.engines.llama import logits
from tests.engines.models import MakeModel, reference

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
