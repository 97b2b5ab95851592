"""What a model has learned here: the newest checkpoint in the data folder.

Read-only, and without the folder's lock, so a node may be learning meanwhile and replacing the very files; they
are then looked up again."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from app.node.data.home import model_mark
from app.node.history import checkpoint
from app.node.history.checkpoint import CheckpointError
from app.node.record.state import NodeState
from engines.contract import AdapterError, Engine

READ_ATTEMPTS = 6
"""A round takes longer than reading a checkpoint does, so more than two are hardly ever needed."""
_PAUSE_S = 0.15
_ADAPTER_CONFIG = "adapter_config.json"


class _Rank(msgspec.Struct):
    r: int


class SafePoints:
    """The checkpoints of one model below `home`."""

    def __init__(self, home: Path, model: Path) -> None:
        self._models, self._mark = home / "models", model_mark(model)
        self._loaded: tuple[Path, int] | None = None

    def rank(self) -> int | None:
        """LoRA's rank in the newest checkpoint; None without one, or if it does not record the rank."""
        for folder in self._newest_first():
            try:
                return msgspec.json.decode((folder / _ADAPTER_CONFIG).read_bytes(), type=_Rank).r
            except (OSError, msgspec.MsgspecError):
                continue
        return None

    def refresh(self, engine: Engine, known: NodeState | None) -> NodeState | None:
        """The state of the newest whole checkpoint, after loading its adapter into the engine; `known` if it
        has not changed. None if nothing was learned yet. Raises AdapterError."""
        refusal: Exception | None = None
        for _ in range(READ_ATTEMPTS):
            refusal = None
            for folder in self._newest_first():
                try:
                    told_apart = (folder, (folder / checkpoint.STATE_FILE).stat().st_mtime_ns)
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

    def _newest_first(self) -> list[Path]:
        """The folders of this model, whatever it was called, the one that was written last first."""
        found = [
            checkpoint.newest_first(folder / "checkpoints") for folder in self._models.glob(f"*-{self._mark}")
        ]
        return max(found, key=lambda one: _written(one), default=[])


def _written(folders: list[Path]) -> float:
    try:
        return folders[0].stat().st_mtime if folders else 0.0
    except OSError:  # replaced meanwhile
        return 0.0
