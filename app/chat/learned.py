"""Finds and loads the newest checkpoint of a model in the data folder.

Only reads, and takes no lock on the folder. If a node replaces the files meanwhile, it looks them up again."""

from __future__ import annotations

import time
from hashlib import sha256
from pathlib import Path

import msgspec

from app.node.data.home import model_mark
from app.node.history import checkpoint
from app.node.history.checkpoint import CheckpointError
from app.node.record.state import NodeState
from engines.contract import AdapterError, Engine

READ_ATTEMPTS = 6
"""Maximum attempts to read a checkpoint. A round takes longer than reading one, so the second attempt nearly
always works."""
_PAUSE_S = 0.15  # seconds; a node replaces a checkpoint within a few milliseconds
_ADAPTER_CONFIG = "adapter_config.json"


class _Rank(msgspec.Struct):
    r: int


class Checkpoints:
    """The checkpoints of one model below the data folder `home`, of its puzzles or of the skill of the question
    set with the mark `skill`."""

    def __init__(self, home: Path, model: Path, skill: str = "") -> None:
        self._home, self._mark, self._skill = home, model_mark(model), skill
        self._loaded: tuple[Path, str] | None = None

    @property
    def mark(self) -> str:
        """The hash of the loaded checkpoint's state file, which has those of its other files; "" without
        one."""
        return self._loaded[1] if self._loaded is not None else ""

    def rank(self) -> int | None:
        """Returns the LoRA rank of the newest checkpoint; None if no checkpoint exists or it does not record
        the rank."""
        for folder in self._folders():
            try:
                return msgspec.json.decode((folder / _ADAPTER_CONFIG).read_bytes(), type=_Rank).r
            except (OSError, msgspec.MsgspecError):
                continue
        return None

    def refresh(self, engine: Engine, known: NodeState | None) -> NodeState | None:
        """Loads the adapter of the newest complete checkpoint into the engine and returns that checkpoint's
        state. Returns `known` if it is loaded already, None if no checkpoint exists. Raises AdapterError."""
        refusal: Exception | None = None
        for _ in range(READ_ATTEMPTS):
            refusal = None
            for folder in self._folders():
                try:
                    told_apart = folder, sha256((folder / checkpoint.STATE_FILE).read_bytes()).hexdigest()
                    if told_apart == self._loaded:
                        return known
                    state = checkpoint.read(folder, self._mark)
                    engine.load(folder)
                except (CheckpointError, AdapterError, OSError) as error:
                    refusal = refusal or error
                    continue
                self._loaded = told_apart
                return state
            if refusal is None:
                return None
            time.sleep(_PAUSE_S)
        raise AdapterError(
            f"What was learned can't be read ({str(refusal).rstrip('.')}): start learning once, which looks "
            "after damaged files, and ask again."
        )

    def forget_loaded(self) -> None:
        """Call this when something else was loaded into the engine."""
        self._loaded = None

    def _folders(self) -> list[Path]:
        return checkpoint.of_model(self._home, self._mark, self._skill)
