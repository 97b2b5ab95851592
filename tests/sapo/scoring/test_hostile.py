"""Hostile answers against every family: no point, no exception, no hang, nothing run."""

from __future__ import annotations

import string
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.sapo.asking import MAX_ANSWER, extract_answer
from app.sapo.families import FAMILIES
from app.sapo.questions import Question, draw
from app.sapo.scoring.sandbox import Sandbox
from tests.sapo.levels import LEVELS, spread

FULL_WIDTH = str.maketrans({c: chr(ord(c) + 0xFEE0) for c in string.digits + string.ascii_letters + "-+/."})
ARABIC = str.maketrans(string.digits, "٠١٢٣٤٥٦٧٨٩")


def payloads(canary: Path) -> list[str]:
    """Code that would leave a file behind if anything ran it."""
    write = f"__import__('pathlib').Path({str(canary)!r}).write_text('x')"
    return [
        write,
        f"[{write}]",
        f"[[{write}]]",
        f"['1', {write}]",
        f"({write}, 1)[1]",
        f"(lambda: {write})()",
        f"{{{write}}}",
        f'f"{{{write}}}"',
        f"exec({write!r})",
        f"[x for x in [{write}]]",
        f"\\frac{{{write}}}{{1}}",
        f"$({write})$",
        f"'; {write} #",
        f"P ∧ {write}",
        f"{write}/1",
    ]


BOMBS = [
    "9**9**9**9",
    "9**9**9",
    "1e999999999",
    "1E999999999",
    "-1E-999999999",
    "1" + "0" * 500,
    "9" * 5000,
    "-" + "9" * 511,
    "0." + "3" * 500,
    "1/" + "9" * 500,
    "9" * 200 + "/" + "9" * 200,
    r"\frac{" + "1" * 200 + "}{" + "3" * 200 + "}",
    "factorial(99999999)",
    "(((((1<<99999)<<99999)<<99999)))",
    "[" * 500,
    "[" * 250 + "]" * 250,
    "(" * 1500 + "P" + ")" * 1500,
    "(" * 250 + "P" + ")" * 250,
    "¬" * 3000 + "P",
    "¬" * 500 + "P",
    "P ∧ " * 100 + "P ∧ ¬P",
    "P → " * 120 + "P",
    "a" * 1_000_000,
    "1" * 1_000_000,
    "0 " * 1_000_000,
    "1," * 1_000_000,
    "1," * 250,
    "\n" * 500 + "x",
    " " * 500 + "x",
    "{}" * 200,
    "$" * 500,
    "'" * 500,
    "\\frac{" * 80,
    "1" + ",000" * 120,
]

ODD = [
    "True",
    "False",
    "None",
    "NaN",
    "nan",
    "sNaN",
    "-nan",
    "inf",
    "-Infinity",
    "1j",
    "0x10",
    "0b1",
    "1_0",
    "½",
    "Ⅷ",
    "٣",
    "١٢",
    "１２",
    "𝟏𝟐",
    "²",
    "\0",
    "\0" * 100,
    "5\0",
    "\ud800",
    "\udfff\ud800",
    "5\ud800",
    "\u202e5",
    "\u200f",
    "\ufeff",
    "\u2028",
    "\x1b[2J",
    "\r",
    "%s%s%n",
    "{0.__class__}",
    "../../etc/passwd",
    "<answer>",
    "</answer>",
    "#",
    "P ∧ ¬P",
    "P ∨ ¬P",
    "P ↔ P",
    "P → P",
    "⊥",
    "P | ~P",
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
    "Yes No",
    "Yes or No",
    "0123456789",
    "0 1 2 3 4 5 6 7 8 9",
    " ".join(str(number) for number in range(150)),
    string.ascii_letters,
    "[]",
    "[[]]",
    "{}",
    '""',
    "''",
    "/",
    "1/0",
    "0/0",
    "-",
    "+",
    ".",
    ",",
    "=",
    "x =",
    "hello world",
    "any",
    "*",
]


