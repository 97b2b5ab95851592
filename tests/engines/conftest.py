"""Tiny models made from nothing, as transformers saves them, with a tokenizer of whole words."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")

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


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


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


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """`make_model(family, seed=0, **config)` gives the folder of a random model; the same arguments, the same one."""
    made: dict[str, Path] = {}

    def make(family: str = "qwen2", seed: int = 0, **changes: Any) -> Path:
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        logging.disable_progress_bar()
        key = repr((family, seed, sorted(changes.items(), key=str)))
        if key not in made:
            torch.manual_seed(seed)
            model = AutoModelForCausalLM.from_config(config_of(family, **changes))
            for name, parameter in model.named_parameters():
                if name.endswith("bias") or "norm" in name:
                    torch.nn.init.normal_(parameter, 1.0 if "norm" in name else 0.0, 0.2)
            made[key] = tmp_path_factory.mktemp(family)
            model.save_pretrained(made[key])
            tokenizer().save_pretrained(made[key])
        return made[key]

    return make


@pytest.fixture(scope="session")
def tiny(make_model: MakeModel) -> Path:
    return make_model("qwen2")


def reference(folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """The same model in transformers."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True).eval()
