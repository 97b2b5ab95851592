"""One run of a study: one arm and one seed, all nodes in this process, round by round.

A round is that of DESIGN section 3 with the network left out: every node answers its own questions, all of them
publish, every node mixes in peers' groups, weighs and takes one optimiser step. All nodes' rows are sampled in
one batch. Question k of node n in round t is the same whatever the arm, so arms differ by what they do with it.
Shapes: `_N` nodes, `_P` a node's groups, `_G` completions of a group, `_T` tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from random import Random

import msgspec

from app.lab import again, prediction
from app.lab.answers import Answered, Learnt, rows, token_mean, train_group
from app.lab.arms import Arm
from app.lab.foes import kind_of
from app.lab.plan import Plan, Probe, Round, identity
from app.lab.probing import Prober
from app.lab.swarm import Swarm
from app.lab.twist import Twist
from app.lab.twists import open_twists
from app.sapo import adaptive, curriculum, minibatches, mixing, recipes, seeds
from app.sapo.groups import Group, ScoredGroup, informative
from app.sapo.probe import probe_questions
from app.sapo.prompts import messages, shows_work
from app.sapo.questions import Coordinates
from engines.contract import Batch, Completion, Messages, TokenSequence

Score = Callable[[Group], ScoredGroup]


class Experiment:
    """One run. `rounds()` yields its records; everything random follows from plan, arm and seed."""

    def __init__(self, plan: Plan, arm: Arm, seed: int, swarm: Swarm, score: Score) -> None:
        self.plan, self.arm, self.seed, self.swarm, self.score = plan, arm, seed, swarm, score
        self.recipe = arm.rules
        self.window = (self.recipe.max_age or 0) if plan.window is None else plan.window
        self.curriculum = curriculum.start(plan.levels)
        questions = probe_questions(plan.levels, plan.probe_items)
        foes = kind_of(arm.extras)
        self.prober = Prober(swarm, score, questions, plan.max_tokens, plan.tried, foes)
        self.identities = [identity(seed, node) for node in range(plan.nodes)]
        self.updates = [0] * plan.nodes
        self.own_logprob: list[float | None] = [None] * plan.nodes
        self.published: list[Answered] = []
        self.taken: list[set[Coordinates]] = [
            set() for _ in range(plan.nodes)
        ]  # what each node trained on already
        self.rates: dict[str, float] = {}
        self.reencoded = [0, 0]
        budget = arm.own + arm.peer
        self.mixing_N = [adaptive.Mixing(budget=budget) for _ in range(plan.nodes)]
        self.twists: list[Twist] = open_twists(self)

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
            alike = number == 0 and not (self.plan.models or self.plan.starters)
            eight_N = self.prober.pass_at_8(self._seeds(number, "eight"), alike)
            probe = msgspec.structs.replace(probe, pass_at_8_N=eight_N)
        self.rates = probe.families
        return probe

    def _seeds(self, number: int, purpose: str) -> list[int]:
        return [seeds.sampling_seed(identity, number, purpose) for identity in self.identities]

    def _round(self, number: int) -> Round:
        started, cpu = time.perf_counter(), time.process_time()
        active = self._active(number)
        split_N = [self._split(node, active) for node in range(self.plan.nodes)]
        kept_NP, generated = self._answer(number, [own for own, _ in split_N])
        again_NP = self._again(number, [peer for _, peer in split_N]) if self.recipe.frontier else None
        generated += [one.own for again_P in again_NP or [] for one in again_P]
        sampled = time.perf_counter()
        if self.arm.shuffled:
            kept_NP = self._shuffled(kept_NP, number)
        fresh = [answered for kept_P in kept_NP for answered in kept_P]
        for twist in self.twists:
            fresh = twist.published(number, fresh)
        self.published = [old for old in self.published if number - old.round <= self.window] + fresh
        self.reencoded = [0, 0]
        learning = time.perf_counter()
        learnt = [
            self._learn(node, kept_NP[node], split_N[node][1], number, again_NP[node] if again_NP else [])
            for node in sorted(active)
        ]
        for twist in self.twists:
            twist.after(number)
        ended, cpu_ended = time.perf_counter(), time.process_time()

        if self.recipe.adaptive:
            for node in active:
                self.mixing_N[node] = self._observed(node, generated, split_N[node][0])
        completions = [completion for answered in generated for completion in answered.completions_G]
        nats = token_mean([completion.logprobs_T for completion in completions])
        peer_nats = [one.peer_logprob for one in learnt if one.peer_logprob is not None]
        predicted_own, predicted_peer = self._predicted(number, [split_N[node] for node in sorted(active)])
        measured = {name: value for twist in self.twists for name, value in twist.measures(number).items()}
        return Round(
            round=number,
            generated=len(completions),
            generated_tokens=sum(len(completion.tokens_T) for completion in completions),
            informative_own=_mean([one.own for one in learnt]),
            informative_peer=_mean([one.peer for one in learnt]),
            predicted_own=predicted_own,
            predicted_peer=predicted_peer,
            own_reward=_mean([reward for answered in generated for reward in answered.scored.rewards_G]),
            batch_reward=_mean([one.batch_reward for one in learnt]),
            finished=_mean([completion.finished for completion in completions]),
            worked=_mean([shows_work(completion.text) for completion in completions]),
            steps=sum(one.steps for one in learnt),
            gated_right=sum(one.weighed.gated_right for one in learnt),
            gated_wrong=sum(one.weighed.gated_wrong for one in learnt),
            peer_scale=_mean([one.weighed.peer_scale for one in learnt]),
            reencoded_same=self.reencoded[0] / self.reencoded[1] if self.reencoded[1] else None,
            seconds=ended - started,
            cpu_seconds=cpu_ended - cpu,
            sampling_seconds=sampled - started,
            learning_seconds=ended - learning,
            active=len(active),
            own=_mean([split_N[node][0] for node in active]),
            own_nats=None if nats is None else -nats,
            peer_nats=-_mean(peer_nats) if peer_nats else None,
            extra=measured or None,
        )

    def _active(self, number: int) -> set[int]:
        active = set(range(self.plan.nodes))
        for twist in self.twists:
            here = twist.active(number)
            active = active if here is None else active & here
        return active

    def _split(self, node: int, active: set[int]) -> tuple[int, int]:
        """How many groups a node answers and how many it takes in this round."""
        if node not in active:
            return 0, 0
        if not self.recipe.adaptive:
            return self.arm.own, self.arm.peer
        return adaptive.split(self.mixing_N[node], len(active), self.arm.own)

    def _observed(self, node: int, generated: Sequence[Answered], asked: int) -> adaptive.Mixing:
        own = [answered for answered in generated if answered.node == node]
        nats = token_mean([completion.logprobs_T for answered in own for completion in answered.completions_G])
        rewards = [reward for answered in own for reward in answered.dealt_G]
        seen = adaptive.Round(
            asked=asked,
            informative=sum(informative(answered.dealt_G) for answered in own),
            answered=len(rewards),
            solved=sum(rewards),
            nats=None if nats is None else -nats,
        )
        return adaptive.observe(self.mixing_N[node], seen)

    def _predicted(self, number: int, split_N: Sequence[tuple[int, int]]) -> tuple[float, float]:
        """Informative own and peer groups that success rates alone predict, means over the active nodes."""
        share = prediction.informative_share(self.rates.values(), self.plan.group)
        attempts = self.plan.attempts if self.arm.dynamic else 1
        asked, rounds = sum(own for own, _ in split_N), min(self.window, number - 1) + 1
        kept = 1.0 - (1.0 - share) ** attempts
        own_N = [prediction.own_groups(own, share, attempts) for own, _ in split_N]
        peer_N = [prediction.peer_groups(peer, (asked - own) * rounds, kept) for own, peer in split_N]
        return _mean(own_N), _mean(peer_N)

    def _answer(self, number: int, own_N: Sequence[int]) -> tuple[list[list[Answered]], list[Answered]]:
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
            missing_N = [own - len(kept_P) for own, kept_P in zip(own_N, kept_NP, strict=True)]
            if not any(missing_N):
                break
            for answered in self._sample(number, attempt, slots_N, missing_N):
                keep = answered.scored.informative or not self.arm.dynamic
                (kept_NP if keep else spare_NP)[answered.node].append(answered)
                everything.append(answered)
            slots_N = [slot + missing for slot, missing in zip(slots_N, missing_N, strict=True)]
        for own, kept_P, spare_P in zip(own_N, kept_NP, spare_NP, strict=True):
            kept_P += spare_P[: own - len(kept_P)]
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
                prompt = messages(question.text)
                yield self._scored(node, number, question.coordinates, prompt, completions_G)

    def _scored(
        self, node: int, number: int, at: Coordinates, prompt: Messages, completions_G: list[Completion]
    ) -> Answered:
        group = Group(
            coordinates=at,
            completions_G=tuple(completion.text for completion in completions_G),
            finished_G=tuple(completion.finished for completion in completions_G),
            model=self.plan.model,
        )
        scored = self.score(group)
        return Answered(node, number, scored, prompt, completions_G, scored.rewards_G)

    def _again(self, number: int, wanted_N: Sequence[int]) -> list[list[again.Again]]:
        """Peers' questions of earlier rounds that nodes answer themselves."""
        picked_NP = [
            again.pick(self._pool(node, number), wanted, number, self._rng(node, number))
            for node, wanted in enumerate(wanted_N)
        ]
        for node, picked_P in enumerate(picked_NP):
            self.taken[node].update(a.scored.group.coordinates for a in picked_P)
        groups_NPG = self.swarm.sample(
            [[a.prompt for a in picked_P] for picked_P in picked_NP],
            self.plan.group,
            self.plan.max_tokens,
            self._seeds(number, "again"),
        )
        return [
            [
                again.Again(a, self._scored(node, number, a.scored.group.coordinates, a.prompt, completions_G))
                for a, completions_G in zip(picked_P, groups_PG, strict=True)
            ]
            for node, (picked_P, groups_PG) in enumerate(zip(picked_NP, groups_NPG, strict=True))
        ]

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

    def _learn(
        self, node: int, own_P: list[Answered], wanted: int, number: int, again_P: list[again.Again]
    ) -> Learnt:
        """Mixes, weighs and takes the round's steps. Without a single weight there is none."""
        peer_P = [] if self.recipe.frontier else self._choose(node, wanted, number)
        own_sequences = [self._own_sequences(answered) for answered in own_P]
        peer_sequences = [self._peer_sequences(answered) for answered in peer_P]
        own = [
            train_group(answered, sequences_G, [list(c.logprobs_T) for c in answered.completions_G])
            for answered, sequences_G in zip(own_P, own_sequences, strict=True)
        ]
        asked = self.recipe.needs_peer_logprobs or (number % self.plan.probe_every == 0)
        peer_logprobs = self._logprobs(node, peer_sequences) if asked else None
        peer = [
            train_group(answered, sequences_G, peer_logprobs[p] if peer_logprobs else None)
            for p, (answered, sequences_G) in enumerate(zip(peer_P, peer_sequences, strict=True))
        ]
        self.own_logprob[node] = recipes.running_logprob(self.own_logprob[node], own)
        more = again.learnable(again_P, self.swarm, partial(self._logprobs, node))
        weighed = recipes.weigh(self.recipe, [*own, *more.groups], peer, self.own_logprob[node] or 0.0)
        careful = again.with_care(weighed.own[len(own) :], more)
        weighed = msgspec.structs.replace(weighed, own=weighed.own[: len(own)])
        for twist in self.twists:
            pairs = [list(zip(a, b, strict=True)) for a, b in ((own_P, own), (peer_P, peer))]
            weighed = twist.learning(node, number, weighed, *pairs)
        batch = rows(own_sequences, weighed.own, own if self.recipe.clip else None)
        batch += rows(more.sequences, careful, None)
        batch += rows(peer_sequences, weighed.peer, None)
        steps = minibatches.dealt(batch, weighed.steps, self._rng(node, number, "steps"))
        for groups in steps:
            rows_S = [row for rows_G in groups for row in rows_G]
            rate = recipes.learning_rate(self.plan.learning_rate, self.updates[node], weighed.step)
            self.swarm.step(node, Batch(rows_S=rows_S, learning_rate=rate, clip=self.recipe.clip))
            self.updates[node] += 1
        answers = [*own_P, *peer_P, *(one.own for one in again_P)]
        trained_on = [reward for answered in answers for reward in answered.dealt_G]
        return Learnt(
            own=sum(informative(group.rewards_G) for group in (*own, *more.groups)),
            peer=len(peer_P),
            batch_reward=_mean(trained_on),
            steps=len(steps),
            weighed=weighed,
            peer_logprob=token_mean([p_T for p_GT in peer_logprobs or [] for p_T in p_GT]),
        )

    def _logprobs(self, node: int, sequences: list[list[TokenSequence]]) -> list[list[list[float]]]:
        """Of whole groups under a node's policy, in one call."""
        flat = iter(self.swarm.logprobs(node, [s for sequences_G in sequences for s in sequences_G]))
        return [[next(flat) for _ in sequences_G] for sequences_G in sequences]

    def _choose(self, node: int, wanted: int, number: int) -> list[Answered]:
        """Peer groups for a node, out of what the others published within the window. None is taken twice."""
        if not wanted:
            return []
        pool = self._pool(node, number)
        trust = {peer: self._trust(node, peer) for peer in {a.node for a in pool}}
        offers = [
            mixing.Offer(peer=str(a.node), age=number - a.round, rewards_G=a.dealt_G, trust=trust[a.node])
            for a in pool
        ]
        positions = mixing.choose(self.recipe, offers, wanted, self._rng(node, number))
        chosen = [pool[position] for position in positions]
        self.taken[node].update(a.scored.group.coordinates for a in chosen)
        return chosen

    def _pool(self, node: int, number: int) -> list[Answered]:
        """What the others published within the window and this node has not had."""
        taken = self.taken[node]
        pool = [a for a in self.published if a.node != node and a.scored.group.coordinates not in taken]
        for twist in self.twists:
            pool = twist.offered(node, number, pool)
        return pool

    def _rng(self, node: int, number: int, purpose: str = "mix") -> Random:
        return Random(seeds.sampling_seed(self.identities[node], number, purpose))

    def _trust(self, node: int, peer: int) -> float:
        return prod(twist.trust(node, peer) for twist in self.twists)

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


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