def about(truth: str, other: str) -> list[str]:
    """Answers that contain or resemble the truth, but are not it."""
    return [
        f"The answer is {truth}",
        f"{truth} I think",
        f"{truth} or {other}",
        f"{other} or {truth}",
        f"{truth}\n{other}",
        f"{truth}; {other}",
        f"{truth} {truth}",
        f"{truth}\0",
        f"\0{truth}",
        f"{truth}\ud800",
        f"\u202e{truth}",
        f"{truth}\u200b",
        f"\ufeff{truth}",
        f"\u3000{truth}",
        f"{truth}\x1f",
        f"<answer>{truth}</answer>",
        f"#{truth}",
        f"`{truth}`",
        f"**{truth}**",
        f"({truth}, {truth})",
        f"{truth}e0",
        f"{truth}==1 or True",
        f"str({truth!r})",
        truth + "#" * 400,
        truth.translate(FULL_WIDTH),
    ]


def question_of(family: str, level: int, seed: int = 11) -> Question:
    return draw(family, level, seed * 10**8)


@spread(0)
def test_hostile_answers_earn_nothing(family: str, level: int, sandbox: Sandbox, tmp_path: Path) -> None:
    question = question_of(family, level)
    truth = FAMILIES[family].solution(question.entry)
    other = FAMILIES[family].solution(question_of(family, level, seed=12).entry)
    canary = tmp_path / "canary"
    hostile = [*payloads(canary), *BOMBS, *ODD, *about(truth, other)]
    if any(character.isdigit() for character in truth):
        hostile.append(truth.translate(ARABIC))
    if family == "propositional_logic":
        hostile.remove(f"{truth} {truth}")
        hostile.append(f"{truth} ∨ ¬({truth})")

    hostile = [text for text in hostile if text.strip() != truth]  # to some questions it is the answer

    given = sandbox.score(question.coordinates, [truth, *hostile, truth])
    pid = sandbox.pid

    assert given[0] == given[-1] == 1.0
    paid = [(text[:60], score) for text, score in zip(hostile, given[1:-1], strict=True) if score]
    assert all(score == 0.25 for _, score in paid), paid
    assert sandbox.score(question.coordinates, hostile) == given[1:-1]
    assert sandbox.pid == pid, "an answer cost the child its life"
    assert not canary.exists()


@pytest.mark.parametrize("family", FAMILIES)
def test_scorers_survive_hostile_text_also_without_the_sandbox(family: str, tmp_path: Path) -> None:
    entry = question_of(family, 1).entry
    canary = tmp_path / "canary"
    for text in [*payloads(canary), *BOMBS, *ODD]:
        if text.strip() == FAMILIES[family].solution(entry):
            continue
        assert FAMILIES[family].judge(text, entry) == 0.0 or family == "propositional_logic"
        assert FAMILIES[family].score(text[:100_000], entry) in (0.0, 0.25)
    assert not canary.exists()


@cache
def entry_of(key: tuple[str, int]) -> Any:
    return question_of(*key).entry


ANYTHING = st.text(st.characters(exclude_categories=()), max_size=600)
NEAR = st.text("0123456789+-.,/ []'\"\n$\\{}frac=xPQRS∧∨¬→↔()eE_", max_size=80)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(key=st.sampled_from(LEVELS), text=st.one_of(ANYTHING, NEAR))
def test_any_text_gets_a_score(key: tuple[str, int], text: str) -> None:
    assert 0.0 <= FAMILIES[key[0]].judge(text, entry_of(key)) <= 1.0
    assert 0.0 <= FAMILIES[key[0]].score(text, entry_of(key)) <= 1.0


TAGS = st.sampled_from(
    ["<answer>", "</answer>", "#", " ", "\n", "5", "<answer", "answer>", "\0", "\ud800", "a" * 300]
)


@settings(max_examples=300)
@given(st.one_of(ANYTHING, st.lists(TAGS, max_size=12).map("".join)))
def test_extraction_takes_at_most_one_short_answer(completion: str) -> None:
    answer = extract_answer(completion)
    if answer is None:
        return
    assert 0 < len(answer) <= MAX_ANSWER and answer == answer.strip() and answer in completion
    assert ("<answer>" if "</answer>" in completion else "#") not in answer


def test_extraction_of_long_completions() -> None:
    assert extract_answer("<answer>" * 100_000) is None
    assert extract_answer("</answer>" * 100_000) is None
    assert extract_answer("#" * 1_000_000) is None
    assert extract_answer("x" * 1_000_000 + "<answer>5</answer>") == "5"
    assert extract_answer("<answer>" + "5" * 1_000_000 + "</answer>") is None
