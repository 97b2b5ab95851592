"""Exports a trained model in the formats of other programs: PEFT, llama.cpp and Ollama, MLX, transformers. The
export folder gets its name only when it is complete."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from app.models import modelfile
from engines.contract import AdapterError, EngineError, Kind
from engines.files import flush, free_bytes
from engines.models import lora
from engines.models.folder import Folder, checked_model_file, fingerprint, open_folder, open_weights
from engines.models.gguf import gguf
from engines.models.gguf import tensors as gguf_adapter
from engines.models.lora import ADAPTER, ADAPTER_CONFIG, OPTIMIZER_STATE, Lora, OptimizerState

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
_SPARE = 16 * 2**20  # bytes for the small files beside the weights


def write_merged(base: Path, adapter: Lora, to: Path, progress: Callable[[float], None] | None = None) -> None:
    """Writes the base model with the adapter merged into its weights to the folder `to`, in the number format
    and file layout of the base. The sum is computed in fp32 and rounded once. Needs memory for one weight file.
    Raises AdapterError if the adapter belongs to another model, EngineError if the base is damaged or the disk
    is full."""
    model = open_folder(base)
    adapter.check(shapes(model))
    check_room(to, model.weight_bytes + _SPARE)
    for number, file in enumerate(model.files, 1):
        merged = _merged_tensor(file, adapter)
        with explaining_write_errors(to):
            to.mkdir(parents=True, exist_ok=True)
            _save(merged, to / file.name)
        if progress is not None:
            progress(number / len(model.files))
    with explaining_write_errors(to):
        (to / "config.json").write_text(json.dumps(portable_config(model.config), indent=2))
        for source in (*(base / name for name in _BESIDE), *licence_files(base)):
            if source.is_file():
                shutil.copyfile(checked_model_file(base, source), to / source.name)
        _name_inputs(to / "tokenizer_config.json")


def _name_inputs(settings: Path) -> None:
    """Adds the names of the model's inputs to tokenizer_config.json if they are missing; otherwise transformers
    adds `token_type_ids`, which `generate` refuses."""
    if settings.is_file():
        found = json.loads(settings.read_bytes())
        found.setdefault("model_input_names", ["input_ids", "attention_mask"])
        settings.write_text(json.dumps(found, indent=2, ensure_ascii=False), "utf-8")


def licence_files(base: Path) -> list[Path]:
    """Returns the files with the model's licence and terms."""
    return [file for pattern in _LEGAL for file in sorted(base.glob(pattern)) if file.is_file()]


