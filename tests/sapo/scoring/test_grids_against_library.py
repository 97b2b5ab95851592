"""Grids and paths: our scorers against the library's on the same answers, every difference with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from app.sapo import library
from app.sapo.families import FAMILIES
from app.sapo.questions import draw

Entry = Any
CHARACTERS = "0123456789 \n_Q-+.,:{}[]()'\"#abcdefinrtuw٣½\0"


def changed(text: str, random: Random) -> str:
    """The text with one to three characters inserted, deleted or replaced."""
    for _ in range(random.randint(1, 3)):
        at = random.randint(0, len(text))
        new = random.choice(["", *CHARACTERS])
        text = text[:at] + new + text[at + random.randint(0, 1) :]
    return text


def shuffled(text: str, random: Random) -> str:
    """The same characters that are not white space, in another order."""
    signs = [sign for sign in text if not sign.isspace()]
    random.shuffle(signs)
    return "".join(sign if sign.isspace() else signs.pop() for sign in text)


def grid_as_said(answer: str, entry: Entry) -> bool:
    """Spaces more or fewer at the ends of lines or between numbers change nothing."""
    return [line.split() for line in answer.strip().split("\n")] == [
        line.split() for line in str(entry["answer"]).split("\n")
    ]


def number_as_said(answer: str, entry: Entry) -> bool:
    """A sign, zeros before it, `.0` after it."""
    return float(answer) == int(entry["answer"])


def way_as_said(answer: str, entry: Entry) -> bool:
    """Capitals count as small letters."""
    return bool(library.gym().get_score_answer_fn("shortest_path")(answer.lower(), entry) == 1)


def colors_as_said(answer: str, entry: Entry) -> bool:
    """Vertices without quotes, which JSON wants."""
    bare = answer.replace("'", "").replace('"', "")
    pairs = dict(pair.split(":") for pair in bare.strip(" \n{}").split(","))
    quoted = json.dumps({vertex.strip(): int(color) for vertex, color in pairs.items()})
    return bool(library.gym().get_score_answer_fn("graph_color")(quoted, entry) == 1)


WE_PAY: dict[str, Callable[[str, Entry], bool]] = {
    "spiral_matrix": grid_as_said,
    "rotate_matrix": grid_as_said,
    "manipulate_matrix": grid_as_said,
    "mini_sudoku": grid_as_said,
    "path_star": grid_as_said,
    "rectangle_count": number_as_said,
    "largest_island": number_as_said,
    "rotten_oranges": number_as_said,
    "maze": number_as_said,
    "shortest_path": way_as_said,
    "n_queens": grid_as_said,
    "graph_color": colors_as_said,
}
"""By family: why an answer is right that the library does not pay in full."""


def they_pay(family: str, answer: str, entry: Entry) -> bool:
    """Why an answer is wrong that the library pays in full."""
    if family == "path_star":  # lines count as spaces there, and so do signs that are no white space here
        return answer.split() == entry["answer"].split() and grid_as_said(answer, entry) is False
    if (
        family == "graph_color"
    ):  # the last of two colors counts there, and vertices that do not exist are let pass
        pairs = json.loads(answer, object_pairs_hook=list)
        return len(pairs) != len(entry["metadata"]["puzzle"]["vertices"])
    if family == "rectangle_count":  # digits of other scripts count there
        return not answer.isascii() and int(answer) == int(entry["answer"])
    return False


def judged(family: str, answer: str, entry: Entry) -> tuple[bool, bool]:
    """Whether we pay, and whether the library does. spiral_matrix and n_queens run what is no exact answer, so
    there it is compared as their first line does."""
    ours = FAMILIES[family].judge(answer, entry) == 1.0
    if family == "spiral_matrix":
        return ours, answer.strip() == entry["answer"]
    if family == "n_queens":
        return ours, answer in entry["metadata"]["valid_answers"]
    return ours, library.gym().get_score_answer_fn(family)(answer, entry) >= 0.99


def compare(family: str, count: int) -> tuple[int, int]:
    """How many of the answers were right and wrong."""
    random = Random(family)
    levels = len(FAMILIES[family].levels)
    right = wrong = 0
    for seed in range(count):
        entry = draw(family, seed % levels, seed * 10**8 + 3).entry
        truth = FAMILIES[family].solution(entry)
        for answer in (truth, changed(truth, random), shuffled(truth, random)):
            ours, theirs = judged(family, answer, entry)
            if ours and not theirs:
                assert WE_PAY[family](answer, entry), (answer, truth)
            if theirs and not ours:
                assert they_pay(family, answer, entry), (answer, truth)
            right, wrong = right + ours, wrong + (not ours)
    return right, wrong


@pytest.mark.parametrize("family", WE_PAY)
def test_every_difference_from_the_library_has_a_reason(family: str) -> None:
    right, wrong = compare(family, 60)
    assert right >= 60 and wrong >= 30


@pytest.mark.long
@pytest.mark.parametrize("family", WE_PAY)
def test_the_same_for_500_right_and_500_wrong(family: str) -> None:
    right, wrong = compare(family, 700)
    assert right >= 500 and wrong >= 500


@pytest.mark.long
@pytest.mark.parametrize("family", WE_PAY)
def test_ten_thousand_changed_answers(family: str) -> None:
    """Each gets 0 or 1, and 1 only for what says the same as some right answer."""
    random = Random(f"{family} 2")
    entries = [draw(family, level, 5 * 10**8 + level).entry for level in range(len(FAMILIES[family].levels))]
    for number in range(10_000):
        entry = entries[number % len(entries)]
        truth = FAMILIES[family].solution(entry)
        answer = (
            changed(truth, random)
            if number % 2
            else "".join(random.choices(CHARACTERS, k=random.randint(0, 80)))
        )
        ours, theirs = judged(family, answer, entry)
        assert not ours or theirs or WE_PAY[family](answer, entry), (answer, truth)
