"""Computes what a round teaches: turns scored groups, peers' log-probs and the learner's state into weights,
optimiser steps and the next state.

`weigh_round` does this in order: updates the running log-prob and the habits of own answers, then the trend
of their form; compares peers' answers with both; has the recipe weigh every token (app.sapo.weighing);
updates the brake from own results; deals the rows that carry weight to optimiser steps.

Pure: no engine, file or clock, so the app and the lab run the same code. The caller samples, scores, reads
peers' groups as tokens, and takes the steps. Left out: a value model, a KL term to the base model
(app.learning.language preserves everyday language instead), and more than one pass over a batch.

Shapes: `_P` groups, `_G` completions of a group, `_T` tokens. Log-probabilities are in nats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

import msgspec

from app.learning.brake import PeerBrake, after_round
from app.sapo import curriculum, forms
from app.sapo.advantages import mean_centred
from app.sapo.curriculum import Curriculum
from app.sapo.defences import Habits, trusted_answers, update_habits
from app.sapo.forms import Form, FormTrend
from app.sapo.groups import GroupRecord
from app.sapo.recipes import Recipe
from app.sapo.weighing import (
    NO_GROUPS,
    TrainGroup,
    WeighedGroups,
    Weights,
    carries_weight,
    deal_minibatches,
    learning_rate,
    mean_logprob,
    running_logprob,
    weigh,
)
from engines.contract import Batch, Completion, Row, TokenSequence

__all__ = [
    "NO_GROUPS",
    "OwnTokens",
    "WeighedGroups",
    "WeighedRound",
    "carries_weight",
    "weigh_round",
    "with_tokens",
]


class LearningState(msgspec.Struct, frozen=True, kw_only=True):
    """Training state besides the adapter that carries over from round to round. `own_logprob`: running mean
    log-prob of the tokens of own completions (nats). `steps`: optimiser steps so far."""

    curriculum: Curriculum
    own_logprob: float | None = None
    habits: Habits | None = None
    """Statistics of own answers, with which peers' answers are compared."""
    pays: FormTrend = FormTrend()
    """Running trend of the answer form that own groups reward; peers' groups may not push another form."""
    vigil: PeerBrake = PeerBrake()
    """State of the brake that stops learning from peers when own answers get worse."""
    steps: int = 0


def fresh_state(levels: Mapping[str, int]) -> LearningState:
    """Returns the state before the first round, with these families at these levels. Raises QuestionError."""
    return LearningState(curriculum=curriculum.start(levels))


State = TypeVar("State", bound=LearningState)


@dataclass(frozen=True)
class OwnTokens:
    """One of the learner's own groups: the rewards to train on, and the tokens as they were sampled."""

    scored: GroupRecord
    prompt_T: list[int]
    completions_G: Sequence[Completion]
    key: Completion | None = None
    """The true answer to one of the owner's questions, set if no completion has it. It is added as one more
    completion, so that they are not all wrong. Its log-probs are the learner's."""

    @property
    def all_G(self) -> list[Completion]:
        return [*self.completions_G, *([self.key] if self.key else [])]


def with_tokens(
    group: GroupRecord,
    sequences_G: Sequence[TokenSequence],
    logprobs_GT: Sequence[Sequence[float]] | None,
    *,
    vouched: bool = False,
) -> GroupRecord:
    """Returns a peer's group in this learner's tokens, with their log-probs under the learner if the recipe
    needs them. `vouched`: the learner's owner wrote the right answer and wants it learned."""
    return msgspec.structs.replace(
        group,
        prompt_T=sequences_G[0].prompt_T,
        tokens_GT=[sequence.completion_T for sequence in sequences_G],
        logprobs_GT=logprobs_GT,
        vouched=vouched,
    )


@dataclass(frozen=True)
class WeighedRound(Generic[State]):
    """The result of `weigh_round`. `batches` are the round's optimiser steps, empty if every group's answers
    were all right or all wrong. The caller adds the steps it takes to `state.steps`."""

    state: State
    weighed: WeighedGroups
    batches: list[Batch]


