"""What the tests of several engines ask, teach and compare."""

from __future__ import annotations

from engines.contract import Batch, Completion, Engine, Row, TokenSequence

PROMPTS = [[{"role": "user", "content": text}] for text in ("w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10 w11", "w2")]
PROMPT, OTHER = [5, 6, 7, 3], [8, 9, 3]
GOOD, BAD, LONG = [10, 11, 1], [12, 13, 1], [14, 15, 16, 17, 18, 19, 20]


def row(prompt: list[int], completion: list[int], weight: float, old: list[float] | None = None) -> Row:
    return Row(
        prompt_T=prompt, completion_T=completion, weights_T=[weight] * len(completion), old_logprobs_T=old
    )


def batch(*rows: Row, rate: float = 0.01, clip: tuple[float, float] | None = None) -> Batch:
    return Batch(rows_S=list(rows), learning_rate=rate, clip=clip)


ROWS = [row(PROMPT, GOOD, 1.0), row(PROMPT, BAD, -0.5), row(OTHER, LONG, 0.3), row(OTHER, GOOD, -0.2)]


def likelihood(engine: Engine, *pairs: tuple[list[int], list[int]]) -> list[float]:
    return [sum(x) for x in engine.logprobs([TokenSequence(prompt_T=p, completion_T=c) for p, c in pairs])]


def sequences(engine: Engine, groups: list[list[Completion]]) -> list[TokenSequence]:
    """Answers to PROMPTS."""
    return [
        TokenSequence(prompt_T=engine.prompt_tokens(prompt), completion_T=completion.tokens_T)
        for prompt, group in zip(PROMPTS, groups, strict=True)
        for completion in group
    ]


def worst(engine: Engine, groups: list[list[Completion]]) -> float:
    """Largest difference between the sampler's log-probabilities and the learner's."""
    learned = engine.logprobs(sequences(engine, groups))
    sampled = [completion.logprobs_T for group in groups for completion in group]
    return max(
        abs(a - b) for one, other in zip(learned, sampled, strict=True) for a, b in zip(one, other, strict=True)
    )


def move(engine: Engine, groups: list[list[Completion]], rate: float = 0.05) -> None:
    """A step that changes the model visibly."""
    told = enumerate(sequences(engine, groups))
    engine.step(batch(*(row(s.prompt_T, s.completion_T, 0.1 * (-1) ** i) for i, s in told), rate=rate))
