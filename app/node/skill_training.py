"""What training a skill adds to a training run: the skill lesson in parts, its best checkpoint, and the end of
rounds that bring nothing more. The rows aside decide all of it; the held-out ones are only measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app.common import files
from app.learning import skill_lesson
from app.learning.skill_lesson import Practice
from app.node.data.home import SKILL_FILE, SkillPlace
from app.node.healing import Healer
from app.node.history import checkpoint
from app.node.history.measured import keep_best
from app.node.record.records import Probe
from app.node.record.state import NodeState
from app.node.round import skills
from app.node.round.keeping import DiskPatience, save_again
from app.node.round.round import PlayedRound
from app.node.round.tools import RoundTools
from app.node.trainer.link import TrainerLink
from app.sapo.questions import QuestionPrompt
from app.skills.skill import Skill, learned_sentence


class SkillTraining:
    """Teaches and measures one skill. `folder` is that of its training, `mark` the base model's; `note` tells
    the owner a sentence."""

    def __init__(
        self,
        skill: Skill,
        folder: Path,
        mark: str,
        healer: Healer,
        disk: DiskPatience,
        note: Callable[[str], None],
    ) -> None:
        self.skill = skill
        self._folder, self._mark, self._healer, self._disk, self._note = folder, mark, healer, disk, note
        self._checkpoints = folder / "checkpoints"
        self._counted: tuple[int | None] | None = None
        """How many held-out rows counting letters gets right; None before that was counted."""

    def write_place(self, model: Path, name: str) -> None:
        """Records the base model, with which the skill can be asked. Raises OSError."""
        files.write_json(self._folder / SKILL_FILE, SkillPlace(model=str(model), name=name))

    def learned(self, state: NodeState) -> str:
        """Returns the sentence that more rounds bring nothing; empty while they may."""
        return learned_sentence(self.skill, state.practice.right or 0.0) if state.practice.done else ""

    async def with_current_rows(self, link: TrainerLink, state: NodeState) -> tuple[NodeState, str]:
        """Returns the state with a shorter lesson due, and a sentence that says so, if the owner has added or
        corrected rows since it was saved. That lesson starts from the best checkpoint, and its first part
        replaces that one: the owner's corrections count. Raises TrainerDied."""
        if self.skill.family in state.curriculum.levels:
            return state, ""
        if (best := self._folder / checkpoint.BEST_FOLDER).is_dir():
            await link.load(best)
        taught, _ = skill_lesson.split_rows(len(self.skill.examples), self.skill.origin)
        lesson = skill_lesson.going_on(state.lesson, state.taught, len(taught))
        changed = msgspec.structs.replace(
            state, way=self.skill.way, lesson=lesson, practice=Practice(), taught=False
        )
        return changed, f"The rows of {self.skill.name} have changed: your model studies them again."

    async def teach(self, tools: RoundTools, state: NodeState) -> PlayedRound:
        """Plays the next part of the skill lesson. After the last one, the checkpoint with the lowest loss is
        loaded. Raises TrainerDied."""
        played = await skills.teach_part(tools, state, self.skill)
        if played.state.taught and played.state.lesson.since:
            await tools.link.load(self._folder / checkpoint.BEST_FOLDER)
        return played

    def after_part(self, state: NodeState) -> None:
        """Keeps the checkpoint of a part that was saved, if its loss is the lowest."""
        if not state.lesson.since:
            self._healer.copy_best(self._checkpoints)

    async def measure(
        self, tools: RoundTools, questions_P: Sequence[QuestionPrompt], state: NodeState
    ) -> tuple[Probe, NodeState]:
        """Measures the skill, and returns the state with what the rounds have brought. Keeps the checkpoint
        that is best on the rows aside, with its answers to the held-out ones; when rounds bring nothing more,
        goes back to it and measures that one. Raises TrainerDied and DiskFullError."""
        row, answers = await skills.measure(tools, questions_P, state, self.skill)
        if self._counted is None:
            self._counted = (await skills.counted_right(tools, self.skill, answers),)
        if state.practice.done:
            return self._beside(row), state
        best = bool(state.round) and not state.lesson.since
        if state.taught:
            practice = await skills.after_practice(tools, state, self.skill)
            state, best = msgspec.structs.replace(state, practice=practice), not practice.since
            if best:
                self._healer.copy_best(self._checkpoints)
            if practice.done:
                await tools.link.load(self._folder / checkpoint.BEST_FOLDER)
                final = state
                await self._disk.finish(lambda: save_again(final, tools.link, self._checkpoints, self._mark))
                self._note(self.learned(state))
                row, answers = await skills.measure(tools, questions_P, state, self.skill)
        if best:
            measured = msgspec.structs.replace(answers, counted=self._counted[0])
            await self._disk.write(lambda: keep_best(self._folder, measured))
        return self._beside(row), state

    def _beside(self, row: Probe) -> Probe:
        """Returns the measurement with a baseline beside it: the share that letter n-grams get right."""
        assert self._counted is not None
        (right,) = self._counted
        return row if right is None else msgspec.structs.replace(row, letters=right / row.questions)
