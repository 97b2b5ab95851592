"""A base model with its adapter added to the weights: a model folder like the base's, for any program."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from engines.contract import EngineError
from engines.files import free
from engines.models.folder import Folder, open_folder, open_weights
from engines.models.lora import Lora

_BESIDE = (
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "model.safetensors.index.json",
    "shoal.json",
)
_LEGAL = ("LICENSE*", "LICENCE*", "NOTICE*", "USE_POLICY*")
_SPARE = 16 * 2**20


def write(base: Path, adapter: Lora, to: Path, progress: Callable[[float], None] | None = None) -> None:
    """Writes the merged model into the folder `to`, in the number format and the files of the base.

    The sum is made in fp32 and rounded once. Memory: one weight file of the base. Raises AdapterError where the
    adapter is of another model, EngineError where the base is damaged or the disk is full."""
    model = open_folder(base)
    adapter.check(shapes(model))
    check_room(to, model.weight_bytes + _SPARE)
    for number, file in enumerate(model.files, 1):
        merged = _merged(file, adapter)
        with saying(to):
            to.mkdir(parents=True, exist_ok=True)
            _save(merged, to / file.name)
        if progress is not None:
            progress(number / len(model.files))
    with saying(to):
        (to / "config.json").write_text(json.dumps(config(model.config), indent=2))
        for source in (*(base / name for name in _BESIDE), *legal(base)):
            if source.is_file():
                shutil.copyfile(source, to / source.name)


def legal(base: Path) -> list[Path]:
    """The files in which a model's maker says who may use it."""
    return [file for pattern in _LEGAL for file in sorted(base.glob(pattern)) if file.is_file()]


def config(settings: Mapping[str, Any]) -> dict[str, Any]:
    """config.json in which programs older than transformers 5 find the rotary base too: mlx-lm's Qwen2 takes
    its own default, silently, where it stands in `rope_parameters` alone."""
    rope = settings.get("rope_parameters") or {}
    theta = rope.get("rope_theta")
    return dict(settings) if theta is None else {"rope_theta": theta, **settings}


def check_room(folder: Path, needed: int) -> None:
    """Raises EngineError unless the disk that will hold `folder` has that many bytes free."""
    there = free(folder.absolute())
    if there < needed:
        raise EngineError(
            f"{folder.name} needs {-(-needed // 2**20)} MB and {there >> 20} MB are free in {folder.parent}: "
            "free up some space or choose another folder."
        )


@contextmanager
def saying(to: Path) -> Iterator[None]:
    """Turns what the system says while writing into a sentence."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise EngineError(
            f"{to.name} couldn't be written to {to.parent} ({why}): free some space or choose another folder."
        ) from error


def shapes(model: Folder) -> dict[str, tuple[int, ...]]:
    """Of every matrix in the base, by its layer."""
    found: dict[str, tuple[int, ...]] = {}
    for file in model.files:
        with open_weights(file) as tensors:
            for name in tensors.keys():  # noqa: SIM118 - not a dict
                shape = tuple(tensors.get_slice(name).get_shape())
                if name.endswith(".weight") and len(shape) == 2:
                    found[name.removesuffix(".weight")] = shape
    return found


def _merged(file: Path, adapter: Lora) -> dict[str, Any]:
    import torch

    merged = {}
    with open_weights(file) as tensors:
        for name in tensors.keys():  # noqa: SIM118 - not a dict
            tensor = tensors.get_tensor(name)
            layer = name.removesuffix(".weight")
            if layer in adapter.pairs:
                delta = torch.from_numpy(adapter.delta(layer))
                tensor = (tensor.float() + delta).to(tensor.dtype)
            merged[name] = tensor
    return merged


def _save(tensors: Mapping[str, Any], file: Path) -> None:
    from safetensors.torch import save_file

    save_file(dict(tensors), str(file), {"format": "pt"})
