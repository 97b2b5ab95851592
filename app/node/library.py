"""What there is of models for one data folder, as one value for the command and the window. Light to
import; app.node.survey finds it out.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.node.home import model_folder, model_mark
from engines.contract import EngineError
from engines.models.catalogue import full_name
from engines.models.locate import locate
from engines.models.needs import Dtype, Fit, Memory
from engines.models.shelf import Partial


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """What one model learned here: HOME/models/NAME-MARK. It stays when the model itself is deleted."""

    folder: str
    bytes: int
    rounds: int
    round_s: float | None = None
    """Mean seconds of a round so far, on this computer; None before the first."""
    begins: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    """Families that it can learn from, and those that are too hard so far."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `name` is what --model takes. `bytes` lie on the disk, or would; `fit` says whether it can
    live here; `partial` is a download under way or cut short."""

    name: str
    title: str
    about: str = ""
    installed: bool = False
    local: bool = False
    folder: str = ""
    bytes: int = 0
    licence: str = ""
    licence_url: str = ""
    gated: str = ""
    chat: str = ""
    program: str = ""
    """Which other program has fetched it; `problem` says why it cannot learn here all the same."""
    problem: str = ""
    least: int = 0
    learning: int = 0
    fit: Fit | None = None
    commit: str = ""
    partial: Partial | None = None
    training: Training | None = None


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """`orphans` are trainings whose model is not here any more."""

    models: tuple[Model, ...]
    orphans: tuple[Training, ...]
    disk_free: int
    hub_bytes: int
    training_bytes: int
    memory: Memory
    dtype: Dtype

    def find(self, name: str) -> Model | None:
        return next((model for model in self.models if model.name == name), None)


def history_of(home: Path, name: str) -> Path | None:
    """Where the training of the model of that name is, or will be; None where the model itself is not here."""
    name = full_name(name)
    try:
        folder = locate(name, home, make=False)
        return model_folder(home, folder.name if Path(name).is_absolute() else name, model_mark(folder))
    except (EngineError, OSError):
        return None
