"""Options that an arm adds to a round beyond its I/J and recipe, `+name=value` in the arm.

The experiment calls each of them at fixed points of a round (`RoundExtra`), in the order of their names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import msgspec

from app.lab.arms import Arm
from app.lab.attackers import Attacker, PublishedGroup, attacker_count, has_mark
from app.lab.plan import AnsweredQuestion, StudyPlan, identity
from app.lab.searching import WHITE_BOX, Oracle
from app.lab.swarm import LabSwarm
from app.learning.lesson import LearningState, WeighedGroups
from app.sapo import seeds
from app.sapo.asking import Way, messages
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from engines.contract import Completion, TokenSequence


class ExtendedRun(Protocol):
    """The part of a run (`app.lab.rounds.experiment.Experiment`) that options use."""

    plan: StudyPlan
    arm: Arm
    seed: int
    swarm: LabSwarm
    way: Way
    learners: list[LearningState]

    def score(self, group: GroupRecord, /) -> GroupRecord: ...


class RoundExtra:
    """Base class of options. Its methods change nothing, so that an option overrides only those it needs.
    `number` is the round, from 1."""

    def change_published(self, number: int, fresh: list[AnsweredQuestion]) -> list[AnsweredQuestion]:
        """Returns the groups that enter the pool. `fresh`: those that the nodes kept in this round."""
        return fresh

    def filter_offered(self, node: int, number: int, pool: list[AnsweredQuestion]) -> list[AnsweredQuestion]:
        """Returns the groups that a node may choose from. `pool`: those that others published."""
        return pool

    def after_learning(self, weighed: WeighedGroups, peer_P: Sequence[AnsweredQuestion]) -> None:
        """Called after a node has trained on these groups of peers."""

    def measures(self, number: int) -> dict[str, float]:
        """Additional figures for the round's record. The names must be equal in every round."""
        return {}


# `+foes=KIND%`: attackers beside the nodes of a study, `app.lab.attackers`; what becomes of their groups.
#
# Receivers do what the app's intake does, whatever the recipe: they make the question and the verdicts
# themselves, leave out a group whose claim is false, and take no group twice, nor a copy of their own.
# `believed` turns that off, to show what it is good for: claims are taken for rewards, and a copy for something
# new.

_JUDGED = ("taken", "kept_out")
_VALUE = re.compile(r"(?P<kind>[a-z]+?)(?P<percent>\d+)(?P<believed>believed)?")


