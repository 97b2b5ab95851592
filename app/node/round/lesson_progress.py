"""A peer lesson in progress: its trials, and what is saved of it on the way.

A lesson takes from minutes to half an hour, and a computer that learns when it is idle rarely has that at one
stretch. So after every few steps the adapter, the answers it teaches and the trial before it are saved, as a
checkpoint in the folder `lesson` of the model; a node that was paused or killed continues from there. A lesson
in progress belongs to the checkpoint of the round before it, and is void after any other one. The trial after
the latest lesson is saved beside it: it serves as the one before the next.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from app.common import files
from app.learning import peer_lesson
from app.learning.peer_lesson import PeerLesson
from app.learning.placement import FamilyTrial
from app.node.history import checkpoint
from app.node.record.errors import DiskFullError, raising_disk_full
from app.node.record.state import NodeState
from app.node.trainer.link import TrainerLink
from app.sapo.groups import GroupRecord
from engines.contract import AdapterError

_LESSON_FILE, _TRIAL_FILE = "lesson.json", "trial.json"


class LessonTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What one trial measured: right answers in the lesson's families and in the other active ones, and the
    perplexity of everyday replies (None for a model that does not talk)."""

    lesson: tuple[FamilyTrial, ...]
    own: tuple[FamilyTrial, ...]
    everyday: float | None
    untaught: float | None
    """The perplexity before the first round, if it is known."""
    round: int
    first: int
    """The number of its first question in each family."""


class LessonInProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A peer lesson, the trial `before` it, and the groups that its answers are from. `steps` and `seconds`:
    the optimiser steps taken so far, and the time they took."""

    lesson: PeerLesson
    before: LessonTrial
    groups: tuple[GroupRecord, ...]
    steps: int = 0
    seconds: float = 0.0


def harmed(before: LessonTrial, after: LessonTrial) -> bool:
    """Whether a lesson cost too much in the other active families or in everyday language."""
    return peer_lesson.lesson_harmed(before.own, after.own, (before.everyday, after.everyday), after.untaught)


def language_harmed(before: LessonTrial, everyday: float | None) -> bool:
    """Whether a lesson cost too much everyday language. `everyday`: perplexity of everyday replies after it."""
    return peer_lesson.lesson_harmed([], [], (before.everyday, everyday), before.untaught)


def why_not_kept(before: LessonTrial, after: LessonTrial) -> str:
    """Returns the sentence that says why a lesson was not kept."""
    if not harmed(before, after):
        return "A lesson from others' answers didn't help, so your model is as it was before it."
    if language_harmed(before, after.everyday):
        return "A lesson from others' answers cost everyday language, so your model is as it was before it."
    return "A lesson from others' answers cost too much of the rest, so your model is as it was before it."


class LessonFolder:
    """Saves the lesson in progress of the model with this `mark` (app.node.data.home.model_mark)."""

    def __init__(self, model_folder: Path, home: Path, mark: str) -> None:
        self._root, self._home, self._mark = model_folder / checkpoint.LESSON_FOLDER, home, mark

    async def save(self, link: TrainerLink, state: NodeState, lesson: LessonInProgress) -> None:
        """Saves the trainer's adapter and the lesson; `state` is that of the round before it. Does nothing if
        the disk is full. Raises TrainerDied."""
        try:
            with raising_disk_full(self._home):
                unfinished = checkpoint.begin(self._root, lesson.steps)
                await link.save(unfinished)
                (unfinished / _LESSON_FILE).write_bytes(msgspec.json.encode(lesson))
                checkpoint.seal(unfinished, self._mark, state)
                self._discard(checkpoint.checkpoint_folder(self._root, lesson.steps))
                checkpoint.publish(unfinished, self._root, lesson.steps)
        except DiskFullError:
            checkpoint.sweep(self._root)

    async def resume(self, link: TrainerLink, state: NodeState) -> LessonInProgress | None:
        """Loads the lesson that was interrupted after `state` was saved, with its adapter; None if there is
        none. Lessons that belong to other states are deleted. Raises TrainerDied."""
        checkpoint.sweep(self._root)
        for folder in checkpoint.newest_first(self._root):
            with contextlib.suppress(checkpoint.CheckpointError, AdapterError, OSError, msgspec.MsgspecError):
                saved = checkpoint.read(folder, self._mark)
                if (saved.round, saved.saved_at) == (state.round, state.saved_at):
                    content = (folder / _LESSON_FILE).read_bytes()
                    lesson = msgspec.json.decode(content, type=LessonInProgress)
                    await link.load(folder)
                    return lesson
            self._discard(folder)
        return None

    def end(self) -> None:
        """Deletes the lesson in progress."""
        checkpoint.sweep(self._root)
        self._discard(*checkpoint.newest_first(self._root))

    def keep_trial(self, after: LessonTrial | None) -> None:
        """Saves the trial after a lesson; None deletes it."""
        with contextlib.suppress(DiskFullError), raising_disk_full(self._home):
            self._root.mkdir(parents=True, exist_ok=True)
            files.write_json(self._root / _TRIAL_FILE, after)

    def latest_trial(self) -> LessonTrial | None:
        """Returns the trial after the latest lesson, if that was kept."""
        return files.read_json(self._root / _TRIAL_FILE, LessonTrial)

    @staticmethod
    def _discard(*folders: Path) -> None:
        for folder in folders:
            if folder.is_dir():
                files.discard(folder)
