"""Our scorers: every truth scores 1, that of another question 0, and formulas mean what the library means."""

from __future__ import annotations

import importlib
from collections import Counter

import pytest

from app.sapo import library
from app.sapo.families import FAMILIES
from app.sapo.families.family import clamp
from app.sapo.questions import draw
from app.sapo.reading import formula
from tests.sapo.levels import spread

SEVERAL = {"propositional_logic": 0.25, "shortest_path": 1, "n_queens": 1, "graph_color": 1}
"""Families whose questions have several right answers, and the least that the library pays for one: for what
follows at all it pays 0.25 or 1."""


@spread(2)
def test_the_truth_scores_1_and_the_truths_of_other_questions_0(family: str, level: int) -> None:
    entries = [draw(family, level, seed * 10**8 + 7).entry for seed in range(20)]
    for i, entry in enumerate(entries):
        truth = FAMILIES[family].solution(entry)
        assert FAMILIES[family].judge(truth, entry) == 1.0
        assert FAMILIES[family].judge(f" {truth}\n", entry) == 1.0
        for other in (entries[i - 1], entries[i - 2]):
            theirs = FAMILIES[family].solution(other)
            if family in SEVERAL:
                # The library reads this text of ours without harm.
                right = library.gym().get_score_answer_fn(family)(theirs, entry) >= SEVERAL[family]
                assert right or FAMILIES[family].judge(theirs, entry) == 0.0
            elif theirs.lower() != truth.lower():
                assert FAMILIES[family].judge(theirs, entry) < 0.99


@pytest.mark.parametrize("level", range(3))
def test_truth_tables_agree_with_the_library(level: int) -> None:
    library.gym()
    theirs = importlib.import_module("reasoning_gym.logic.propositional_logic").Expression
    for seed in range(40):
        metadata = draw("propositional_logic", level, seed * 10**7).entry["metadata"]
        variables = metadata["variables"]
        for text in [*metadata["premises"], metadata["example_answer"]]:
            table = formula.truth_table(text, variables)
            for row in range(1 << len(variables)):
                values = {name: bool(row >> i & 1) for i, name in enumerate(variables)}
                assert bool(table >> row & 1) == theirs.from_string(text).evaluate(values)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("¬P ∧ Q", "(¬P) ∧ Q"),
        ("P ∨ Q ∧ R", "P ∨ (Q ∧ R)"),
        ("P → Q ∨ R", "P → (Q ∨ R)"),
        ("P ↔ Q → R", "P ↔ (Q → R)"),
        ("P ↔ Q ↔ R", "(P ↔ Q) ↔ R"),
        ("¬¬¬P", "¬P"),
        ("P→Q", "¬P ∨ Q"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert formula.truth_table(text, "PQR") == formula.truth_table(same, "PQR")


def test_a_formula_has_limits() -> None:
    assert formula.truth_table("(" * 32 + "P" + ")" * 32, "P") == 0b10
    for text in ("(" * 33 + "P" + ")" * 33, "¬" * 256 + "P", "P ∧ " * 200 + "P"):
        with pytest.raises(formula.FormulaError):
            formula.truth_table(text, "P")


@pytest.mark.parametrize("level", range(3))
def test_no_constant_and_no_copied_premises_solve_the_logic_family(level: int) -> None:
    """With the library's rule the constant answer `P ∨ Q` solves 69 % of its items or more."""
    solved: Counter[str] = Counter()
    for seed in range(60):
        entry = draw("propositional_logic", level, seed * 10**7).entry
        premises = entry["metadata"]["premises"]
        copies = [
            *premises,
            " ∧ ".join(premises),
            " ∨ ".join(premises),
            " ↔ ".join(premises),
            f"{premises[0]} ∨ P",
        ]
        assert not any(FAMILIES["propositional_logic"].judge(copy, entry) == 1.0 for copy in copies)
        for constant in formula.shortest_formulas(("P", "Q", "R")).values():
            solved[constant] += FAMILIES["propositional_logic"].judge(constant, entry) == 1.0
    assert max(solved.values()) / 60 < 0.4


def test_raw_scores_are_clamped() -> None:
    assert [clamp(raw) for raw in (float("nan"), -1.0, 0.3, 7.0)] == [0.0, 0.0, 0.3, 1.0]