class HostileNodes(RoundExtra):
    """Attackers, numbered after the nodes. Their groups enter the pool like all others."""

    def __init__(self, experiment: ExtendedRun, value: str) -> None:
        found = _VALUE.fullmatch(value)
        assert found is not None, "an arm's value matches its pattern"
        plan, self._experiment = experiment.plan, experiment
        self._believed, self._kind = bool(found["believed"]), found["kind"]
        self._nodes = plan.nodes
        self._attackers = [
            Attacker(
                kind=found["kind"],
                identity=identity(experiment.seed, plan.nodes + k) + b" foe",
                levels=plan.levels,
                group=plan.group,
                longest=plan.max_tokens,
                encode=self._encoded,
                oracle=self._oracle(experiment),
            )
            for k in range(attacker_count(plan.nodes, int(found["percent"])))
        ]
        self._lately: list[AnsweredQuestion] = []
        self._authors: dict[Coordinates, int] = {}
        """The first author of each question."""
        self._measured: dict[str, float] = {}
        self._chosen = 0
        self._right: dict[str, Counter[str]] = {}

    def _oracle(self, experiment: ExtendedRun) -> Oracle:
        """The model that searching attackers use: the first node's current policy, or the untrained model."""
        if self._kind in WHITE_BOX:
            return Oracle(partial(experiment.swarm.logprobs, 0), lambda: experiment.learners[0].habits)
        return Oracle(experiment.swarm.base_logprobs)

    def change_published(self, number: int, fresh: list[AnsweredQuestion]) -> list[AnsweredQuestion]:
        lately = [(answered.prompt[-1]["content"], answered.scored) for answered in self._lately]
        hostile = [
            received
            for k, attacker in enumerate(self._attackers)
            for place, one in enumerate(attacker.publish(number, self._experiment.arm.own, lately))
            if (received := self._received(self._name(k, number), number, place, one)) is not None
        ]
        self._lately = fresh
        texts = [completion.text for answered in fresh for completion in answered.completions_G]
        self._measured = {
            "marked": sum(has_mark(text, self._kind) for text in texts) / max(1, len(texts)),
            "foe_groups": float(len(hostile)),
        }
        self._chosen, self._right = 0, {"honest": Counter(), "foe": Counter()}
        for answered in (*fresh, *hostile):
            self._authors.setdefault(answered.scored.coordinates, answered.node)
        return fresh + hostile

    def filter_offered(self, node: int, number: int, pool: list[AnsweredQuestion]) -> list[AnsweredQuestion]:
        if self._believed:
            return pool
        return [one for one in pool if self._authors[one.scored.coordinates] == one.node]

    def after_learning(self, weighed: WeighedGroups, peer_P: Sequence[AnsweredQuestion]) -> None:
        for answered, (taken, kept_out) in zip(peer_P, weighed.right_P, strict=True):
            attacker = answered.node >= self._nodes
            self._chosen += attacker
            self._right["foe" if attacker else "honest"].update(taken=taken, kept_out=kept_out)

    def measures(self, number: int) -> dict[str, float]:
        """`marked`: share of the nodes' own samples of this round that carry the marker; `foe_groups`:
        attackers' groups in the pool; `foe_chosen`: those chosen, by all nodes together; `honest_taken`,
        `foe_kept_out` and the like: right answers of honest nodes and attackers that were accepted or
        rejected."""
        right = {f"{who}_{what}": float(n[what]) for who, n in self._right.items() for what in _JUDGED}
        return self._measured | {"foe_chosen": float(self._chosen)} | right

    def _name(self, k: int, number: int) -> int:
        """An attacker's author number in a round; attackers that renew their keys have another one in each
        round."""
        return self._nodes + k + len(self._attackers) * number * (self._kind in ("renew", "crowd"))

    def _received(self, node: int, number: int, place: int, one: PublishedGroup) -> AnsweredQuestion | None:
        prompt, group = messages(one.text, self._experiment.way), one.group
        if self._believed:
            seed = seeds.hashed("believed", node, number, place)
            group = msgspec.structs.replace(group, coordinates=_other(group.coordinates, seed))
        scored = self._experiment.score(one.group)
        if not self._believed and scored.rewards_G != one.claimed_G:
            return None
        completions_G = [
            Completion(
                tokens_T=self._encoded(one.text, text).completion_T, logprobs_T=[], finished=finished, text=text
            )
            for text, finished in zip(group.completions_G, group.finished_G, strict=True)
        ]
        answered = AnsweredQuestion(node, number, scored, prompt, completions_G, one.claimed_G)
        return replace(answered, scored=msgspec.structs.replace(scored, coordinates=group.coordinates))

    def _encoded(self, question: str, text: str) -> TokenSequence:
        return self._experiment.swarm.encode(messages(question, self._experiment.way), text, True)


def _other(coordinates: Coordinates, seed: int) -> Coordinates:
    """The question's coordinates with another seed, so that nobody has this question yet."""
    return msgspec.structs.replace(coordinates, seed=seed)


ROUND_EXTRAS: dict[str, Callable[[ExtendedRun, str], RoundExtra]] = {
    "foes": HostileNodes,
}
"""Options by name, as in `app.lab.arms.EXTRAS`, without those that change the recipe."""


def open_extras(experiment: ExtendedRun) -> list[RoundExtra]:
    """Creates the options of the experiment's arm."""
    return [
        ROUND_EXTRAS[name](experiment, value) for name, value in experiment.arm.extras if name in ROUND_EXTRAS
    ]
