"""shoal.json: what a model's maker recommends for training it here. Optional; every value has a default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from engines.contract import EngineError

FILE = "shoal.json"


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to begin and how fast to learn.

    `families` maps a puzzle family to the level where training and probing start; empty means all families at
    level 0. `max_tokens` is the length limit of an answer, `groups` the questions a round, `rank` LoRA's rank
    (None: the engine's own choice). The defaults are for models of 0.5 to 3 billion parameters; smaller ones
    learn faster.
    """

    families: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=8192)] = 96
    learning_rate: Annotated[float, msgspec.Meta(gt=0, le=0.1)] = 3e-5
    rank: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None
    groups: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8


SMALL = ModelSettings(max_tokens=64, learning_rate=1e-4, rank=16)
_SMALL_BYTES = 400 * 10**6
"""The size of weights up to which a model is small; they have two bytes a parameter or four."""


def read_settings(folder: Path) -> ModelSettings:
    """The model's shoal.json, or what suits its size. Raises EngineError for unknown or bad ones."""
    file = folder / FILE
    if not file.is_file():
        weights = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        return SMALL if 0 < weights < _SMALL_BYTES else ModelSettings()
    try:
        return msgspec.json.decode(file.read_bytes(), type=ModelSettings)
    except (OSError, msgspec.MsgspecError) as error:
        raise EngineError(
            f"{FILE} of the model in {folder} is wrong ({error}): correct or delete it."
        ) from error
