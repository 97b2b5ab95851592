"""A made-up swarm for tests without torch: each node has one number, how likely it is to work an answer out.

Worked answers ("w #-4") to sums are right with probability WORKED, direct ones ("#-4") with GUESSED. A step
moves the number by the gradient of the first token's log-probability, so learning that working pays can really
be watched.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from random import Random

from engines.contract import Batch, Completion, Messages, StepStats, TokenSequence

WORKED, GUESSED, UNFINISHED = 0.5, 0.05, 0.1
END = 0
GAIN = 3000.0


class FakeSwarm:
    def __init__(self, nodes: int, start: float = -2.0) -> None:
        self.lean = [start] * nodes
        self.asked: list[tuple[int, list[list[str]]]] = []
        """For every call of `sample` how many answers each question got, and the questions node by node."""
        self.systems: set[str] = set()
        """The system lines that came with the questions."""
        self.sampled = 0
        self.batches: list[tuple[int, Batch]] = []
        self.foreign: list[tuple[str, bool]] = []

    def prompt_tokens(self, prompt: Messages) -> list[int]:
        question, opening = _parts(prompt)
        return [ord(character) for character in question + opening]

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        self.foreign.append((completion, finished))
        return TokenSequence(prompt_T=self.prompt_tokens(prompt), completion_T=_tokens(completion, finished))

    def sample(
        self, prompts_NP: Sequence[Sequence[Messages]], n: int, max_tokens: int, seeds_N: Sequence[int]
    ) -> list[list[list[Completion]]]:
        questions_NP = [[_parts(prompt)[0] for prompt in prompts_P] for prompts_P in prompts_NP]
        self.asked.append((n, questions_NP))
        self.systems |= {prompt[0]["content"] for prompts_P in prompts_NP for prompt in prompts_P}
        groups_NPG = []
        for node, (prompts_P, seed) in enumerate(zip(prompts_NP, seeds_N, strict=True)):
            rng = Random(seed)
            groups_NPG.append([[self._answer(node, prompt, rng) for _ in range(n)] for prompt in prompts_P])
        self.sampled += n * sum(map(len, prompts_NP))
        return groups_NPG

    def logprobs(self, node: int, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        return [
            [self._first(node, sequence.completion_T)] + [0.0] * (len(sequence.completion_T) - 1)
            for sequence in sequences_S
        ]

    def base_logprobs(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        return self.logprobs(0, sequences_S)

    def step(self, node: int, batch: Batch) -> StepStats:
        self.batches.append((node, batch))
        works = self._works(node)
        for row in batch.rows_S:
            slope = 1.0 - works if row.completion_T[0] == ord("w") else -works
            self.lean[node] += GAIN * batch.learning_rate * slope * sum(row.weights_T)
        tokens = sum(len(row.completion_T) for row in batch.rows_S)
        return StepStats(
            loss=0.0, grad_norm=0.0, rows=len(batch.rows_S), tokens=tokens, micro_batches=1, seconds=0.0
        )

    def _works(self, node: int) -> float:
        return 1.0 / (1.0 + math.exp(-self.lean[node]))

    def _first(self, node: int, completion_T: Sequence[int]) -> float:
        works = self._works(node)
        return math.log(works if completion_T[0] == ord("w") else 1.0 - works)

    def _answer(self, node: int, prompt: Messages, rng: Random) -> Completion:
        question, opening = _parts(prompt)
        truth = sum(int(term.replace(" ", "")) for term in re.findall(r"[+-]? ?\d+", question))
        worked = bool(opening) or rng.random() < self._works(node)
        right = rng.random() < (WORKED if worked else GUESSED)
        finished = rng.random() > UNFINISHED
        start = " " if opening else "w " if worked else ""
        text = start + f"#{truth if right else truth + 1}"
        tokens_T = _tokens(text, finished)
        logprobs_T = [self._first(node, tokens_T)] + [0.0] * (len(tokens_T) - 1)
        return Completion(tokens_T=tokens_T, logprobs_T=logprobs_T, finished=finished, text=text)


def _parts(prompt: Messages) -> tuple[str, str]:
    """The question, and the opening of an answer that is to be gone on with."""
    if prompt[-1]["role"] == "assistant":
        return prompt[-2]["content"], prompt[-1]["content"]
    return prompt[-1]["content"], ""


def _tokens(text: str, finished: bool) -> list[int]:
    return [ord(character) for character in text] + [END] * finished
