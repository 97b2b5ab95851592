"""A trained model in the formats of other programs: PEFT, llama.cpp and Ollama, MLX, transformers.

Every export is a folder that has its name only when all of it is there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

import msgspec
import numpy as np
from safetensors.numpy import save_file

from engines.contract import AdapterError, EngineError, Kind
from engines.files import flush
from engines.models import lora
from engines.models.checkpoint import ADAPTER, ADAPTER_CONFIG, OPTIMIZER_STATE, OptimizerState
from engines.models.export import merge, modelfile
from engines.models.folder import Folder, fingerprint, open_folder
from engines.models.gguf import adapter as gguf_adapter
from engines.models.gguf import gguf
from engines.models.lora import Lora

FORMATS = ("peft", "gguf", "mlx", "merged", "merged-gguf")
MLX_ADAPTER = "adapters.safetensors"
LORA_FILE, MODEL_FILE, BASE_FILE, MODELFILE = "adapter.gguf", "model.gguf", "base.gguf", "Modelfile"
_NOTHING = 2**20


@dataclass(frozen=True)
class ExportOrder:
    """What to export: the adapter in the PEFT folder `adapter`, trained on the model in `base`.

    `kind` is the number format of GGUF weights; `with_base` puts the base beside a GGUF adapter. `files` are
    texts that come along, `system` the instruction it was trained with, `about` goes into GGUF headers."""

    format: str
    base: Path
    adapter: Path
    kind: Kind = "f16"
    with_base: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    system: str | None = None
    about: Mapping[str, str] = field(default_factory=dict)


def check_target(to: Path) -> None:
    """Raises EngineError where something is in the way."""
    if to.is_dir() and not any(to.iterdir()):
        return
    if to.exists() or to.is_symlink():
        raise EngineError(f"{to} is there already: choose a folder that doesn't exist or is empty.")


def write(order: ExportOrder, to: Path, progress: Callable[[float], None] | None = None) -> None:
    """Makes the folder `to`. Raises EngineError, one sentence, and leaves nothing behind then."""
    check_target(to)
    model = open_folder(order.base)
    adapter = lora.read(order.adapter)
    adapter.check(merge.shapes(model))
    _check_base(order.adapter, model)
    with _staged(to) as place:
        _FORMATS[order.format](order, model, adapter, place, progress or _silent)
        with merge.saying(to):
            for name, text in order.files.items():
                (place / name).write_text(text, "utf-8")


def _check_base(adapter: Path, model: Folder) -> None:
    """Where the adapter says which weights it was trained on, they must be these: another model of the same
    shape would take it and talk nonsense. Raises AdapterError."""
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
    with merge.saying(to):
        for name in (ADAPTER, ADAPTER_CONFIG):
            shutil.copyfile(order.adapter / name, to / name)


def _gguf(
    order: ExportOrder, model: Folder, adapter: Lora, to: Path, progress: Callable[[float], None]
) -> None:
    gguf_adapter.write(order.adapter, gguf.architecture(model), to / LORA_FILE)
    if order.with_base:
        gguf.write(order.base, to / BASE_FILE, order.kind, progress)
    text = modelfile.write(model, f"./{BASE_FILE}", adapter=f"./{LORA_FILE}", system=order.system)
    with merge.saying(to):
        (to / MODELFILE).write_text(text, "utf-8")


def _merged_gguf(
    order: ExportOrder, model: Folder, adapter: Lora, to: Path, progress: Callable[[float], None]
) -> None:
    gguf.write(order.base, to / MODEL_FILE, order.kind, progress, about=order.about, adapter=adapter)
    with merge.saying(to):
        (to / MODELFILE).write_text(modelfile.write(model, f"./{MODEL_FILE}", system=order.system), "utf-8")
        for file in merge.legal(order.base):
            shutil.copyfile(file, to / file.name)


def _merged(
    order: ExportOrder, model: Folder, adapter: Lora, to: Path, progress: Callable[[float], None]
) -> None:
    merge.write(order.base, adapter, to, progress)


def _mlx(order: ExportOrder, model: Folder, adapter: Lora, to: Path, progress: Callable[[float], None]) -> None:
    """mlx-lm's layout: A and B transposed, one rank and one scale for all layers."""
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
    with merge.saying(to):
        save_file(tensors, str(to / MLX_ADAPTER), {"format": "mlx"})
        (to / ADAPTER_CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(settings)))


def _inside(layer: str) -> str:
    """A layer's name within its block, as mlx-lm's keys are: `self_attn.q_proj`."""
    _, _, rest = layer.partition(".layers.")
    return rest.partition(".")[2] or layer


_FORMATS = {"peft": _peft, "gguf": _gguf, "mlx": _mlx, "merged": _merged, "merged-gguf": _merged_gguf}


@contextmanager
def _staged(to: Path) -> Iterator[Path]:
    """A folder beside `to` that takes its name in the end, or is gone."""
    place = to.with_name(f".writing-{os.getpid()}-{token_hex(4)}-{to.name}")
    with merge.saying(to):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir()
    try:
        merge.check_room(to, _NOTHING)
        yield place
        with merge.saying(to):
            for file in place.rglob("*"):
                flush(file)
            if to.is_dir():
                to.rmdir()  # empty, or it fails and nothing is lost
            place.rename(to)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _silent(share: float) -> None:
    pass
