"""The list of a data folder's models, as one value for the command and the window. Light to import;
app.node.models.survey collects it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.models.catalogue import stored_name
from app.models.fit import Dtype, Fit, MemoryRoom
from app.models.shelf import PartialDownload, locate
from app.node.data.home import model_folder, model_mark
from engines.contract import EngineError


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """A model's training on this computer, from HOME/models/NAME-MARK. It stays when the model itself is
    deleted."""

    folder: str
    bytes: int
    rounds: int
    round_s: float | None = None
    """Mean seconds of a round on this computer; None before the first round."""
    begins: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    """Families that are still too hard for it; `begins` has those that it can train on."""
    best: int | None = None
    """Round of the best measurement; None before the second measurement."""


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `name` is an argument of --model. `bytes`: size on disk, or of the download. `fit`: whether it
    can run here. `partial`: an unfinished download."""

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
    """Name of the other program whose download this is; empty if it is not one."""
    problem: str = ""
    """Why the model cannot be trained here; empty if it can."""
    parameters: int = 0
    max_tokens: int = 0
    learning: int = 0
    """Bytes of memory needed for training; the one figure that is shown."""
    fit: Fit | None = None
    commit: str = ""
    partial: PartialDownload | None = None
    training: Training | None = None
    round_s: float | None = None
    """Seconds of a round: the mean of those played here, else what is usual; None if unknown."""
    recommended: bool = False


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """`orphans` are trainings whose model is no longer here."""

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
    """Returns the folder of the named model's training, existing or not; None if the model itself is not
    here.
    """
    name = stored_name(name)
    try:
        folder = locate(name, home, make=False)
        return model_folder(home, folder.name if Path(name).is_absolute() else name, model_mark(folder))
    except (EngineError, OSError):
        return None
