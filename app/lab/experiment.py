"""One run of a study: one arm and one seed, all nodes in this process, round by round.

A round is that of DESIGN section 3 with the network left out: every node answers its own questions, all of them
publish, every node mixes in peers' groups, weighs and takes one optimiser step. All nodes' rows are sampled in
one batch. Question k of node n in round t is the same whatever the arm, so arms differ by what they do with it.
Shapes: `_N` nodes, `_P` a node's groups, `_G` completions of a group, `_T` tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import msgspec

from app.lab import prediction
from app.lab.arms import Arm
from app.lab.plan import Plan, Probe, Round, identity
from app.lab.probing import Prober
from app.lab.swarm import Swarm
from app.sapo import curriculum, mixing, recipes, seeds
from app.sapo.groups import Group, ScoredGroup, informative
from app.sapo.probe import probe_questions
from app.sapo.prompts import messages, shows_work
from app.sapo.questions import Coordinates
from app.sapo.recipes import RECIPES, TrainGroup
from engines.contract import Batch, Completion, Messages, Row, TokenSequence

Score = Callable[[Group], ScoredGroup]


@dataclass(frozen=True)
class Answered:
    """One question as one node answered it: the published group, and what only its own node knows (the
    tokens)."""

    node: int
    round: int
    scored: ScoredGroup
    prompt: Messages
    completions_G: list[Completion]
    dealt_G: tuple[int, ...]
    """The rewards that are trained on: the verifier's, or shuffled ones in the control."""


@dataclass(frozen=True)
class Learnt:
    """What one node's training step used."""

    own: int
    peer: int
    batch_reward: float
    stepped: bool
    weighed: recipes.Weighed


