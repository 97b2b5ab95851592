"""Groups that are almost the same, no matter who signed them: one poisonous text under many keys, or a copied
group.

A group is known by a sketch of its text: of all its runs of eight characters, hashed with a secret of this
process, the 128 smallest. The share of one sketch that is in the other estimates how much of one text is in the
other (Broder, "On the resemblance and containment of documents", 1997). Honest answers to questions of one
family may share three quarters where a model works by a fixed pattern, so only nine tenths and more count.
"""

from __future__ import annotations

import secrets
from array import array
from collections import deque
from collections.abc import Sequence
from heapq import nsmallest
from typing import TypeAlias

RUN = 8
SKETCH = 128
ALIKE = 0.9
"""The share of a sketch in common from which on two groups are the same."""
FIRST, FIRST_ALIKE = 24, 0.6
"""The smallest of a sketch are a sketch themselves: most groups differ in those already."""
REMEMBERED = 1024
SHORT = 240
"""Characters of a group that says too little to be compared with answers to other questions."""

Sketch: TypeAlias = "array[int]"


class Likeness:
    """The sketches of the latest groups, a kilobyte each."""

    __slots__ = ("_latest", "_secret")

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._latest: deque[Sketch] = deque(maxlen=remembered)
        self._secret = secrets.token_bytes(8)

    def sketch(self, question: str, completions_G: Sequence[str]) -> Sketch:
        """Case, blanks and the order of the completions do not matter. A short group is sketched with its
        question: "#3" is the answer to many."""
        texts = sorted("".join(text.split()).casefold() for text in completions_G)
        about = question if sum(map(len, texts)) < SHORT else ""
        salt = hash((self._secret, about))
        runs = {text[at : at + RUN] for text in texts for at in range(max(1, len(text) - RUN + 1))}
        if about:  # then the number of equal completions says something, too
            runs |= {f"{texts.count(text)}\0{text}" for text in texts}
        return array(
            "Q", sorted(nsmallest(SKETCH, {hash((salt, run)) & 0xFFFF_FFFF_FFFF_FFFF for run in runs}))
        )

    def alike(self, sketch: Sketch) -> bool:
        """Whether one of the latest groups is almost the same."""
        mine, first = frozenset(sketch), frozenset(sketch[:FIRST])
        return any(
            len(first.intersection(other[:FIRST])) >= FIRST_ALIKE * len(first)
            and len(mine.intersection(other)) >= ALIKE * max(len(mine), len(other))
            for other in self._latest
        )

    def remember(self, sketch: Sketch) -> None:
        self._latest.append(sketch)

    def __len__(self) -> int:
        return len(self._latest)
