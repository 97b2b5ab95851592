"""Knights and knaves: forms of an answer, what is no question, and that numpy still draws the same."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from app.sapo.families import FAMILIES
from app.sapo.questions import draw

FAMILY = FAMILIES["knights_knaves"]

ZOEY_LIES, OWEN_LIES, OWEN_HONEST = ("lying", 0), ("lying", 1), ("telling-truth", 1)


def entry(*statements: Any, solution: tuple[bool, ...] = (True, False)) -> dict[str, Any]:
    metadata = dict(
        names=["Zoey", "Owen", "Ava"][: len(statements)],
        knight_knave_terms=dict(knight="altruist", knave="egoist"),
        solution=solution,
        statements=statements,
    )
    return {"question": "", "answer": "Zoey is an altruist, and Owen is an egoist.", "metadata": metadata}


ENTRY = entry(OWEN_LIES, ("and", ZOEY_LIES, ("not", ZOEY_LIES)))


@pytest.mark.parametrize(
    "text",
    [
        "Zoey is an altruist, and Owen is an egoist.",
        "Zoey is a altruist, and Owen is a egoist",
        "Owen is an egoist and Zoey is an altruist",
        "zoey is an altruist, owen is an egoist",
        "Zoey is an altruist. Owen is an egoist.",
        "Zoey is an altruist\nOwen is an egoist\n",
    ],
)
def test_the_roles_in_any_order_are_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "Zoey is an egoist, and Owen is an altruist.",
        "Zoey is an altruist",
        "Zoey is an altruist, and Owen is an egoist, and Owen is an altruist.",
        "Zoey is an altruist, and Zoey is an altruist, and Owen is an egoist.",
        "Zoey is an altruist, and Owen is not an altruist.",
        "Zoey is a knight, and Owen is a knave.",
        "Zoey is an altruist/egoist, and Owen is an altruist/egoist",
        "Zoey altruist, Owen egoist",
        "Zoey is an altruist, and Owen is an egoist. Ava is an egoist.",
        "\u017eoey is an altruist, and Owen is an egoist",
        "",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_a_question_has_one_solution_and_it_is_the_truth() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound(entry(*ENTRY["metadata"]["statements"], solution=(False, True)))
    assert not FAMILY.sound(entry(OWEN_LIES, ZOEY_LIES))  # either of the two may lie


@pytest.mark.parametrize(
    ("first", "second", "solution"),
    [
        (("<=>", ("telling-truth", 0), OWEN_LIES), ("telling-truth", 1), (True, False)),
        (("->", ("telling-truth", 0), OWEN_LIES), ("telling-truth", 1), (True, False)),
        (("or", ZOEY_LIES, OWEN_LIES), OWEN_HONEST, (True, False)),
        (("not", ("or", ZOEY_LIES, OWEN_HONEST)), ("not", OWEN_LIES), (True, False)),
    ],
)
def test_every_kind_of_statement_is_understood(first: Any, second: Any, solution: tuple[bool, ...]) -> None:
    def truly(zoey: bool, owen: bool) -> tuple[bool, bool]:
        said = {
            "<=>": zoey == (not owen),
            "->": not zoey or not owen,
            "or": not zoey or not owen,
            "not": not (not zoey or owen),
        }
        return said[first[0]], owen

    fitting = [pair for pair in ((a, b) for a in (True, False) for b in (True, False)) if truly(*pair) == pair]
    assert FAMILY.sound(entry(first, second, solution=solution)) == (fitting == [solution])


def test_the_work_tries_until_it_fits() -> None:
    assert FAMILY.worked(ENTRY) == (
        "If altruist, altruist: they say false, false. If altruist, egoist: they say true, false. "
        "#Zoey is an altruist, and Owen is an egoist."
    )


def test_numpy_still_draws_the_same_stories() -> None:
    """They are drawn by numpy, which may change its stream from one version to the next, as Python's own
    generator does not: 1.26, 2.0 and 2.4 agree. Where this fails, the ladder has to go up."""
    texts = (draw("knights_knaves", level, seed * 10**8).text for level in range(4) for seed in range(60))
    assert hashlib.sha256("".join(texts).encode()).hexdigest()[:16] == "66a99287ffed4f56"
