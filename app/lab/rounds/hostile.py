"""Attackers beside the nodes of a study (`app.lab.attackers`), and what becomes of their groups.

Receivers do what the app's intake does: they make the question and the verdicts themselves, leave out a group
whose claim is false, and take no group twice, nor a copy of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from app.lab.arms import Arm
from app.lab.attackers import Attacker, PublishedGroup, attacker_count, has_mark
from app.lab.plan import AnsweredQuestion, StudyPlan, identity
from app.lab.searching import WHITE_BOX, Oracle
from app.lab.swarm import LabSwarm
from app.learning.round_weights import LearningState, WeighedGroups
from app.sapo.asking import Way, messages
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from engines.contract import Completion, TokenSequence


class AttackedRun(Protocol):
    """The part of a run (`app.lab.rounds.experiment.Experiment`) that attackers use."""

    plan: StudyPlan
    arm: Arm
    seed: int
    swarm: LabSwarm
    way: Way
    learners: list[LearningState]

    def score(self, group: GroupRecord, /) -> GroupRecord: ...


class HostileNodes:
    """The attackers of a run, numbered after its nodes; none if the arm has none."""

    def __init__(self, run: AttackedRun) -> None:
        plan, self._run, self._kind = run.plan, run, run.arm.foes
        white = self._kind in WHITE_BOX
        self._attackers = [
            Attacker(
                kind=self._kind,
                identity=identity(run.seed, plan.nodes + k) + b" foe",
                levels=plan.levels,
                group=plan.group,
                longest=plan.max_tokens,
                encode=self._encoded,
                # the first node's policy of now, or the untrained model
                oracle=Oracle(partial(run.swarm.logprobs, 0), lambda: run.learners[0].habits)
                if white
                else Oracle(run.swarm.base_logprobs),
            )
            for k in range(attacker_count(plan.nodes, run.arm.percent))
        ]
        self._lately: list[AnsweredQuestion] = []
        self._authors: dict[Coordinates, int] = {}
        """The first author of each question."""
        self._measured: dict[str, float] = {}
        self._chosen = 0
        self._right: dict[str, Counter[str]] = {}

    def join(self, number: int, fresh: list[AnsweredQuestion]) -> list[AnsweredQuestion]:
        """Returns the groups that enter the pool in a round: the nodes' (`fresh`) and the attackers'."""
        if not self._attackers:
            return fresh
        lately = [(answered.prompt[-1]["content"], answered.scored) for answered in self._lately]
        hostile = [
            received
            for k, attacker in enumerate(self._attackers)
            for one in attacker.publish(number, self._run.arm.own, lately)
            if (received := self._received(self._run.plan.nodes + k, number, one)) is not None
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

    def without_copies(self, pool: list[AnsweredQuestion]) -> list[AnsweredQuestion]:
        """The groups of a pool whose author was the first to publish their question."""
        authors = self._authors
        return [one for one in pool if authors.get(one.scored.coordinates, one.node) == one.node]

    def count(self, weighed: WeighedGroups, peer_P: Sequence[AnsweredQuestion]) -> None:
        """Notes what a node took of these groups of peers."""
        if not self._attackers:
            return
        for answered, (taken, kept_out) in zip(peer_P, weighed.right_P, strict=True):
            attacker = answered.node >= self._run.plan.nodes
            self._chosen += attacker
            self._right["foe" if attacker else "honest"].update(taken=taken, kept_out=kept_out)

    def measures(self) -> dict[str, float] | None:
        """`marked`: share of the nodes' own samples of this round that carry the mark; `foe_groups`: attackers'
        groups in the pool; `foe_chosen`: those chosen, by all nodes together; `honest_taken`, `foe_kept_out`
        and the like: right answers of honest nodes and attackers that were accepted or rejected. None without
        attackers."""
        if not self._attackers:
            return None
        judged = ("taken", "kept_out")
        right = {f"{who}_{what}": float(n[what]) for who, n in self._right.items() for what in judged}
        return self._measured | {"foe_chosen": float(self._chosen)} | right

    def _received(self, node: int, number: int, one: PublishedGroup) -> AnsweredQuestion | None:
        scored, group = self._run.score(one.group), one.group
        if scored.rewards_G != one.claimed_G:
            return None
        completions_G = [
            Completion(
                tokens_T=self._encoded(one.text, text).completion_T, logprobs_T=[], finished=finished, text=text
            )
            for text, finished in zip(group.completions_G, group.finished_G, strict=True)
        ]
        prompt = messages(one.text, self._run.way)
        return AnsweredQuestion(node, number, scored, prompt, completions_G, one.claimed_G)

    def _encoded(self, question: str, text: str) -> TokenSequence:
        return self._run.swarm.encode(messages(question, self._run.way), text, True)
