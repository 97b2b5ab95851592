"""The held-out probe: fixed questions on which progress is measured and which are never trained on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from app.sapo.questions import Asked, Coordinates, Maker, make
from app.sapo.seeds import probe_seed

_AHEAD, _FEWEST = 9, 32
"""Candidates tried at a time: for each missing question a few more than HELD_OUT_SHARE, as one in so many is
held out, and no fewer than a child makes in one breath. The questions found do not depend on it."""


def probe_questions(levels: Mapping[str, int], items: int, make: Maker = make) -> list[Asked]:
    """`items` questions spread evenly over the families, distinct in text, the same for everyone and every
    time.

    Levels with very few different questions yield fewer items.
    """
    questions: list[Asked] = []
    families = sorted(levels)
    for number, family in enumerate(families):
        wanted = (items + len(families) - 1 - number) // len(families)
        questions += _distinct(family, levels[family], wanted, make)
    return questions


def _distinct(family: str, level: int, wanted: int, make: Maker) -> list[Asked]:
    found: dict[str, Asked] = {}
    tried = 0
    while len(found) < wanted and tried < wanted * 60:
        end = min(wanted * 60, tried + max(_FEWEST, _AHEAD * (wanted - len(found))))
        places = [_candidate(family, level, item) for item in range(tried, end)]
        for question in make(places):
            if isinstance(question, Asked) and question.held_out:  # else an unsound item, see questions
                found.setdefault(question.text, question)
        tried = end
    return list(found.values())[:wanted]


def _candidate(family: str, level: int, item: int) -> Coordinates:
    return Coordinates(family=family, level=level, seed=probe_seed(family, level, item), index=0)


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Share of held-out questions solved at the first try, and its standard error, both in [0, 1]."""

    share: float = msgspec.field(name="pass_at_1")
    stderr: float

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} % ± {100 * self.stderr:.1f}"


def score(solved_S: Sequence[int]) -> Score:
    """The standard error is sqrt(p (1-p) / n), one sample per question.

    >>> score([1, 0, 0, 0]), str(score([1, 0, 0, 0]))
    (Score(share=0.25, stderr=0.21650635094610965), '25.0 % ± 21.7')
    """
    if not solved_S:
        raise ValueError("A probe without questions has no pass@1.")
    p = sum(solved_S) / len(solved_S)
    return Score(share=p, stderr=math.sqrt(p * (1.0 - p) / len(solved_S)))
