"""Prefix rescue: own answers behind the first part of a peer's right one.

Where own answers to a question are all wrong there is nothing to learn from. Behind the first part of a right
answer some come out right and some do not, and that is learned from: own tokens alone, so that no peer's token
is ever made likelier. How long a part is taken is found by bisection, for about half right (Prefix Sampling,
arXiv 2605.05112; BREAD, arXiv 2506.17211). Pure functions. Shapes: `_G` completions of a peer's group.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.learning.lesson import PeerTokens
from app.sapo.asking import OPEN, SHORT
from app.sapo.defences import Habits, trusted
from app.sapo.recipes import Recipe
from app.sapo.weighing import mean_logprob

TRIES = 2
"""How often own answers to one question are sampled at most: each try costs a whole group."""


def openings(answer: str) -> list[str]:
    """The first words of an answer, then more of them, shortest first; none reaches the mark of the answer.

    >>> openings("4-1=3 3+2=5 #5"), openings("#5"), openings("4-1 is 3. <answer>3</answer>")[-1]
    (['4-1=3', '4-1=3 3+2=5'], [], '4-1 is 3.')
    """
    words = answer.split(" ")
    marked = (at for at, word in enumerate(words) if SHORT in word or OPEN in word)
    return [" ".join(words[:length]) for length in range(1, next(marked, len(words) - 1) + 1)]


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What a peer's group gives to go on from, none where no right answer shows work; how many of its right
    answers passed the checks, and how many did not."""

    openings: list[str]
    taken: int
    kept_out: int


def begun(recipe: Recipe, habits: Habits | None, peer: PeerTokens) -> Begun:
    """The openings of right answers that pass the recipe's checks: those of the likeliest to the learner that
    has any."""
    assert peer.logprobs_GT is not None, "the likeliest answer is found by log-probs"
    texts_G = peer.scored.group.completions_G
    lengths_G = [len(sequence.completion_T) for sequence in peer.sequences_G]
    passed_G = (True,) * len(texts_G)
    if habits is not None:
        passed_G = trusted(recipe.checks, habits, texts_G, lengths_G, peer.logprobs_GT)
    rows_G = zip(texts_G, map(mean_logprob, peer.logprobs_GT), passed_G, peer.scored.rewards_G, strict=True)
    right = [(mean, passed, text) for text, mean, passed, reward in rows_G if reward]
    likely = [text for _, passed, text in sorted(right, reverse=True) if passed]
    return Begun(
        openings=next((found for text in likely if (found := openings(text))), []),
        taken=len(likely),
        kept_out=len(right) - len(likely),
    )


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """Which of a question's openings may still give about half right: from `low` to before `high`."""

    low: int
    high: int

    @property
    def at(self) -> int | None:
        """The one to try next, None where none is left.

        >>> Search(low=0, high=5).at, Search(low=0, high=1).at, Search(low=2, high=2).at
        (2, 0, None)
        """
        return (self.low + self.high) // 2 if self.low < self.high else None


def narrowed(search: Search, rewards_G: Sequence[int]) -> Search:
    """After answers behind `search.at`: all wrong asks for a longer opening, all right for a shorter one, and
    some right ends the search.

    >>> search = Search(low=0, high=5)
    >>> narrowed(search, [0, 0]), narrowed(search, [1, 1]), narrowed(search, [0, 1]).at
    (Search(low=3, high=5), Search(low=0, high=2), None)
    """
    at = search.at
    if at is None or len(set(rewards_G)) > 1:
        return Search(low=search.high, high=search.high)
    return Search(low=search.low, high=at) if any(rewards_G) else Search(low=at + 1, high=search.high)
