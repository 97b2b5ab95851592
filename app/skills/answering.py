"""Answers questions with an engine as a skill does: the likeliest label, or the greedy reply.

A label's probability is that of its tokens and the end token under the prompt, normalised over all labels; the
prompt is read once for all of them. A free answer's is the probability of the whole reply."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from engines.contract import GREEDY_TEMPERATURE, Engine, EngineError, Messages, TokenSequence

_AT_ONCE = 16
"""Questions per call of the sampler."""


class SkillAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, its probability in [0, 1], and for a choice the probability of each label. `tokens`: length of
    the question and of the answer in tokens."""

    text: str
    sure: float
    labels: dict[str, float] = {}
    finished: bool = True
    tokens: tuple[int, int] = (0, 0)


class AskedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it is told. `sure`: its probability; `labels`: that of every label of a choice; `right` of
    `of`: how many of the held-out rows that were about as sure were right."""

    answer: str
    sure: float
    labels: dict[str, float] = {}
    right: int = 0
    of: int = 0
    work: str = ""


class LeastSure(msgspec.Struct, frozen=True, kw_only=True):
    """A text without an answer, the skill's own one, and how sure it is of that, in [0, 1]."""

    text: str
    answer: str
    sure: float


def answer(
    engine: Engine, prompts_P: Sequence[Messages], labels: Sequence[str], max_tokens: int
) -> list[SkillAnswer | None]:
    """Returns an answer to each prompt, None for one that is longer than the model reads. Raises
    EngineError."""
    if labels:
        return _labelled(engine, prompts_P, labels)
    found: list[SkillAnswer | None] = []
    for first in range(0, len(prompts_P), _AT_ONCE):
        found += _free(engine, prompts_P[first : first + _AT_ONCE], max_tokens)
    return found


def _labelled(engine: Engine, prompts_P: Sequence[Messages], labels: Sequence[str]) -> list[SkillAnswer | None]:
    sequences_PL = [_encoded(engine, prompt, labels) for prompt in prompts_P]
    logprobs_S = iter(engine.logprobs([one for sequences_L in sequences_PL for one in sequences_L or ()]))
    found: list[SkillAnswer | None] = []
    for sequences_L in sequences_PL:
        if sequences_L is None:
            found.append(None)
            continue
        shares = softmax([math.fsum(next(logprobs_S)) for _ in sequences_L])
        best = max(range(len(labels)), key=shares.__getitem__)
        found.append(
            SkillAnswer(
                text=labels[best],
                sure=shares[best],
                labels=dict(zip(labels, shares, strict=True)),
                tokens=(len(sequences_L[best].prompt_T), len(sequences_L[best].completion_T)),
            )
        )
    return found


def _free(engine: Engine, prompts_P: Sequence[Messages], max_tokens: int) -> list[SkillAnswer | None]:
    fits = [_encoded(engine, prompt, ("",), max_tokens) is not None for prompt in prompts_P]
    asked = [prompt for prompt, one in zip(prompts_P, fits, strict=True) if one]
    groups = engine.sample(asked, 1, max_tokens, 0, temperature=GREEDY_TEMPERATURE) if asked else []
    said = [
        TokenSequence(prompt_T=engine.prompt_tokens(prompt), completion_T=group[0].tokens_T)
        for prompt, group in zip(asked, groups, strict=True)
    ]
    answers = iter(
        SkillAnswer(
            text=group[0].text.strip(),
            sure=math.exp(math.fsum(logprobs_T)),
            finished=group[0].finished,
            tokens=(len(sequence.prompt_T), len(sequence.completion_T)),
        )
        for group, sequence, logprobs_T in zip(groups, said, engine.logprobs(said) if said else [], strict=True)
    )
    return [next(answers) if one else None for one in fits]


def _encoded(
    engine: Engine, prompt: Messages, replies: Sequence[str], more: int = 0
) -> list[TokenSequence] | None:
    """Returns the prompt with each reply as tokens; None if it doesn't fit, with `more` tokens after it."""
    try:
        found = [engine.encode(prompt, reply, True) for reply in replies]
    except EngineError:
        return None
    longest = max(len(one.prompt_T) + len(one.completion_T) for one in found)
    return found if longest + more <= (engine.info.context or longest + more) else None


def softmax(logits: Sequence[float]) -> list[float]:
    """Returns the shares that sum to 1.

    >>> softmax([math.log(3), 0.0])
    [0.75, 0.25]
    """
    most = max(logits)
    weights = [math.exp(one - most) for one in logits]
    return [one / math.fsum(weights) for one in weights]
