"""The held-out probe of all nodes at once: fixed questions, never trained on, answered at temperature 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import comb

from app.lab.attackers import has_mark
from app.lab.plan import LabProbe, group_of
from app.lab.statistics import average
from app.lab.swarm import LabSwarm
from app.sapo.asking import Way, messages, shows_work
from app.sapo.groups import GroupRecord, informative_probability
from app.sapo.questions import QuestionPrompt
from engines.contract import Completion

ROWS = 512
"""Completions sampled in one batch: enough to use a processor fully, few enough for ordinary memory."""
TRIES = 8


@dataclass(frozen=True)
class Prober:
    """Measures all nodes on fixed held-out questions. `_N` nodes."""

    swarm: LabSwarm
    score: Callable[[GroupRecord], GroupRecord]
    questions: Sequence[QuestionPrompt]
    way: Way
    max_tokens: int
    tried: int = 64
    """Number of questions answered TRIES times for pass@8, evenly spaced over the probe."""
    attackers: str = ""
    """The kind of attackers whose mark is counted in answers; empty for no attackers."""

    def probe(self, seeds_N: Sequence[int]) -> LabProbe:
        """Has every node answer every question once."""
        step = max(1, ROWS // len(seeds_N))
        by_family: dict[str, list[tuple[int, ...]]] = {}
        rewards_PN: list[tuple[int, ...]] = []
        marked_PN: list[tuple[int, ...]] = []
        marks: dict[str, list[int]] = {}
        completions: list[Completion] = []
        for start in range(0, len(self.questions), step):
            part = self.questions[start : start + step]
            answers_NP = self._sample([part] * len(seeds_N), 1, [seed + 1000 * start for seed in seeds_N])
            for position, question in enumerate(part):
                answers_N = [answers_P[position][0] for answers_P in answers_NP]
                rewards_N = self._rewards(question, answers_N)
                by_family.setdefault(question.coordinates.family, []).append(rewards_N)
                rewards_PN.append(rewards_N)
                marked_PN.append(tuple(int(has_mark(answer.text, self.attackers)) for answer in answers_N))
                marks.setdefault(question.coordinates.family, []).extend(marked_PN[-1])
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
            marked_N=tuple(average(marked_P) for marked_P in zip(*marked_PN, strict=True)),
            marked={family: average(found) for family, found in sorted(marks.items()) if any(found)},
        )

    def pass_at_8(self, seeds_N: Sequence[int], alike: bool) -> tuple[float, ...]:
        """For each node, the share of `tried` questions that it solves at least once in eight answers.

        `alike`: all nodes still have equal policies, so they divide the questions among themselves."""
        nodes = len(seeds_N)
        count = min(self.tried, len(self.questions))
        some = [self.questions[len(self.questions) * k // count] for k in range(count)]
        if alike:
            solved_N = self._tried([some[node::nodes] for node in range(nodes)], seeds_N)
            return (average([solved for solved_P in solved_N for solved in solved_P]),) * nodes
        step = max(1, ROWS // (TRIES * nodes))
        parts = [
            self._tried([some[start : start + step]] * nodes, [seed + 1000 * start for seed in seeds_N])
            for start in range(0, count, step)
        ]
        return tuple(average([solved for part in parts for solved in part[node]]) for node in range(nodes))

    def _tried(
        self, questions_NP: Sequence[Sequence[QuestionPrompt]], seeds_N: Sequence[int]
    ) -> list[list[int]]:
        """1 for each node and question with a right answer among TRIES, else 0."""
        answers_NPG = self._sample(questions_NP, TRIES, seeds_N)
        return [
            [
                int(any(self._rewards(question, answers_G)))
                for question, answers_G in zip(questions_P, answers_PG, strict=True)
            ]
            for questions_P, answers_PG in zip(questions_NP, answers_NPG, strict=True)
        ]

    def _sample(
        self, questions_NP: Sequence[Sequence[QuestionPrompt]], tries: int, seeds_N: Sequence[int]
    ) -> list[list[list[Completion]]]:
        prompts_NP = [
            [messages(question.text, self.way) for question in questions_P] for questions_P in questions_NP
        ]
        return self.swarm.sample(prompts_NP, tries, self.max_tokens, seeds_N)

    def _rewards(self, question: QuestionPrompt, completions: Sequence[Completion]) -> tuple[int, ...]:
        """Scores answers to one question together, so that it is regenerated once."""
        return self.score(group_of(question.coordinates, completions, "probe")).rewards_G


# How many informative groups a round should bring, from success rates alone: the counting model of the study.
#
# It explains sharing as dynamic sampling from a larger pool, so agreement with the counts that are measured is
# a sharp test. Node i answers I questions; each is informative with chance s(p), the mean over families.


def informative_share(rates: Iterable[float], g: int) -> float:
    """Mean of s(p) over families: the mean of s, not s of the mean, because s is concave.

    >>> round(informative_share([0.05, 0.5], 8), 3)
    0.664
    """
    shares = [informative_probability(p, g) for p in rates]
    return sum(shares) / len(shares) if shares else 0.0


def expected_own_groups(own: int, share: float, attempts: int) -> float:
    """Expected number of informative own groups: `own` (I) times `share` (s). With dynamic sampling each place
    is drawn up to `attempts` times: I (1 - (1 - s)^attempts).

    >>> expected_own_groups(8, 0.25, 1), expected_own_groups(8, 0.5, 2)
    (2.0, 6.0)
    """
    return own * (1.0 - (1.0 - share) ** attempts)


def expected_peer_groups(peer: int, offered: int, share: float) -> float:
    """Expected number of informative peer groups with J = `peer`: E[min(J, Binomial(offered, s))].

    Paper setting, N = 8, 4/4, p = 0.05: 28 groups are offered and almost always contain four informative ones.

    >>> round(4 * informative_share([0.05], 8) + expected_peer_groups(4, 28, informative_share([0.05], 8)), 2)
    5.34
    """
    return sum(
        min(peer, k) * comb(offered, k) * share**k * (1.0 - share) ** (offered - k) for k in range(offered + 1)
    )
