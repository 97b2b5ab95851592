"""Peers' text as tokens of this node's own model. Part of the trainer process, which has the tokenizer and the
learner."""

from __future__ import annotations

from app.node.trainer.messages import Foreign, GroupTokens, ReadGroups
from engines.contract import Engine, EngineError, TokenSequence

PROMPT_TOKENS = 1024
"""A longer prompt is left out with its group; the longest of the families takes about 300."""


def read(engine: Engine, request: ReadGroups) -> list[GroupTokens | None]:
    """Every group as tokens, None for one that does not fit. Log-probs of all groups come from one call.

    Unfinished completions only count as failures in their group's mean, so they are cut to `max_tokens` and
    never measured.
    """
    sequences_PG = [encoded(engine, group, request.max_tokens) for group in request.groups_P]
    groups = list(zip(request.groups_P, sequences_PG, strict=True))
    if not request.logprobs:
        return [_reading(sequences_G, None) for _, sequences_G in groups]
    finished = [
        sequence
        for foreign, sequences_G in groups
        for sequence, done in zip(sequences_G or (), foreign.finished_G if sequences_G else (), strict=True)
        if done
    ]
    measured = iter(engine.logprobs(finished) if finished else [])
    return [
        _reading(
            sequences_G,
            [
                next(measured) if done else [0.0] * len(sequence.completion_T)
                for sequence, done in zip(sequences_G, foreign.finished_G, strict=True)
            ]
            if sequences_G
            else None,
        )
        for foreign, sequences_G in groups
    ]


def _reading(
    sequences_G: list[TokenSequence] | None, logprobs_GT: list[list[float]] | None
) -> GroupTokens | None:
    return None if sequences_G is None else GroupTokens(sequences_G=sequences_G, logprobs_GT=logprobs_GT)


def encoded(engine: Engine, group: Foreign, max_tokens: int) -> list[TokenSequence] | None:
    """A group's sequences, None when its prompt or a finished completion is too long or says nothing at all."""
    sequences_G = []
    for text, done in zip(group.completions_G, group.finished_G, strict=True):
        try:
            sequence = engine.encode(group.prompt, text, done)
        except EngineError:  # for example a chat template that refuses the prompt
            return None
        completion_T = sequence.completion_T
        if len(sequence.prompt_T) > PROMPT_TOKENS or (done and not 0 < len(completion_T) <= max_tokens):
            return None
        sequences_G.append(
            TokenSequence(
                prompt_T=sequence.prompt_T, completion_T=completion_T if done else completion_T[:max_tokens]
            )
        )
    return sequences_G
