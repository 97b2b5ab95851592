"""The held-out probe: fixed questions on which progress is measured and which are never trained on."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import msgspec

from app.sapo.questions import Coordinates, QuestionMaker, QuestionPrompt, make
from app.sapo.seeds import probe_seed

_AHEAD, _FEWEST = 9, 32
"""Candidates tried per batch: _AHEAD for each missing question, slightly more than HELD_OUT_SHARE, but at least
_FEWEST. The questions found do not depend on these numbers."""


def probe_questions(levels: Mapping[str, int], items: int, make: QuestionMaker = make) -> list[QuestionPrompt]:
    """Returns `items` questions spread evenly over the families, identical for every node and every time. If a
    level has fewer distinct held-out contents than its share, each is repeated several times in a row, so that
    all families weigh the same."""
    questions: list[QuestionPrompt] = []
    families = sorted(levels)
    for number, family in enumerate(families):
        wanted = (items + len(families) - 1 - number) // len(families)
        distinct = _distinct(family, levels[family], wanted, make)
        times = [(wanted + len(distinct) - 1 - place) // len(distinct) for place in range(len(distinct))]
        questions += [one for one, many in zip(distinct, times, strict=True) for _ in range(many)]
    return questions


def _distinct(family: str, level: int, wanted: int, make: QuestionMaker) -> list[QuestionPrompt]:
    found: dict[int, QuestionPrompt] = {}
    tried = 0
    while len(found) < wanted and tried < wanted * 60:
        end = min(wanted * 60, tried + max(_FEWEST, _AHEAD * (wanted - len(found))))
        places = [_candidate(family, level, item) for item in range(tried, end)]
        for question in make(places):
            if (
                isinstance(question, QuestionPrompt) and question.held_out
            ):  # else an unsound item, see questions
                found.setdefault(question.content, question)
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


def score(solved_S: Sequence[int], questions_S: Sequence[Hashable] = ()) -> Score:
    """Returns the mean and its standard error: sqrt(p (1-p) / n) with one sample per question. With several
    samples of a question (`questions_S`) the error is clustered: it is computed from each question's sum of
    deviations.

    >>> score([1, 0, 0, 0]), str(score([1, 0, 0, 0]))
    (Score(share=0.25, stderr=0.21650635094610965), '25.0 % ± 21.7')
    >>> str(score([1, 1, 0, 0], "abcd")), str(score([1, 1, 0, 0], "aabb"))
    ('50.0 % ± 25.0', '50.0 % ± 35.4')
    """
    if not solved_S:
        raise ValueError("A probe without questions has no pass@1.")
    p = sum(solved_S) / len(solved_S)
    if len(set(questions_S)) in (0, len(solved_S)):
        return Score(share=p, stderr=math.sqrt(p * (1.0 - p) / len(solved_S)))
    apart: dict[Hashable, float] = {}
    for solved, question in zip(solved_S, questions_S, strict=True):
        apart[question] = apart.get(question, 0.0) + solved - p
    return Score(share=p, stderr=math.sqrt(sum(value * value for value in apart.values())) / len(solved_S))


def wilson(share: float, n: int, z: float = 1.0) -> tuple[float, float]:
    """Returns the Wilson score interval of a share seen in `n` trials, with `z` standard errors (Wilson 1927,
    equation for p).

    >>> wilson(0.5, 100), wilson(0.0, 28)
    ((0.4502, 0.5498), (0.0, 0.0345))
    """
    if n <= 0:
        return 0.0, 1.0
    centre = share + z * z / (2 * n)
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    low, high = (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)
    return round(max(0.0, low), 4), round(min(1.0, high), 4)


def confidence_interval(score: Score, questions: int) -> tuple[float, float]:
    """Returns the 95 % confidence interval of the true share: 1.96 standard errors around it, or Wilson's
    interval if the standard error is 0, because none or all of the questions were solved.

    >>> confidence_interval(Score(share=0.5, stderr=0.03), 256)
    (0.4412, 0.5588)
    >>> confidence_interval(Score(share=0.0, stderr=0.0), 28)
    (0.0, 0.1206)
    """
    if not score.stderr:
        return wilson(score.share, questions, z=1.96)
    half = 1.96 * score.stderr
    return round(max(0.0, score.share - half), 4), round(min(1.0, score.share + half), 4)
