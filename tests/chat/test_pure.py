"""Texts, messages, puzzles and scores."""

from __future__ import annotations

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from app.chat import messages, terminal
from app.chat.puzzles import AnswerScorer, draw
from app.common.text import safe_text
from app.sapo.families import FAMILIES
from app.sapo.questions import QuestionError


@given(st.text(max_size=200))
def test_what_is_shown_obeys_nobody(text: str) -> None:
    shown = safe_text(text)
    assert all(char.isprintable() or char in "\n\u200c\u200d" for char in shown)
    assert safe_text(shown) == shown.strip("\n ")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]\n",
        b'{"type":"ask","number":1}\n',
        b'{"type":"ask","number":1,"text":"%s"}\n' % (b"x" * 8001),
        b'{"type":"draw","number":1,"level":-1}\n',
        b'{"type":"opened","number":1}\n',
        b'{"type":"ask","number":1,"text":"' + b"x" * messages.MAX_LINE + b'"}\n',
    ],
)
def test_bad_lines_are_refused_in_a_sentence(line: bytes) -> None:
    with pytest.raises(messages.ChatMessageError) as refusal:
        messages.read_request(line)
    assert "\n" not in str(refusal.value)


def test_a_person_is_asked_until_the_count_and_told_the_score() -> None:
    console = Console(file=io.StringIO(), width=120)
    assert terminal.solve("gcd", 0, 1, io.StringIO("nonsense\n"), console) == 0
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "wrong" in printed and "0 of 1" in printed


def test_puzzles_are_fresh_and_of_what_is_never_trained_on() -> None:
    first, second = (draw("chain_sum", 2, {}) for _ in range(2))
    assert first.text != second.text and (first.family, first.level) == ("chain_sum", 2)
    assert first.unseen and first.question.held_out
    usual = draw(None, None, {"gcd": 3}, random.Random(1))
    assert (usual.family, usual.level, usual.levels) == ("gcd", 3, 5)


@pytest.mark.parametrize(("family", "level"), [("nonsense", None), ("gcd", 99)])
def test_what_is_no_puzzle_is_a_sentence(family: str, level: int | None) -> None:
    with pytest.raises(QuestionError):
        draw(family, level, {})


def test_every_family_s_solution_is_right_and_another_answer_is_not() -> None:
    """The very sandbox that judges models."""
    verdicts = AnswerScorer()
    try:
        for family in FAMILIES:
            puzzle = draw(family, 0, {}, random.Random(family))
            assert verdicts.solved(puzzle, puzzle.solution), family
            assert not verdicts.solved(puzzle, "__import__('os').abort()"), family
            assert not verdicts.solved(puzzle, "x" * 5000) and not verdicts.solved(puzzle, ""), family
    finally:
        verdicts.close()


@pytest.mark.parametrize("width", [40, 76, 200])
def test_both_answers_fit_any_terminal(width: int) -> None:
    said = [
        messages.Said(
            number=1, side=side, text="4-1=3 #3 " * 9, finished=done, tokens=9, seconds=0.1, solved=done
        )
        for side, done in (("before", False), ("after", True))
    ]
    out = io.StringIO()
    Console(file=out, width=width).print(terminal.answer_panels(said, width))
    shown = out.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert "✗ wrong" in shown and "✓ right" in shown and "cut off" in shown