class Experiment:
    """One run. `rounds()` yields its records; everything random follows from plan, arm and seed."""

    def __init__(self, plan: Plan, arm: Arm, seed: int, swarm: Swarm, score: Score) -> None:
        self.plan, self.arm, self.seed, self.swarm, self.score = plan, arm, seed, swarm, score
        self.recipe = RECIPES[arm.recipe]
        self.window = (self.recipe.max_age or 0) if plan.window is None else plan.window
        self.curriculum = curriculum.start(plan.levels)
        self.prober = Prober(swarm, score, probe_questions(plan.levels, plan.probe_items), plan.max_tokens)
        self.identities = [identity(seed, node) for node in range(plan.nodes)]
        self.updates = [0] * plan.nodes
        self.own_logprob: list[float | None] = [None] * plan.nodes
        self.published: list[Answered] = []
        self.taken: list[set[Coordinates]] = [
            set() for _ in range(plan.nodes)
        ]  # what each node trained on already
        self.rates: dict[str, float] = {}
        self.reencoded = [0, 0]

    def rounds(self) -> Iterator[Round]:
        """Round 0 (the probe before training) to the last."""
        yield Round(round=0, probe=self._measure(0))
        for number in range(1, self.plan.rounds + 1):
            record = self._round(number)
            if number % self.plan.probe_every == 0 or number == self.plan.rounds:
                record = msgspec.structs.replace(record, probe=self._measure(number))
            yield record

    def _measure(self, number: int) -> Probe:
        probe = self.prober.once(self._seeds(number, "probe"))
        if number in (0, self.plan.rounds):
            eight_N = self.prober.pass_at_8(self._seeds(number, "eight"), alike=number == 0)
            probe = msgspec.structs.replace(probe, pass_at_8_N=eight_N)
        self.rates = probe.families
        return probe

    def _seeds(self, number: int, purpose: str) -> list[int]:
        return [seeds.sampling_seed(identity, number, purpose) for identity in self.identities]

    def _round(self, number: int) -> Round:
        started = time.perf_counter()
        kept_NP, generated = self._answer(number)
        sampled = time.perf_counter()
        if self.arm.shuffled:
            kept_NP = self._shuffled(kept_NP, number)
        fresh = [answered for kept_P in kept_NP for answered in kept_P]
        self.published = [old for old in self.published if number - old.round <= self.window] + fresh
        self.reencoded = [0, 0]
        learning = time.perf_counter()
        learnt_N = [self._learn(node, kept_P, number) for node, kept_P in enumerate(kept_NP)]
        ended = time.perf_counter()

        completions = [completion for answered in generated for completion in answered.completions_G]
        share = prediction.informative_share(self.rates.values(), self.plan.group)
        attempts = self.plan.attempts if self.arm.dynamic else 1
        offered = (self.plan.nodes - 1) * self.arm.own * (min(self.window, number - 1) + 1)
        return Round(
            round=number,
            generated=len(completions),
            generated_tokens=sum(len(completion.tokens_T) for completion in completions),
            informative_own=_mean([learnt.own for learnt in learnt_N]),
            informative_peer=_mean([learnt.peer for learnt in learnt_N]),
            predicted_own=prediction.own_groups(self.arm.own, share, attempts),
            predicted_peer=prediction.peer_groups(self.arm.peer, offered, 1.0 - (1.0 - share) ** attempts),
            own_reward=_mean([reward for answered in generated for reward in answered.scored.rewards_G]),
            batch_reward=_mean([learnt.batch_reward for learnt in learnt_N]),
            finished=_mean([completion.finished for completion in completions]),
            worked=_mean([shows_work(completion.text) for completion in completions]),
            steps=sum(learnt.stepped for learnt in learnt_N),
            gated_right=sum(learnt.weighed.gated_right for learnt in learnt_N),
            gated_wrong=sum(learnt.weighed.gated_wrong for learnt in learnt_N),
            peer_scale=_mean([learnt.weighed.peer_scale for learnt in learnt_N]),
            reencoded_same=self.reencoded[0] / self.reencoded[1] if self.reencoded[1] else None,
            seconds=ended - started,
            sampling_seconds=sampled - started,
            learning_seconds=ended - learning,
        )

    def _answer(self, number: int) -> tuple[list[list[Answered]], list[Answered]]:
        """Own questions asked, answered and scored: those that each node keeps, and everything generated for
        it.

        Without dynamic sampling that is the same. With it, every place of a batch that drew an uninformative
        group is drawn again from fresh questions; places still open after the last attempt keep an
        uninformative one.
        """
        kept_NP: list[list[Answered]] = [[] for _ in self.identities]
        spare_NP: list[list[Answered]] = [[] for _ in self.identities]
        slots_N = [0] * self.plan.nodes
        everything: list[Answered] = []
        for attempt in range(self.plan.attempts if self.arm.dynamic else 1):
            missing_N = [self.arm.own - len(kept_P) for kept_P in kept_NP]
            if not any(missing_N):
                break
            for answered in self._sample(number, attempt, slots_N, missing_N):
                keep = answered.scored.informative or not self.arm.dynamic
                (kept_NP if keep else spare_NP)[answered.node].append(answered)
                everything.append(answered)
            slots_N = [slot + missing for slot, missing in zip(slots_N, missing_N, strict=True)]
        for kept_P, spare_P in zip(kept_NP, spare_NP, strict=True):
            kept_P += spare_P[: self.arm.own - len(kept_P)]
        return kept_NP, everything

    def _sample(
        self, number: int, attempt: int, slots_N: list[int], missing_N: list[int]
    ) -> Iterator[Answered]:
        questions_NP = [
            [mixing.own_question(self.curriculum, identity, number, slot + k) for k in range(missing)]
            for identity, slot, missing in zip(self.identities, slots_N, missing_N, strict=True)
        ]
        groups_NPG = self.swarm.sample(
            [[messages(question.text) for question in questions_P] for questions_P in questions_NP],
            self.plan.group,
            self.plan.max_tokens,
            self._seeds(number, f"own {attempt}"),
        )
        for node, (questions_P, groups_PG) in enumerate(zip(questions_NP, groups_NPG, strict=True)):
            for question, completions_G in zip(questions_P, groups_PG, strict=True):
                group = Group(
                    coordinates=question.coordinates,
                    completions_G=tuple(completion.text for completion in completions_G),
                    finished_G=tuple(completion.finished for completion in completions_G),
                    model=self.plan.model,
                )
                scored = self.score(group)
                yield Answered(node, number, scored, messages(question.text), completions_G, scored.rewards_G)

    def _shuffled(self, kept_NP: list[list[Answered]], number: int) -> list[list[Answered]]:
        """The control: rewards of all finished completions of the round, dealt out again at random."""
        places = [
            (node, p, g)
            for node, kept_P in enumerate(kept_NP)
            for p, answered in enumerate(kept_P)
            for g, finished in enumerate(answered.scored.group.finished_G)
            if finished
        ]
        dealt = [kept_NP[node][p].scored.rewards_G[g] for node, p, g in places]
        Random(seeds.hashed("shuffle", self.seed, number)).shuffle(dealt)
        rewards = {
            (node, p): [0] * len(a.dealt_G) for node, kept_P in enumerate(kept_NP) for p, a in enumerate(kept_P)
        }
        for (node, p, g), reward in zip(places, dealt, strict=True):
            rewards[node, p][g] = reward
        return [
            [replace(answered, dealt_G=tuple(rewards[node, p])) for p, answered in enumerate(kept_P)]
            for node, kept_P in enumerate(kept_NP)
        ]

    def _learn(self, node: int, own_P: list[Answered], number: int) -> Learnt:
        """Mixes, weighs and takes one step. Without a single weight there is no step."""
        peer_P = self._choose(node, number)
        own_sequences = [self._own_sequences(answered) for answered in own_P]
        peer_sequences = [self._peer_sequences(answered) for answered in peer_P]
        own = [
            _train_group(answered, sequences_G, [list(c.logprobs_T) for c in answered.completions_G])
            for answered, sequences_G in zip(own_P, own_sequences, strict=True)
        ]
        peer_logprobs = self._logprobs(node, peer_sequences) if self.recipe.needs_peer_logprobs else None
        peer = [
            _train_group(answered, sequences_G, peer_logprobs[p] if peer_logprobs else None)
            for p, (answered, sequences_G) in enumerate(zip(peer_P, peer_sequences, strict=True))
        ]
        self.own_logprob[node] = recipes.running_logprob(self.own_logprob[node], own)
        weighed = recipes.weigh(self.recipe, own, peer, self.own_logprob[node] or 0.0)
        rows = _rows(own_sequences, weighed.own, own if self.recipe.clip else None)
        rows += _rows(peer_sequences, weighed.peer, None)
        if rows:
            rate = recipes.learning_rate(self.plan.learning_rate, self.updates[node], weighed.step)
            self.swarm.step(node, Batch(rows_S=rows, learning_rate=rate, clip=self.recipe.clip))
            self.updates[node] += 1
        trained_on = [reward for answered in (*own_P, *peer_P) for reward in answered.dealt_G]
        return Learnt(
            own=sum(informative(answered.dealt_G) for answered in own_P),
            peer=len(peer_P),
            batch_reward=_mean(trained_on),
            stepped=bool(rows),
            weighed=weighed,
        )

    def _logprobs(self, node: int, sequences: list[list[TokenSequence]]) -> list[list[list[float]]]:
        """Of whole groups under a node's policy, in one call."""
        flat = iter(self.swarm.logprobs(node, [s for sequences_G in sequences for s in sequences_G]))
        return [[next(flat) for _ in sequences_G] for sequences_G in sequences]

    def _choose(self, node: int, number: int) -> list[Answered]:
        """Peer groups for a node, out of what the others published within the window. None is taken twice."""
        if not self.arm.peer:
            return []
        taken = self.taken[node]
        pool = [a for a in self.published if a.node != node and a.scored.group.coordinates not in taken]
        offers = [mixing.Offer(peer=str(a.node), age=number - a.round, rewards_G=a.dealt_G) for a in pool]
        rng = Random(seeds.sampling_seed(self.identities[node], number, "mix"))
        chosen = [pool[position] for position in mixing.choose(self.recipe, offers, self.arm.peer, rng)]
        taken.update(a.scored.group.coordinates for a in chosen)
        return chosen

    def _own_sequences(self, answered: Answered) -> list[TokenSequence]:
        prompt_T = self.swarm.prompt_tokens(answered.prompt)
        return [TokenSequence(prompt_T=prompt_T, completion_T=c.tokens_T) for c in answered.completions_G]

    def _peer_sequences(self, answered: Answered) -> list[TokenSequence]:
        """The receiver's own encoding of published text, with the end token where the completion had ended."""
        sequences_G = [
            self.swarm.encode(answered.prompt, completion.text, completion.finished)
            for completion in answered.completions_G
        ]
        same = [s.completion_T == c.tokens_T for s, c in zip(sequences_G, answered.completions_G, strict=True)]
        self.reencoded = [self.reencoded[0] + sum(same), self.reencoded[1] + len(same)]
        return sequences_G


