"""Colored graphs: every coloring is right, in JSON or nearly so."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["graph_color"]


def entry(edges: list[tuple[int, int]], colors: dict[int, int]) -> dict[str, object]:
    puzzle = {"vertices": list(range(5)), "edges": edges, "color_options": [1, 2, 3]}
    return {"question": "", "answer": None, "metadata": {"puzzle": puzzle, "possible_answer": colors}}


EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]
ENTRY = entry(EDGES, {0: 1, 1: 2, 2: 3, 3: 1, 4: 2})


@pytest.mark.parametrize(
    "text",
    [
        '{"0": 1, "1": 2, "2": 3, "3": 1, "4": 2}',
        '{"0": 3, "1": 1, "2": 2, "3": 3, "4": 1}',
        '{"4":2,"3":1,"2":3,"1":2,"0":1}',
        "{0: 1, 1: 2, 2: 3, 3: 1, 4: 2}",
        "{'0': 1, '1': 2, '2': 3, '3': 1, '4': 2}\n",
    ],
)
def test_every_coloring_is_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        '{"0": 1, "1": 2, "2": 3, "3": 1, "4": 1}',
        '{"0": 1, "1": 2, "2": 3, "3": 1}',
        '{"0": 1, "1": 2, "2": 3, "3": 1, "4": 4}',
        '{"0": 1, "1": 2, "2": 3, "3": 1, "4": 2, "5": 1}',
        '{"0": 1, "1": 2, "2": 3, "3": 1, "4": 3, "4": 2}',
        '{"0": 1, "1": 2, "2": 3, "3": true, "4": 2}',
        '{"0": 1, "1": 2, "2": 3, "3": 1.0, "4": 2}',
        '{"0": 1, "1": 2, "2": 3, "3": 1, "4": 2',
        '{"0: 1, "1": 2, "2": 3, "3": 1, "4": 2}',
        '{"0": 1, "1": 2, "2": 3, "3": 1, "04": 2}',
        "[1, 2, 3, 1, 2]",
        "1 2 3 1 2",
        "{}",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_a_graph_with_several_colorings_or_none_is_no_question() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound(entry(EDGES[:-1], {0: 1, 1: 2, 2: 3, 3: 1, 4: 1}))
    assert not FAMILY.sound(entry([*EDGES, (0, 3)], {}))


def test_the_work_names_what_is_alike() -> None:
    assert FAMILY.worked(ENTRY) == 'Not joined: 0 3; 1 4. #{"0": 1, "1": 2, "2": 3, "3": 1, "4": 2}'
