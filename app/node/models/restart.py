"""What an owner can undo of a model's learning: start over, or go back to its best. Both need exclusive use of
the data folder."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from app.common import files
from app.node.history import checkpoint, history
from app.node.history.store import Store, StoreError
from app.node.record.errors import NodeError, room_on_disk


def start_over(home: Path, folder: Path) -> None:
    """Deletes everything the model learned here, its history too. Raises NodeError."""
    with room_on_disk(home):
        if folder.is_dir():
            files.discard(folder)


def back_to_best(home: Path, folder: Path, model: str) -> int:
    """Puts the model back to its best-measured round, which is returned; later rounds are deleted. `model` is
    its mark (app.node.data.home.model_mark). Raises NodeError. If killed on the way, the model is at a later
    round than the best, never damaged."""
    best, root = folder / checkpoint.BEST, folder / "checkpoints"
    if not best.is_dir():
        raise NodeError("There is no best round yet: Shoal picks one at the second measurement.")
    try:
        round_ = checkpoint.read(best, model).round
    except (checkpoint.CheckpointError, PermissionError) as error:
        raise NodeError(f"The best round can't be read ({error}). Nothing was changed.") from error
    with room_on_disk(home):
        safe = checkpoint.place(root, round_)
        if not safe.exists():
            unfinished = checkpoint.begin(root, round_)
            shutil.copytree(best, unfinished, dirs_exist_ok=True)
            for path in (*unfinished.rglob("*"), unfinished):
                files.flush(path)
            unfinished.rename(safe)
            files.flush(root)
        for later in checkpoint.newest_first(root):
            if later.name > safe.name:
                files.discard(later)
        with suppress(StoreError):  # the node says what is wrong with it
            store = Store(folder / history.FILE)
            store.forget_after(round_)
            store.close()
    return round_
