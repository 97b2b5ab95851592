"""One run of a study: one arm and one seed, all nodes in this process, round by round (the loop of one node
alone is `app.lab.solo`).

A round is the app's own (`app.learning`) without the network: every node answers its own questions and
publishes the groups, then takes peers' groups, weighs them and makes its recipe's optimiser steps. All nodes'
rows are sampled in one batch, and levels stay as in the plan. Question k of node n in round t is equal in all
arms, so arms differ only in what they do with it. Shapes: `_N` nodes, `_P` a node's groups, `_G` completions of
a group, `_T` tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import msgspec

from app.lab.arms import Arm
from app.lab.plan import (
    AnsweredQuestion,
    LabProbe,
    LabRound,
    StudyPlan,
    TrainingResult,
    group_of,
    identity,
)
from app.lab.rounds.hostile import HostileNodes
from app.lab.rounds.probing import Prober
from app.lab.statistics import average
from app.lab.swarm import LabSwarm
from app.learning.choosing import PeerRecords
from app.learning.questions import own_questions
from app.learning.round_weights import OwnTokens, fresh_state, weigh_round, with_tokens
from app.sapo import seeds
from app.sapo.asking import WAYS, messages, shows_work
from app.sapo.groups import GroupRecord
from app.sapo.probe import probe_questions
from app.sapo.questions import Coordinates, make
from engines.contract import Completion, Messages, TokenSequence

Score = Callable[[GroupRecord], GroupRecord]


class Experiment:
    """One run. `rounds()` yields its records; all randomness is derived from plan, arm and seed."""

    def __init__(self, plan: StudyPlan, arm: Arm, seed: int, swarm: LabSwarm, score: Score) -> None:
        self.plan, self.arm, self.seed, self.swarm, self.score = plan, arm, seed, swarm, score
        self.recipe = arm.effective_recipe
        self.way = WAYS[plan.way]
        self.window = (self.recipe.max_age or 0) if plan.window is None else plan.window
        questions = probe_questions(plan.levels, plan.probe_items)
        self.prober = Prober(swarm, score, questions, self.way, plan.max_tokens)
        self.identities = [identity(seed, node) for node in range(plan.nodes)]
        self.learners = [fresh_state(plan.levels)] * plan.nodes
        self.records = [PeerRecords() for _ in range(plan.nodes)]
        self.published: list[AnsweredQuestion] = []
        self.taken: list[set[Coordinates]] = [
            set() for _ in range(plan.nodes)
        ]  # what each node trained on already
        self.hostile = HostileNodes(self)

    def rounds(self, measured: bool = True) -> Iterator[LabRound]:
        """Yields round 0, before any training, and each round when it ends. If `measured`, round 0, every
        `probe_every`-th round and the last have a probe."""
        yield LabRound(round=0, probe=self._measure(0) if measured else None)
        for number in range(1, self.plan.rounds + 1):
            record = self._round(number)
            if measured and (number % self.plan.probe_every == 0 or number == self.plan.rounds):
                record = msgspec.structs.replace(record, probe=self._measure(number))
            yield record

    def _measure(self, number: int) -> LabProbe:
        return self.prober.probe(self.seeds(number, "probe"))

    def seeds(self, number: int, purpose: str) -> list[int]:
        return [seeds.sampling_seed(identity, number, purpose) for identity in self.identities]

    def _round(self, number: int) -> LabRound:
        started, cpu = time.perf_counter(), time.process_time()
        nodes = range(self.plan.nodes)
        kept_NP, generated = self._answer(number)
        sampled = time.perf_counter()
        if self.arm.shuffled:
            kept_NP = self._shuffled(kept_NP, number)
        fresh = [answered for kept_P in kept_NP for answered in kept_P]
        self.published = [old for old in self.published if number - old.round <= self.window]
        self.published += self.hostile.join(number, fresh)
        learning = time.perf_counter()
        chosen_N = {node: self._choose(node, number) for node in nodes}
        learnt = [self._learn(node, kept_NP[node], number, chosen_N[node]) for node in nodes]
        ended, cpu_ended = time.perf_counter(), time.process_time()

        completions = [completion for answered in generated for completion in answered.completions_G]
        return LabRound(
            round=number,
            generated=len(completions),
            generated_tokens=sum(len(completion.tokens_T) for completion in completions),
            informative_own=average([one.own for one in learnt]),
            informative_peer=average([one.peer for one in learnt]),
            own_reward=average([reward for answered in generated for reward in answered.scored.rewards_G]),
            batch_reward=average([one.batch_reward for one in learnt]),
            finished=average([completion.finished for completion in completions]),
            worked=average([shows_work(completion.text) for completion in completions]),
            steps=sum(one.steps for one in learnt),
            gated_right=sum(one.weighed.gated_right for one in learnt),
            gated_wrong=sum(one.weighed.gated_wrong for one in learnt),
            peer_scale=average([one.weighed.peer_scale for one in learnt]),
            seconds=ended - started,
            cpu_seconds=cpu_ended - cpu,
            sampling_seconds=sampled - started,
            learning_seconds=ended - learning,
            extra=self.hostile.measures(),
        )

    def _answer(self, number: int) -> tuple[list[list[AnsweredQuestion]], list[AnsweredQuestion]]:
        """Samples, answers and scores own questions. Returns those that each node keeps, and everything
        generated.

        Without dynamic sampling the two are equal. With it, every uninformative group is replaced by one of a
        new question; places still open after the last attempt keep an uninformative one."""
        own = self.arm.own
        kept_NP: list[list[AnsweredQuestion]] = [[] for _ in self.identities]
        spare_NP: list[list[AnsweredQuestion]] = [[] for _ in self.identities]
        slots_N = [0] * self.plan.nodes
        everything: list[AnsweredQuestion] = []
        for attempt in range(self.plan.attempts if self.arm.dynamic else 1):
            missing_N = [own - len(kept_P) for kept_P in kept_NP]
            if not any(missing_N):
                break
            for answered in self._sample(number, attempt, slots_N, missing_N):
                keep = answered.scored.informative or not self.arm.dynamic
                (kept_NP if keep else spare_NP)[answered.node].append(answered)
                everything.append(answered)
            slots_N = [slot + missing for slot, missing in zip(slots_N, missing_N, strict=True)]
        for kept_P, spare_P in zip(kept_NP, spare_NP, strict=True):
            kept_P += spare_P[: own - len(kept_P)]
        return kept_NP, everything

    def _sample(
        self, number: int, attempt: int, slots_N: list[int], missing_N: list[int]
    ) -> Iterator[AnsweredQuestion]:
        questions_NP = [
            own_questions(learner.curriculum, identity, number, missing, make, slot)
            for learner, identity, slot, missing in zip(
                self.learners, self.identities, slots_N, missing_N, strict=True
            )
        ]
        groups_NPG = self.swarm.sample(
            [[messages(question.text, self.way) for question in questions_P] for questions_P in questions_NP],
            self.plan.group,
            self.plan.max_tokens,
            self.seeds(number, f"own {attempt}"),
        )
        for node, (questions_P, groups_PG) in enumerate(zip(questions_NP, groups_NPG, strict=True)):
            for question, completions_G in zip(questions_P, groups_PG, strict=True):
                prompt = messages(question.text, self.way)
                yield self._scored(node, number, question.coordinates, prompt, completions_G)

    def _scored(
        self, node: int, number: int, at: Coordinates, prompt: Messages, completions_G: list[Completion]
    ) -> AnsweredQuestion:
        scored = self.score(group_of(at, completions_G, self.plan.model))
        return AnsweredQuestion(node, number, scored, prompt, completions_G, scored.rewards_G)

    def _shuffled(self, kept_NP: list[list[AnsweredQuestion]], number: int) -> list[list[AnsweredQuestion]]:
        """The control: shuffles the rewards of all finished completions of the round."""
        places = [
            (node, p, g)
            for node, kept_P in enumerate(kept_NP)
            for p, answered in enumerate(kept_P)
            for g, finished in enumerate(answered.scored.finished_G)
            if finished
        ]
        dealt = [kept_NP[node][p].scored.rewards_G[g] for node, p, g in places]
        Random(seeds.hashed_seed("shuffle", self.seed, number)).shuffle(dealt)
        rewards = {
            (node, p): [0] * len(a.dealt_G) for node, kept_P in enumerate(kept_NP) for p, a in enumerate(kept_P)
        }
        for (node, p, g), reward in zip(places, dealt, strict=True):
            rewards[node, p][g] = reward
        return [
            [replace(answered, dealt_G=tuple(rewards[node, p])) for p, answered in enumerate(kept_P)]
            for node, kept_P in enumerate(kept_NP)
        ]

    def _learn(
        self,
        node: int,
        own_P: list[AnsweredQuestion],
        number: int,
        peer_P: list[AnsweredQuestion],
    ) -> TrainingResult:
        """Weighs own and peers' groups and makes the round's steps; none if all weights are 0."""
        sequences_PG = [self.encoded(answered) for answered in peer_P]
        asked = self.recipe.needs_peer_logprobs
        logprobs_PGT = self._logprobs(node, sequences_PG) if asked else [None] * len(peer_P)
        before = self.learners[node]
        taught = weigh_round(
            self.recipe,
            before,
            [OwnTokens(a.training_group, self.swarm.prompt_tokens(a.prompt), a.completions_G) for a in own_P],
            list(map(with_tokens, (one.training_group for one in peer_P), sequences_PG, logprobs_PGT)),
            rate=self.plan.learning_rate,
            order=self.rng(node, number, "steps"),
        )
        weighed = taught.weighed
        for batch in taught.batches:
            self.swarm.step(node, batch)
        steps = len(taught.batches)
        self.learners[node] = msgspec.structs.replace(taught.state, steps=before.steps + steps)
        for answered, (taken, kept_out) in zip(peer_P, weighed.right_P, strict=True):
            self.records[node].record_use(str(answered.node), taken, kept_out)
        self.hostile.count(weighed, peer_P)
        return TrainingResult(
            own=sum(answered.training_group.informative for answered in own_P),
            peer=len(peer_P),
            batch_reward=average([reward for answered in (*own_P, *peer_P) for reward in answered.dealt_G]),
            steps=steps,
            weighed=weighed,
        )

    def _logprobs(self, node: int, sequences: list[list[TokenSequence]]) -> list[list[list[float]]]:
        """Log probs of whole groups under a node's policy, in one call."""
        flat = iter(self.swarm.logprobs(node, [s for sequences_G in sequences for s in sequences_G]))
        return [[next(flat) for _ in sequences_G] for sequences_G in sequences]

    def _choose(self, node: int, number: int) -> list[AnsweredQuestion]:
        """Chooses peer groups for a node from those that the others published within the window. None is taken
        twice."""
        pool = self._pool(node) if self.arm.peer and not self.learners[node].vigil.alone else []
        groups = [msgspec.structs.replace(one.training_group, key=str(one.node)) for one in pool]
        ages, rng = [number - one.round for one in pool], self.rng(node, number, "mix")
        chosen = [pool[at] for at in self.records[node].choose(self.recipe, groups, ages, self.arm.peer, rng)]
        self.taken[node].update(a.scored.coordinates for a in chosen)
        return chosen

    def _pool(self, node: int) -> list[AnsweredQuestion]:
        """Groups that the others published within the window and this node has not taken."""
        taken = self.taken[node]
        pool = [a for a in self.published if a.node != node and a.scored.coordinates not in taken]
        return self.hostile.without_copies(pool)

    def rng(self, node: int, number: int, purpose: str) -> Random:
        return Random(seeds.sampling_seed(self.identities[node], number, purpose))

    def encoded(self, answered: AnsweredQuestion) -> list[TokenSequence]:
        """Encodes published text as its receiver does, with the end token if the completion had ended."""
        return [
            self.swarm.encode(answered.prompt, completion.text, completion.finished)
            for completion in answered.completions_G
        ]
