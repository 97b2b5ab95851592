"""Finds where a node continues: the newest valid checkpoint, or the one before it, or the beginning. Nothing is
deleted."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.models.catalogue import title
from app.node.history import checkpoint
from app.node.history.history import FILE as HISTORY
from app.node.history.history import model_of
from app.node.history.store import Store, StoreError
from app.node.record.errors import NodeError
from app.node.record.records import Probe
from app.node.record.state import NodeState
from app.node.trainer.link import TrainerLink
from app.sapo import curriculum
from app.sapo.questions import QUESTIONS_VERSION
from engines.contract import AdapterError


async def resume(
    link: TrainerLink, checkpoints: Path, model: str, fresh: NodeState
) -> tuple[NodeState, list[str]]:
    """Loads the newest valid checkpoint into the trainer. Returns the state to continue from, and sentences for
    the owner. Damaged checkpoints are renamed. Without a valid one the trainer keeps its new adapter and the
    state is `fresh`. Raises NodeError if a checkpoint cannot be read."""
    checkpoint.sweep(checkpoints)
    checkpoint.sweep_files(checkpoints.parent)
    sentences = []
    for folder in checkpoint.newest_first(checkpoints):
        try:
            state = checkpoint.read(folder, model)
            await link.load(folder)
        except PermissionError as error:
            raise NodeError(f"{folder} can't be read ({error.strerror}); nothing is lost.") from error
        except (checkpoint.CheckpointError, AdapterError) as error:
            aside = checkpoint.set_aside(folder)
            why = str(error).rstrip(".")
            sentences.append(f"The checkpoint {folder.name} can't be used ({why}). It is kept as {aside.name}.")
            continue
        if sentences:
            sentences.append(f"It continues from round {state.round}, the one before.")
        return state, [" ".join(sentences)] if sentences else []
    if sentences:
        sentences.append("No other one is left, so learning starts again from the beginning.")
    return fresh, [" ".join(sentences)] if sentences else []


def open_history(folder: Path) -> tuple[Store, list[str]]:
    """Opens the model's history. A damaged file is renamed and a new one is created. Returns the store, and
    sentences for the owner."""
    try:
        return Store(folder / HISTORY), []
    except StoreError as error:
        aside = set_history_aside(folder)
        sentence = f"The history can't be read ({error}). It is kept as {aside.name}, and a new one begins."
        return Store(folder / HISTORY), [sentence]


def set_history_aside(folder: Path) -> Path:
    """Renames the history with its side files. The store must be closed."""
    name = f"damaged-{time.strftime('%Y%m%d-%H%M%S')}-{time.monotonic_ns() % 1000:03d}-{HISTORY}"
    for suffix in ("-wal", "-shm", ""):
        with contextlib.suppress(FileNotFoundError):
            (folder / f"{HISTORY}{suffix}").rename(folder / f"{name}{suffix}")
    return folder / name


def with_families(progress: curriculum.Curriculum, levels: Mapping[str, int]) -> curriculum.Curriculum:
    """The curriculum for this run's families: known ones continue at their level, new ones start at their
    first."""
    known = {family.family: family for family in progress.families}
    begun = curriculum.start(levels)
    return curriculum.Curriculum(families=tuple(known.get(family.family, family) for family in begun.families))


def for_current_questions(state: NodeState) -> NodeState:
    """Returns the state adapted to this version's questions. Results with other versions say nothing about
    these, so each family keeps its level with an empty window, and the brake's windows are reset."""
    families = [msgspec.structs.replace(one, window=()) for one in state.curriculum.families]
    return msgspec.structs.replace(
        state,
        questions=QUESTIONS_VERSION,
        curriculum=curriculum.Curriculum(families=tuple(families)),
        vigil=msgspec.structs.replace(state.vigil, watched={}, rounds=0),
    )


def new_curve_sentence(last: Probe | None) -> str:
    """Returns a sentence about a history whose questions were of a different version."""
    sentence = "This version of Shoal has other puzzles, so the curve starts over."
    if last is None:
        return sentence
    return (
        f"{sentence} The one before ended at {last} after round {last.round}; it stays in the history. "
        "Some puzzles that are kept apart now were perhaps practised before."
    )


def other_models_sentence(folder: Path) -> str | None:
    """Returns a sentence about the model that this data folder trained before, for the first start of a new
    model; None if it trained no other."""
    found = [
        (checkpoints[0].stat().st_mtime, other.name, checkpoints[0].name)
        for other in (folder.parent.iterdir() if folder.parent.is_dir() else ())
        if other != folder and (checkpoints := checkpoint.newest_first(other / "checkpoints"))
    ]
    if not found:
        return None
    _, name, last = max(found)
    rounds = int(re.sub(r"\D", "", last))
    model = title(model_of(folder.parent / name)) or name
    return f"What {model} learned up to round {rounds} is safe. This model has a curve of its own."
