"""Tiny models made from nothing, as transformers saves them, with a tokenizer of whole words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.engines.small_models import MakeModel, config_of, tokenizer

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """`make_model(family, seed=0, **config)` gives the folder of a random model; the same arguments, the same
    one."""
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
