"""Before and after: what is kept of measurements, and what flipped between the first and the latest."""

from __future__ import annotations

from pathlib import Path

from app.node.history import flips
from app.node.history.flips import AnsweredQuestion, MeasuredAnswers
from app.node.history.history import newest
from app.node.record.records import Probe
from app.node.training_run import flips as used
from tests.node.bench import Bench, of


def measured(round: int, solved: str) -> MeasuredAnswers:
    answers = (
        AnsweredQuestion(
            question=f"{n}?", answer="=1" if one == "1" else "no", solved=one == "1", content=n // 2
        )
        for n, one in enumerate(solved)
    )
    return MeasuredAnswers(round=round, answers=tuple(answers))


def test_the_first_and_the_latest_are_compared(tmp_path: Path) -> None:
    flips.keep(tmp_path, "aa", measured(0, "0011"))
    assert flips.read(tmp_path, "aa") is None
    flips.keep(tmp_path, "aa", measured(2, "0000"))
    flips.keep(tmp_path, "aa", measured(5, "1101"))
    found = flips.read(tmp_path, "aa")
    assert found is not None and (found.first, found.latest) == (0, 5)
    assert [one.question for one in found.gained] == ["0?", "1?"] and [one.question for one in found.lost] == [
        "2?"
    ]
    assert found.difference == 0.25 and found.p_value == 1.0, (
        "two questions, each asked twice: one better, one worse"
    )
    assert found.csv().splitlines()[1] == "0?,no,0,'=1,1"
    flips.keep(tmp_path, "aa", measured(0, "1111"))
    assert flips.read(tmp_path, "aa") is None, "it started over"


def test_only_questions_that_both_asked_are_compared(tmp_path: Path) -> None:
    flips.keep(tmp_path, "aa", measured(0, "00"))
    flips.keep(tmp_path, "aa", measured(4, "011"))
    found = flips.read(tmp_path, "aa")
    assert found is not None and len(found.pairs) == 2 and len(found.gained) == 1
    assert flips.newest(tmp_path, "aa", 4) is None


def test_a_node_keeps_the_answers_of_its_curve(bench: Bench) -> None:
    seen = bench.run(rounds=4)
    curve = of(Probe, seen)
    found = used.newest(bench.home, curve[-1].questions_mark, curve[-1].round)
    assert found is not None and len(found.pairs) == curve[-1].questions
    assert (found.first, found.latest) == (curve[0].round, curve[-1].round)
    assert sum(one.now for one in found.pairs) == round(curve[-1].share * curve[-1].questions)
    assert round(found.difference, 9) == round(curve[-1].share - curve[0].share, 9)
    assert newest(bench.home) is not None
