"""From prompts to tokens and from tokens to completions, as every engine does it around its sampler."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engines.contract import Completion, EngineError, Heard, Messages, TokenSequence, TooLongError
from engines.models.tokens import ChatTokenizer

Told = Callable[[list[int]], bool]
"""Is told an answer's tokens so far; False ends it there."""
Sampled = tuple[list[int], list[float], bool]
"""Tokens with the end token, their log-probabilities, and whether the end token was reached."""


class ModelText:
    """What the model called `name` reads and writes, at most `context` tokens at a time."""

    def __init__(self, tokenizer: ChatTokenizer, name: str, context: int) -> None:
        self._tokenizer, self._name, self._context = tokenizer, name, context
        self.stops, self.talks = tokenizer.stops, tokenizer.talks

    def prompt(self, prompt: Messages) -> list[int]:
        return self._tokenizer.prompt(prompt)

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        return TokenSequence(
            prompt_T=self._tokenizer.prompt(prompt),
            completion_T=self._tokenizer.completion(completion, finished),
        )

    def read(self, prompts_P: Sequence[Messages], n: int, max_tokens: int) -> list[list[int]]:
        """Token ids of every prompt. Raises EngineError for what cannot be sampled from this model."""
        if n < 1 or max_tokens < 1:
            raise EngineError(
                f"{n} completions of {max_tokens} tokens can't be sampled: both must be at least 1."
            )
        tokens_P = [self._tokenizer.prompt(prompt) for prompt in prompts_P]
        longest = max(map(len, tokens_P), default=0)
        if longest + max_tokens > self._context:
            raise TooLongError(
                f"A prompt of {longest} tokens and {max_tokens} more exceed the {self._context} tokens "
                f"that {self._name} can read: choose shorter answers or another task."
            )
        return tokens_P

    def told(self, heard: Heard) -> Told:
        """Turns an answer's tokens into text; a character of which only some bytes are there has to wait."""

        def tell(tokens_T: list[int]) -> bool:
            return heard(self._tokenizer.texts([tokens_T])[0].rstrip("\ufffd"))

        return tell

    def write(self, groups_P: Sequence[Sequence[Sampled]]) -> list[list[Completion]]:
        """Sampled tokens with their text."""
        texts = iter(self._tokenizer.texts([ids for group in groups_P for ids, _, _ in group]))
        return [
            [
                Completion(tokens_T=ids, logprobs_T=logps, finished=finished, text=next(texts))
                for ids, logps, finished in group
            ]
            for group in groups_P
        ]
