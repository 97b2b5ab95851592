"""Missing angles: what is right, polygons that are not convex, and the work."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["simple_geometry"]


def entry(answer: str, *angles: float) -> dict[str, object]:
    return {"question": "", "answer": answer, "metadata": {"known_angles": list(angles)}}


TRIANGLE = entry("75", 72.0, 33.0)


@pytest.mark.parametrize("text", ["75", "75.0", " 75\n", "+75", "075"])
def test_the_angle_is_right(text: str) -> None:
    assert FAMILY.judge(text, TRIANGLE) == 1.0


@pytest.mark.parametrize("text", ["75°", "75 degrees", "105", "74", "-75", "180 - 105", "75.1", ""])
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, TRIANGLE) == 0.0


def test_a_polygon_that_is_not_convex_and_a_false_truth_are_no_questions() -> None:
    assert FAMILY.sound(TRIANGLE)
    assert not FAMILY.sound(entry("76", 72.0, 33.0))
    assert FAMILY.sound(entry("179", 60.0, 61.0, 60.0))
    assert not FAMILY.sound(entry("180", 60.0, 60.0, 60.0))
    assert not FAMILY.sound(entry("0", 120.0, 120.0, 120.0))


def test_the_work_takes_the_known_angles_from_the_whole() -> None:
    assert FAMILY.worked(TRIANGLE) == "72 + 33 = 105. 180 - 105 = 75. #75"
    square = entry("90", 80.0, 90.0, 100.0)
    assert FAMILY.worked(square) == "180 * 2 = 360. 80 + 90 + 100 = 270. 360 - 270 = 90. #90"


def test_angles_are_recalled_in_any_order() -> None:
    assert FAMILY.content(TRIANGLE) == FAMILY.content(entry("75", 33.0, 72.0))
    assert FAMILY.content(TRIANGLE) != FAMILY.content(entry("75", 34.0, 71.0))
