"""The held-out probe of all nodes at once: fixed questions, never trained on, answered at temperature 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.lab.plan import LabProbe, group_of
from app.lab.statistics import average
from app.lab.swarm import LabSwarm
from app.sapo.asking import Way, messages, shows_work
from app.sapo.groups import GroupRecord
from app.sapo.questions import QuestionPrompt
from engines.contract import Completion

COMPLETIONS_PER_BATCH = 512
"""Completions sampled in one batch: enough to use a processor fully, few enough for ordinary memory."""


@dataclass(frozen=True)
class Prober:
    """Measures all nodes on fixed held-out questions. `_N` nodes."""

    swarm: LabSwarm
    score: Callable[[GroupRecord], GroupRecord]
    questions: Sequence[QuestionPrompt]
    way: Way
    max_tokens: int

    def probe(self, seeds_N: Sequence[int]) -> LabProbe:
        """Has every node answer every question once."""
        step = max(1, COMPLETIONS_PER_BATCH // len(seeds_N))
        by_family: dict[str, list[tuple[int, ...]]] = {}
        rewards_PN: list[tuple[int, ...]] = []
        completions: list[Completion] = []
        for start in range(0, len(self.questions), step):
            part = self.questions[start : start + step]
            prompts_P = [messages(question.text, self.way) for question in part]
            sampling_N = [seed + 1000 * start for seed in seeds_N]
            answers_NP = self.swarm.sample([prompts_P] * len(seeds_N), 1, self.max_tokens, sampling_N)
            for position, question in enumerate(part):
                answers_N = [answers_P[position][0] for answers_P in answers_NP]
                rewards_N = self._rewards(question, answers_N)
                by_family.setdefault(question.coordinates.family, []).append(rewards_N)
                rewards_PN.append(rewards_N)
                completions += answers_N
        return LabProbe(
            pass_at_1_N=tuple(average(rewards_P) for rewards_P in zip(*rewards_PN, strict=True)),
            families={
                family: average([reward for rewards_N in rewards_PN for reward in rewards_N])
                for family, rewards_PN in sorted(by_family.items())
            },
            finished=average([completion.finished for completion in completions]),
            worked=average([shows_work(completion.text) for completion in completions]),
            nodes={
                family: tuple(round(average(rewards_P), 4) for rewards_P in zip(*rewards_PN, strict=True))
                for family, rewards_PN in sorted(by_family.items())
            },
        )

    def _rewards(self, question: QuestionPrompt, completions: Sequence[Completion]) -> tuple[int, ...]:
        """Scores answers to one question together, so that it is regenerated once."""
        return self.score(group_of(question.coordinates, completions, "probe")).rewards_G
