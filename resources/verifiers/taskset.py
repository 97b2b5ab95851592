"""Shoal's puzzles as tasks of `verifiers`: a question, where it lies, and one reward.

A task carries coordinates and no truth; whoever scores makes the question again. Answers are read, never run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from typing import Literal

import verifiers.v1 as vf
from shoal_puzzles.sapo.asking import SYSTEM, extract_answer
from shoal_puzzles.sapo.families import FAMILIES
from shoal_puzzles.sapo.questions import Coordinates, Question, QuestionError, draw, generate
from shoal_puzzles.sapo.seeds import TRAINING_SEEDS, hashed

SOLVED = 0.99


class PuzzleData(vf.TaskData):
    """Where the question lies."""

    family: str
    level: int
    seed: int
    index: int
    version: str


class PuzzleTask(vf.Task[PuzzleData]):
    @vf.reward(weight=1.0)
    async def solved(self, trace: vf.Trace) -> float:
        """1 for a right answer, else 0: the last of `<answer>...</answer>`, `\\boxed{...}` or `#...`."""
        return float(self._raw(trace) >= SOLVED)

    @vf.metric
    async def raw_score(self, trace: vf.Trace) -> float:
        """What the family's scorer gives, in [0, 1]."""
        return self._raw(trace)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Whether the family's own solution is right."""
        question = self._question()
        family = FAMILIES[self.data.family]
        return family.judge(family.solution(question.entry), question.entry) >= SOLVED

    def _raw(self, trace: vf.Trace) -> float:
        answer = extract_answer(trace.last_reply)
        return 0.0 if answer is None else FAMILIES[self.data.family].judge(answer, self._question().entry)

    def _question(self) -> Question:
        data = self.data
        return _made(
            Coordinates(
                family=data.family, level=data.level, seed=data.seed, index=data.index, version=data.version
            )
        )


class PuzzleConfig(vf.TasksetConfig):
    families: tuple[str, ...] = ()
    """Which families; none means all."""
    level: int = 0
    """From easy (0) on; a family with fewer levels gives its highest."""
    split: Literal["train", "held_out"] = "train"
    """`held_out`: questions that no Shoal node ever trains on. The two never meet."""
    num_tasks: int = 1000
    seed: int = 0


class PuzzleTaskset(vf.Taskset[PuzzleTask, PuzzleConfig]):
    """The families in turn."""

    def load(self) -> Iterator[PuzzleTask]:
        unknown = sorted(set(self.config.families) - set(FAMILIES))
        if unknown:
            raise ValueError(
                f"There is no family {unknown[0]!r}. Known families: {', '.join(sorted(FAMILIES))}."
            )
        names = self.config.families or list(FAMILIES)
        for number in range(self.config.num_tasks):
            yield self._task(names[number % len(names)], number)

    def _task(self, family: str, number: int) -> PuzzleTask:
        level = min(self.config.level, len(FAMILIES[family].levels) - 1)
        for attempt in count():
            seed = TRAINING_SEEDS.start + hashed("verifiers", self.config.seed, number, attempt)
            try:
                question = draw(family, level, seed)
            except QuestionError:
                continue
            if question.held_out == (self.config.split == "held_out"):
                break
        at = question.coordinates
        data = PuzzleData(
            name=f"{family} {level}",
            prompt=question.text,
            system_prompt=SYSTEM,
            family=family,
            level=level,
            seed=at.seed,
            index=at.index,
            version=at.version,
        )
        return PuzzleTask(data, self.config.task)


_made = lru_cache(maxsize=4096)(generate)