def weigh_round(
    recipe: Recipe,
    before: State,
    own_P: Sequence[OwnTokens],
    peer_P: Sequence[GroupRecord],
    *,
    rate: float,
    order: Random,
    by_another: bool = False,
    imitated: bool = False,
) -> WeighedRound[State]:
    """Turns the groups of a round into weighed optimiser steps. `rate`: learning rate after warm-up. `order`:
    the random numbers that deal groups to steps. `by_another`: another engine than the learner's sampled the
    own completions. `imitated`: peers' answers are also imitated in this round. Raises WeighError."""
    completions = [completion for own in own_P for completion in own.completions_G]
    own_logprob = running_logprob(before.own_logprob, [mean_logprob(one.logprobs_T) for one in completions])
    finished = [one for one in completions if one.finished]
    habits = update_habits(before.habits, [one.logprobs_T for one in finished], [one.text for one in finished])
    own = [_own_group(group) for group in own_P]
    mean = forms.mean_form([_form(one) for one in finished])
    pays = before.pays
    if mean and recipe.keeps_form:
        pays = forms.update_trend(pays, [_form_shift(one, mean) for one in own_P if one.scored.informative])
    peer = [_peer_group(group, recipe, habits, mean) for group in peer_P]
    weighed = weigh(recipe, own, peer, own_logprob or 0.0, pays.signs_F)
    vigil = before.vigil
    if recipe.vigil:
        mixed = imitated or any(map(carries_weight, weighed.peer))
        vigil = after_round(vigil, [one.scored for one in own_P], before.curriculum.levels, mixed)
    own_rows_P = [
        _own_rows(group, weights_GT, recipe, by_another)
        for group, weights_GT in zip(own_P, weighed.own, strict=True)
    ]
    peer_rows_P = [
        _peer_rows(group, weights_GT) for group, weights_GT in zip(peer_P, weighed.peer, strict=True)
    ]
    rows_P = [rows_G for rows_G in (*own_rows_P, *peer_rows_P) if rows_G]
    dealt = deal_minibatches(rows_P, weighed.steps, order)
    return WeighedRound(
        state=msgspec.structs.replace(before, own_logprob=own_logprob, habits=habits, pays=pays, vigil=vigil),
        weighed=weighed,
        batches=[
            Batch(
                rows_S=[row for rows_G in rows_PG for row in rows_G],
                learning_rate=learning_rate(rate, before.steps + position, weighed.step, recipe.falls),
                clip=recipe.clip,
                sampler_cap=recipe.sampler_cap,
            )
            for position, rows_PG in enumerate(dealt)
        ],
    )


def _own_group(own: OwnTokens) -> TrainGroup:
    """Converts an own group, with its key, for weighing. The sampler's log-probs stand in for the learner's in
    `running_logprob`: if another engine sampled, they differ by 0.01 nats on average, and only the gates for
    peers use them."""
    keyed = own.key is not None
    return TrainGroup(
        rewards_G=own.scored.rewards_G + (1,) * keyed,
        finished_G=own.scored.finished_G + (True,) * keyed,
        lengths_G=tuple(len(completion.tokens_T) for completion in own.all_G),
    )


def _form(own: Completion) -> Form:
    return forms.answer_form(own.text, len(own.tokens_T), mean_logprob(own.logprobs_T))


def _less(form: Form, mean: Form) -> Form:
    return tuple(a - b for a, b in zip(form, mean, strict=True))


def _form_shift(own: OwnTokens, mean: Form) -> tuple[float, ...]:
    finished_G = own.scored.finished_G
    push_G = [push * done for push, done in zip(mean_centred(own.scored.rewards_G), finished_G, strict=True)]
    return forms.form_shift(push_G, [_less(_form(one), mean) for one in own.completions_G])


def _peer_group(peer: GroupRecord, recipe: Recipe, habits: Habits | None, mean: Form | None) -> TrainGroup:
    """Converts a peer's group for weighing. Its answers are compared with own `habits` and the own `mean` form
    once these are known."""
    lengths_G, logprobs_GT = tuple(map(len, peer.tokens_GT)), peer.logprobs_GT
    group = TrainGroup(
        rewards_G=peer.rewards_G, finished_G=peer.finished_G, lengths_G=lengths_G, vouched=peer.vouched
    )
    if peer.vouched:
        return group
    return msgspec.structs.replace(
        group,
        logprobs_GT=None if logprobs_GT is None else tuple(map(tuple, logprobs_GT)),
        trusted_G=trusted_answers(recipe.checks, habits, peer.completions_G, lengths_G, logprobs_GT)
        if recipe.checks and habits
        else None,
        apart_GF=_apart(peer, mean) if mean and recipe.keeps_form else None,
    )


def _apart(peer: GroupRecord, mean: Form) -> tuple[Form, ...]:
    """Returns the difference of each answer's form from the own mean form. Shape: completions, FIGURES."""
    assert peer.logprobs_GT is not None, "a recipe that keeps the form asks for log-probs"
    return tuple(
        _less(forms.answer_form(text, len(logprobs_T), mean_logprob(logprobs_T)), mean)
        for text, logprobs_T in zip(peer.completions_G, peer.logprobs_GT, strict=True)
    )


def _own_rows(own: OwnTokens, weights_GT: Weights, recipe: Recipe, by_another: bool) -> list[Row]:
    """Returns the own sequences that carry weight. If another engine sampled them, its log-probs are used as an
    importance correction, not as PPO's old log-probs, which would clip rounding noise."""
    return [
        Row(
            prompt_T=own.prompt_T,
            completion_T=completion.tokens_T,
            weights_T=list(weights_T),
            old_logprobs_T=completion.logprobs_T if recipe.clip and not by_another else None,
            sampler_logprobs_T=completion.logprobs_T if by_another else None,
        )
        for completion, weights_T in zip(own.all_G, weights_GT, strict=True)
        if any(weights_T)
    ]


def _peer_rows(peer: GroupRecord, weights_GT: Weights) -> list[Row]:
    """Returns the peer's sequences that carry weight, without old log-probs, so their PPO ratio is 1."""
    return [
        Row(prompt_T=list(peer.prompt_T), completion_T=list(tokens_T), weights_T=list(weights_T))
        for tokens_T, weights_T in zip(peer.tokens_GT, weights_GT, strict=True)
        if any(weights_T)
    ]
