"""The held-out probe: fixed questions on which progress is measured and which are never trained on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from app.sapo.questions import Coordinates, Question, QuestionError, generate
from app.sapo.seeds import held_out, probe_seed


def probe_questions(levels: Mapping[str, int], items: int) -> list[Question]:
    """`items` questions spread evenly over the families, distinct in text, the same for everyone and every
    time.

    Levels with very few different questions yield fewer items.
    """
    questions: list[Question] = []
    families = sorted(levels)
    for number, family in enumerate(families):
        wanted = (items + len(families) - 1 - number) // len(families)
        questions += _distinct(family, levels[family], wanted)
    return questions


def _distinct(family: str, level: int, wanted: int) -> list[Question]:
    found: dict[str, Question] = {}
    for item in range(wanted * 60):
        try:
            seed = probe_seed(family, level, item)
            question = generate(Coordinates(family=family, level=level, seed=seed, index=0))
        except QuestionError:
            continue  # an unsound item, see questions
        if held_out(question.text):
            found.setdefault(question.text, question)
            if len(found) == wanted:
                break
    return list(found.values())


def pass_at_1(solved_S: Sequence[int]) -> tuple[float, float]:
    """Share of solved questions and its standard error, sqrt(p (1-p) / n), one sample per question.

    >>> pass_at_1([1, 0, 0, 0])
    (0.25, 0.21650635094610965)
    """
    if not solved_S:
        raise ValueError("A probe without questions has no pass@1.")
    p = sum(solved_S) / len(solved_S)
    return p, math.sqrt(p * (1.0 - p) / len(solved_S))
