"""The starter's worked lines: without slips, the work of every family ends in the truth."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from app.lab.starter.corpus import WORK, DataMix, WorkingFailed, examples, guess, worked
from app.sapo.asking import extract_answer
from app.sapo.probe import probe_questions
from app.sapo.questions import draw

"""Held out by their numbers in any order, not by text (tests/sapo/test_families.py)."""


@pytest.mark.parametrize("family", sorted(WORK))
@pytest.mark.parametrize("level", [0, 1])
def test_careful_work_ends_in_the_truth(family: str, level: int) -> None:
    for number in range(150):
        question = draw(family, level, 7_000_000 + number)
        try:
            line = worked(family, question.entry, Random(number), slip=0.0)
        except WorkingFailed:
            continue
        assert extract_answer(line) == question.entry["answer"], (question.text, line)


def test_few_questions_leave_the_work_stuck() -> None:
    stuck = 0
    for family in WORK:
        for number in range(50):
            question = draw(family, 1, 9_000_000 + number)
            try:
                worked(family, question.entry, Random(0), slip=0.0)
            except WorkingFailed:
                stuck += 1
    assert stuck < 50 * len(WORK) // 20


def test_a_slip_carries_on_into_the_answer() -> None:
    question = draw("chain_sum", 1, 3)
    lines = {worked("chain_sum", question.entry, Random(n), slip=1.0) for n in range(20)}
    assert all(extract_answer(line) == line.split()[-2].split("=")[1] for line in lines)
    assert len(lines) > 5


def test_a_spoiled_guess_is_never_right() -> None:
    for family in WORK:
        for number in range(60):
            question = draw(family, 1, 5_000_000 + number)
            assert guess(family, question.entry, Random(number), wrong=0.0) == f"#{question.entry['answer']}"
            spoiled = guess(family, question.entry, Random(number), wrong=1.0)
            palindrome = family == "spell_backward" and len(set(question.entry["answer"])) < len(
                question.entry["answer"]
            )
            assert palindrome or spoiled != f"#{question.entry['answer']}", (question.text, spoiled)


def test_the_corpus_is_reproducible_mixed_and_free_of_held_out_questions() -> None:
    mix = DataMix(worked_share=0.2)
    lines = list(islice(examples(mix, seed=11), 1500))
    assert lines[:200] == list(islice(examples(mix, seed=11), 200))
    held_out = {question.text for question in probe_questions(dict.fromkeys(WORK, 1), 400)}
    assert not held_out & {line.question for line in lines}
    assert {line.family for line in lines} == set(WORK)
    shown = sum(not line.completion.startswith("#") for line in lines) / len(lines)
    assert 0.14 < shown < 0.24
