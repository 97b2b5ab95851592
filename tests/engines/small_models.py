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


def config_of(family: str, **changes: Any) -> Any:
    from transformers import GPTNeoXConfig, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

    kinds = {"qwen2": Qwen2Config, "qwen3": Qwen3Config, "llama": LlamaConfig, "mistral": MistralConfig}
    settings: dict[str, Any] = {**SIZES, "vocab_size": len(WORDS) + 4, **changes}
    if family == "gpt_neox":
        settings.pop("num_key_value_heads")
        return GPTNeoXConfig(**settings)
    if family == "qwen3":
        settings = {"head_dim": 12, **settings}
    return kinds[family](**settings)


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