def _rows(
    sequences: list[list[TokenSequence]], weights: tuple[recipes.Weights, ...], old: list[TrainGroup] | None
) -> list[Row]:
    """Sequences with a weight, as rows. `old` brings the sampler's log-probs, against which ratios are
    clipped."""
    olds: Sequence[TrainGroup | None] = old or [None] * len(sequences)
    return [
        Row(
            prompt_T=sequence.prompt_T,
            completion_T=sequence.completion_T,
            weights_T=list(weights_T),
            old_logprobs_T=list(group.logprobs_GT[g]) if group and group.logprobs_GT else None,
        )
        for sequences_G, weights_GT, group in zip(sequences, weights, olds, strict=True)
        for g, (sequence, weights_T) in enumerate(zip(sequences_G, weights_GT, strict=True))
        if any(weights_T)
    ]


def _train_group(
    answered: Answered, sequences_G: list[TokenSequence], logprobs_GT: list[list[float]] | None
) -> TrainGroup:
    return TrainGroup(
        rewards_G=answered.dealt_G,
        finished_G=answered.scored.group.finished_G,
        lengths_G=tuple(len(sequence.completion_T) for sequence in sequences_G),
        logprobs_GT=None if logprobs_GT is None else tuple(map(tuple, logprobs_GT)),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
