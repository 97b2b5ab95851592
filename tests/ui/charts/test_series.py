from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from app.ui.charts.series import Series

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=300)


def series(values: list[float]) -> Series:
    return Series((at, value, 0.0) for at, value in enumerate(values))


@given(VALUES, st.integers(1, 60))
def test_no_peak_is_lost_however_few_columns_there_are(values: list[float], columns: int) -> None:
    line = series(values).line(0, len(values), columns)
    assert max(place.high for place in line) == max(values)
    assert min(place.low for place in line) == min(values)


@given(VALUES, st.integers(1, 60))
def test_places_are_few_and_in_order(values: list[float], columns: int) -> None:
    line = series(values).line(0, len(values), columns)
    xs = [place.x for place in line]
    assert xs == sorted(xs) and len(set(xs)) == len(xs)
    assert len(line) <= 2 * columns + 1


@given(VALUES)
def test_all_points_are_drawn_where_there_is_room(values: list[float]) -> None:
    line = series(values).line(0, len(values), 1000)
    assert [place.y for place in line] == values


@given(VALUES, st.integers(1, 20))
def test_a_smoothed_value_is_the_mean_around_it(values: list[float], around: int) -> None:
    made = series(values)
    for at in range(len(values)):
        near = values[max(0, at - around) : at + around + 1]
        assert abs(made.mean(at, around) - sum(near) / len(near)) < 1e-9


def test_growing_gives_the_same_as_building_anew() -> None:
    values = [random.Random(1).random() for _ in range(777)]
    grown = Series()
    for at, value in enumerate(values):
        grown.extend([(at, value, 0.1)])
    whole = Series((at, value, 0.1) for at, value in enumerate(values))
    assert grown.line(0, 777, 50) == whole.line(0, 777, 50)


def test_the_nearest_point() -> None:
    made = Series([(0, 0.1, 0), (10, 0.2, 0), (20, 0.3, 0)])
    assert [made.nearest(x) for x in (-5, 4, 6, 19, 99)] == [0, 0, 1, 2, 2]
    assert Series().nearest(3) is None


def test_a_hundred_thousand_points_are_drawn_as_a_few_hundred() -> None:
    made = Series((at, (at % 97) / 97, 0.01) for at in range(100_000))
    assert len(made.line(0, 100_000, 400)) <= 900
    assert len(made.line(40_000, 40_100, 400)) <= 104
