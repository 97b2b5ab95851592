"""The models that there are for one data folder, as one value for the command and the window. Light to
import; app.node.models.survey finds it out.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.models.catalogue import full_name
from app.models.shelf import Partial, locate
from app.node.data.home import model_folder, model_mark
from engines.contract import EngineError
from engines.models.needs import Dtype, Fit, MemoryRoom


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """What one model learned here: HOME/models/NAME-MARK. It stays when the model itself is deleted."""

    folder: str
    bytes: int
    rounds: int
    round_s: float | None = None
    """Mean seconds of a round so far, on this computer; None before the first."""
    answer_s: float | None = None
    """Seconds for an answer in its first look on this computer; None before that."""
    answers: int = 0
    """How many it has given there, and whether the look is over."""
    placed: bool = False
    begins: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    """Families that it can learn from, and those that are too hard so far."""
    best: int | None = None
    """The best-measured round; None before the second measurement."""


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
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
    parameters: int = 0
    max_tokens: int = 0
    learning: int = 0
    """Bytes of memory that it wants to learn in: the one figure that is shown."""
    fit: Fit | None = None
    commit: str = ""
    partial: Partial | None = None
    training: Training | None = None
    round_s: tuple[float, float] | None = None
    """The least and the most seconds of a round here, the same once one was played; None where no one can
    tell."""
    look_s: tuple[float, float] | None = None
    """The same until its first look is over; None where there is none to come."""
    recommended: bool = False


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """`orphans` are trainings whose model is not here any more."""

    models: tuple[ModelEntry, ...]
    orphans: tuple[Training, ...]
    disk_free: int
    hub_bytes: int
    training_bytes: int
    memory: MemoryRoom
    dtype: Dtype

    def find(self, name: str) -> ModelEntry | None:
        return next((model for model in self.models if model.name == name), None)


def history_of(home: Path, name: str) -> Path | None:
    """Where the training of the model of that name is, or will be; None where the model itself is not here."""
    name = full_name(name)
    try:
        folder = locate(name, home, make=False)
        return model_folder(home, folder.name if Path(name).is_absolute() else name, model_mark(folder))
    except (EngineError, OSError):
        return None