def portable_config(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns config.json with the rotary base also at the top level, for programs older than transformers 5:
    mlx-lm's Qwen2 silently uses its own default if it is only in `rope_parameters`."""
    rope = settings.get("rope_parameters") or {}
    theta = rope.get("rope_theta")
    return dict(settings) if theta is None else {"rope_theta": theta, **settings}


def check_room(folder: Path, needed: int) -> None:
    """Raises EngineError unless the disk that will hold `folder` has `needed` bytes free."""
    there = free_bytes(folder.absolute())
    if there < needed:
        raise EngineError(
            f"{folder.name} needs {-(-needed // 2**20)} MB and {there >> 20} MB are free in {folder.parent}: "
            "free up some space or choose another folder."
        )


@contextmanager
def explaining_write_errors(to: Path) -> Iterator[None]:
    """Converts write errors in the block into an EngineError that says what to do."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise EngineError(
            f"{to.name} couldn't be written to {to.parent} ({why}): free some space or choose another folder."
        ) from error


def shapes(model: Folder) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every matrix of the base model by layer name."""
    found: dict[str, tuple[int, ...]] = {}
    for file in model.files:
        with open_weights(file) as tensors:
            for name in tensors.keys():  # noqa: SIM118 - not a dict
                shape = tuple(tensors.get_slice(name).get_shape())
                if name.endswith(".weight") and len(shape) == 2:
                    found[name.removesuffix(".weight")] = shape
    return found


def _merged_tensor(file: Path, adapter: Lora) -> dict[str, Any]:
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


MLX_ADAPTER = "adapters.safetensors"
LORA_FILE, MODEL_FILE, MODELFILE = "adapter.gguf", "model.gguf", "Modelfile"
_NOTHING = 2**20  # bytes; a link takes less


@dataclass(frozen=True)
class ExportOrder:
    """An export to perform: the adapter in the PEFT folder `adapter`, trained on the model in `base`. `kind` is
    the number format of GGUF weights. `files` are extra text files by name, `system` is the system message it
    was trained with, and `about` holds extra GGUF header values."""

    format: str
    base: Path
    adapter: Path
    kind: Kind = "f16"
    files: Mapping[str, str] = field(default_factory=dict)
    system: str | None = None
    about: Mapping[str, str] = field(default_factory=dict)


def check_target(to: Path) -> None:
    """Raises EngineError if `to` exists and is not an empty folder."""
    if to.is_dir() and not any(to.iterdir()):
        return
    if to.exists() or to.is_symlink():
        raise EngineError(f"{to} is there already: choose a folder that doesn't exist or is empty.")


def write(order: ExportOrder, to: Path, progress: Callable[[float], None] | None = None) -> None:
    """Writes the export to the folder `to`. Raises EngineError, one sentence, and leaves nothing behind
    then."""
    check_target(to)
    model = open_folder(order.base)
    adapter = lora.read(order.adapter)
    adapter.check(shapes(model))
    _check_base(order.adapter, model)
    with _staged(to) as place:
        FORMATS[order.format](order, model, adapter, place, progress or _silent)
        with explaining_write_errors(to):
            for name, text in order.files.items():
                (place / name).write_text(text, "utf-8")


def _check_base(adapter: Path, model: Folder) -> None:
    """Raises AdapterError if the adapter records that it was trained on other weights: a different model of the
    same shape would accept it and produce nonsense."""
    try:
        state = msgspec.json.decode((adapter / OPTIMIZER_STATE).read_bytes(), type=OptimizerState)
    except FileNotFoundError:
        return
    except (OSError, msgspec.MsgspecError) as error:
        raise AdapterError(f"{OPTIMIZER_STATE} in {adapter} is damaged: take another copy.") from error
    if state.base != fingerprint(model):
        raise AdapterError(f"The adapter was trained on another model: give {state.model}.")


def _peft(
    order: ExportOrder, model: Folder, adapter: Lora, to: Path, progress: Callable[[float], None]
) -> None:
    with explaining_write_errors(to):
        for name in (ADAPTER, ADAPTER_CONFIG):
            shutil.copyfile(checked_model_file(order.adapter, order.adapter / name), to / name)


def _gguf(
    order: ExportOrder, model: Folder, adapter: Lora, to: Path, progress: Callable[[float], None]
) -> None:
    gguf_adapter.write(order.adapter, gguf.architecture(model), to / LORA_FILE)


def _ollama(
    order: ExportOrder, model: Folder, adapter: Lora, to: Path, progress: Callable[[float], None]
) -> None:
    gguf.write(order.base, to / MODEL_FILE, order.kind, progress, about=order.about, adapter=adapter)
    with explaining_write_errors(to):
        (to / MODELFILE).write_text(
            modelfile.modelfile_text(model, f"./{MODEL_FILE}", system=order.system),
            "utf-8",
        )
        for file in licence_files(order.base):
            shutil.copyfile(checked_model_file(order.base, file), to / file.name)


def _merged(
    order: ExportOrder, model: Folder, adapter: Lora, to: Path, progress: Callable[[float], None]
) -> None:
    write_merged(order.base, adapter, to, progress)


def _mlx(order: ExportOrder, model: Folder, adapter: Lora, to: Path, progress: Callable[[float], None]) -> None:
    """Writes the adapter in mlx-lm's layout: A and B transposed, one rank and one scale for all layers."""
    ranks = {pair.rank for pair in adapter.pairs.values()}
    if len(ranks) != 1:
        raise AdapterError("The adapter has layers of several ranks, and MLX knows one: export it as peft.")
    tensors = {}
    for layer, pair in adapter.pairs.items():
        tensors[f"{layer}.lora_a"] = np.ascontiguousarray(pair.a.T)
        tensors[f"{layer}.lora_b"] = np.ascontiguousarray(pair.b.T)
    rank = ranks.pop()
    settings = {
        "fine_tune_type": "lora",
        "num_layers": int(model.config["num_hidden_layers"]),
        "lora_parameters": {
            "rank": rank,
            "scale": adapter.alpha / rank,
            "dropout": 0.0,
            "keys": sorted({_inside(layer) for layer in adapter.pairs}),
        },
    }
    with explaining_write_errors(to):
        save_file(tensors, str(to / MLX_ADAPTER), {"format": "mlx"})
        (to / ADAPTER_CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(settings)))


def _inside(layer: str) -> str:
    """Returns a layer's name within its block, as in mlx-lm's keys: `self_attn.q_proj`."""
    _, _, rest = layer.partition(".layers.")
    return rest.partition(".")[2] or layer


FORMATS = {"ollama": _ollama, "gguf": _gguf, "peft": _peft, "mlx": _mlx, "merged": _merged}


@contextmanager
def _staged(to: Path) -> Iterator[Path]:
    """Yields a temporary folder beside `to`, which is renamed to `to` at the end, or deleted after an error."""
    place = to.with_name(f".writing-{os.getpid()}-{token_hex(4)}-{to.name}")
    with explaining_write_errors(to):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir()
    try:
        check_room(to, _NOTHING)
        yield place
        with explaining_write_errors(to):
            for file in place.rglob("*"):
                flush(file)
            if to.is_dir():
                to.rmdir()  # only if empty, so nothing is lost
            place.rename(to)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _silent(share: float) -> None:
    pass
