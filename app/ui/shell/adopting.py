"""A window that is opened over what the command line learned goes on with that very model."""

from __future__ import annotations

import contextlib
from pathlib import Path

from app.models.catalogue import STARTER
from app.node.data.library import history_of
from app.node.history import history
from app.ui.view.settings import Choices


def adopt(home: Path, choices: Choices) -> None:
    """Where no one ever learned from a window, and not with the starter either: the model that learned last is
    the chosen one. So every page shows the same model, and `Start learning` goes on with it."""
    if choices.memory.asked or choices["model"] != STARTER:
        return
    starter, newest = history_of(home, STARTER), history.newest(home)
    if newest is None or (starter is not None and starter.is_dir()):
        return
    name = history.model_of(newest)
    if name and history_of(home, name) == newest:
        with contextlib.suppress(OSError, ValueError):
            choices.put("model", name)
