"""Our own verifiers: how right an answer is, judged by reading it strictly and never by running it.

The library's own scorers evaluate the answer as code in some families, hang or raise on hostile text in
others, and pay for answers that are not right. These are pure functions of the answer and the regenerated
entry: 1 exactly when the answer is right, something between where that is honest to show (it never trains),
else 0. `sound` says whether a question has a truth at all: the library's is false or ambiguous in some items,
and those are no questions here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from typing import Any

import msgspec

from app.sapo.asking import MAX_ANSWER
from app.sapo.scorers import arithmetic, dates, logic, rows, words

Entry = Mapping[str, Any]


def _always(entry: Entry) -> bool:
    return True


class Scorer(msgspec.Struct, frozen=True):
    """How a family is scored, and which of its items are questions."""

    score: Callable[[str, Entry], float]
    sound: Callable[[Entry], bool] = _always


SCORERS: Mapping[str, Scorer] = {
    "chain_sum": Scorer(arithmetic.integer),
    "basic_arithmetic": Scorer(arithmetic.integer, arithmetic.sound_expression),
    "gcd": Scorer(arithmetic.integer),
    "lcm": Scorer(arithmetic.integer),
    "fraction_simplification": Scorer(arithmetic.fraction, arithmetic.sound_fraction),
    "simple_equations": Scorer(arithmetic.equation, arithmetic.sound_equation),
    "base_conversion": Scorer(words.exact),
    "spell_backward": Scorer(words.exact),
    "count_bits": Scorer(arithmetic.integer),
    "number_sorting": Scorer(rows.sorting),
    "letter_counting": Scorer(arithmetic.integer, words.sound_letters),
    "caesar_cipher": Scorer(words.caesar, words.sound_caesar),
    "decimal_arithmetic": Scorer(arithmetic.decimal, arithmetic.sound_decimal),
    "calendar_arithmetic": Scorer(dates.calendar, dates.sound_calendar),
    "binary_matrix": Scorer(rows.distances, rows.sound_distances),
    "arc_1d": Scorer(rows.colours, rows.sound_colours),
    "bf": Scorer(words.exact),
    "propositional_logic": Scorer(logic.conclusion, logic.sound),
}


def score(family: str, answer: str, entry: Entry) -> float:
    """The raw score of an answer, in [0, 1]. An answer longer than MAX_ANSWER characters is no answer."""
    if len(answer) > MAX_ANSWER:
        return 0.0
    if answer == entry["answer"]:
        return 1.0
    return clamp(SCORERS[family].score(answer, entry))


def clamp(raw: float) -> float:
    """The nearest number in [0, 1]; 0 for NaN."""
    return 0.0 if isnan(raw) else min(max(raw, 0.0), 1.0)


def sound(family: str, entry: Entry) -> bool:
    """Whether the entry is a question with one meaning and a true answer."""
    return SCORERS[family].sound(entry)


def solution(family: str, entry: Entry) -> str:
    """An answer to a sound question that scores 1."""
    if family == "propositional_logic":
        return logic.solution(entry) or ""
    return str(entry["answer"])
