"""Tiny models for the engine's tests, made from nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

WORDS = [f"w{number}" for number in range(24)]
TEMPLATE = "{% for message in messages %}{{ message['content'] }} {% endfor %}<ask>"
SIZES = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=48,
    max_position_embeddings=256,
    tie_word_embeddings=True,
    initializer_range=0.3,
    bos_token_id=None,
    pad_token_id=0,
    eos_token_id=1,
)

MakeModel = Callable[..., Path]


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate(["<pad>", "<end>", "<unk>", "<ask>", *WORDS])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        eos_token="<end>",
        pad_token="<pad>",
        unk_token="<unk>",
        additional_special_tokens=["<ask>"],
        chat_template=TEMPLATE,
    )


_DELTA = dict(
    linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8, head_dim=8
)
_MAMBA = dict(
    mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=8, mamba_d_ssm=64, mamba_chunk_size=8
)
_EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
_HYBRID = dict(layer_types=["linear_attention", "full_attention"])
_FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", dict(head_dim=12)),
    "llama": ("LlamaConfig", {}),
    "mistral": ("MistralConfig", {}),
    "gemma2": ("Gemma2Config", dict(head_dim=8, sliding_window=4, query_pre_attn_scalar=8)),
    "gemma3n_text": (
        "Gemma3nTextConfig",
        dict(
            **dict(head_dim=8, sliding_window=4, num_kv_shared_layers=0, vocab_size_per_layer_input=28),
            **dict(hidden_size_per_layer_input=8, laurel_rank=4, activation_sparsity_pattern=[0.95, 0.0]),
            layer_types=["sliding_attention", "full_attention"],
        ),
    ),
    "qwen3_5_text": ("Qwen3_5TextConfig", {**_DELTA, **_HYBRID}),
    "qwen3_next": ("Qwen3NextConfig", {**_DELTA, **_HYBRID, **_EXPERTS, "shared_expert_intermediate_size": 16}),
    "lfm2": ("Lfm2Config", dict(layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False)),
    "granitemoehybrid": (
        "GraniteMoeHybridConfig",
        {**_MAMBA, "layer_types": ["mamba", "attention"], "num_local_experts": 0, "logits_scaling": 4.0},
    ),
    "falcon_h1": ("FalconH1Config", _MAMBA),
    "mamba2": ("Mamba2Config", dict(state_size=8, num_heads=4, head_dim=16, n_groups=1, chunk_size=8)),
    "rwkv": ("RwkvConfig", dict(attention_hidden_size=32)),
}


def config_of(family: str, **changes: Any) -> Any:
    import transformers

    settings: dict[str, Any] = {**SIZES, "vocab_size": len(WORDS) + 4}
    if family == "gpt_neox":
        settings.pop("num_key_value_heads")
        return transformers.GPTNeoXConfig(**settings, **changes)
    kind, more = _FAMILIES[family]
    return getattr(transformers, kind)(**{**settings, **more, **changes})


def reference(folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """The same model in transformers."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True).eval()


# Headers of GGUF files, field by field.


def number(value: int, form: str = "Q") -> bytes:
    return struct.pack(f"<{form}", value)


def entry(key: str, kind: int, value: bytes) -> bytes:
    return number(len(key)) + key.encode() + number(kind, "I") + value


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


def made(entries: list[bytes], tensors: bytes = b"", count: int = 0) -> bytes:
    return b"GGUF" + number(3, "I") + number(count) + number(len(entries)) + b"".join(entries) + tensors
