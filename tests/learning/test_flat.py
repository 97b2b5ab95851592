"""Why nothing is gained: one cause for every kind of rounds."""

from __future__ import annotations

import pytest

from app.learning import flat
from app.learning.flat import FlatCause
from app.node.record.records import Round


def round_(**changes: float) -> Round:
    usual = {
        "round": 1,
        "seconds": 1.0,
        "own_groups": 8,
        "informative_own": 0,
        "train_solved": changes.get("train_solved", 0.0),
        "families": {"gcd": (0, int(64 * changes.get("train_solved", 0.0)), 64)},
        "finished_share": 1.0,
        "marked_share": 1.0,
    }
    return Round(**(usual | changes))


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({}, FlatCause.FAILING),
        ({"finished_share": 0.3, "marked_share": 0.4}, FlatCause.UNFINISHED),
        ({"finished_share": 0.3, "marked_share": 0.0}, FlatCause.FORMLESS),
        ({"marked_share": 0.03}, FlatCause.FORMLESS),
        ({"train_solved": 1.0}, FlatCause.PASSING),
        ({"train_solved": 0.4}, FlatCause.ALIKE),
        ({"informative_own": 3, "train_solved": 0.1}, None),
    ],
)
def test_the_answers_tell_why(changes: dict[str, float], cause: FlatCause | None) -> None:
    assert flat.find_cause([round_(**changes)] * flat.ROUNDS_JUDGED) is cause
    assert flat.find_cause([round_(**changes)] * (flat.ROUNDS_JUDGED - 1)) is None
    assert flat.find_cause([round_(informative_own=8)] * 9 + [round_(**changes)] * flat.ROUNDS_JUDGED) is cause


def test_a_lesson_is_no_sign() -> None:
    assert flat.find_cause([round_()] * (flat.ROUNDS_JUDGED - 1) + [round_(own_groups=0)]) is None
