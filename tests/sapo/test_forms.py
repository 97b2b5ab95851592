from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sapo.forms import FORM_FIGURES, MIN_PUSH_KEPT, FormTrend, form_shift, project_push, update_trend

PUSHES = st.lists(st.floats(-1, 1), min_size=2, max_size=8)
SIGNS = st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3).map(tuple)


@given(st.data(), PUSHES, SIGNS)
def test_no_sign_turns_nothing_grows_and_no_figure_moves_against_the_own_groups(
    data: st.DataObject, push_G: list[float], signs_F: tuple[int, ...]
) -> None:
    shift = st.tuples(st.sampled_from([-0.6, 0.4]), st.floats(-20, 20), st.floats(-3, 3))
    apart_GF = [data.draw(shift) for _ in push_G]
    now = project_push(push_G, apart_GF, signs_F)
    assert all(a * b >= 0.0 for a, b in zip(now, push_G, strict=True))
    size = sum(push * push for push in push_G)
    assert sum(push * push for push in now) <= size + 1e-9
    steps_F = zip(form_shift(now, apart_GF), signs_F, strict=True)
    held = [abs(one) if not sign else max(0.0, -one * sign) for one, sign in steps_F]
    before = [sum(one * one for one in column) ** 0.5 for column in zip(*apart_GF, strict=True)]
    # what alternating projections leave over after so many passes
    assert all(one <= 0.1 * size**0.5 * most + 1e-6 for one, most in zip(held, before, strict=True))


def test_a_choice_of_true_texts_that_lies_leaves_nothing() -> None:
    """Right without work, wrong with it, among own answers that show work, do not, or do so now and then."""
    for share in (0.02, 0.5, 0.98):
        direct, worked = (-share, -9 * share, 0.1), (1 - share, 9 * (1 - share), -0.1)
        push_G = [0.6] * 4 + [-0.4] * 4
        for signs in ((0, 0, 0), (1, 0, 0), (1, 1, 0)):
            now = project_push(push_G, [direct] * 4 + [worked] * 4, signs)
            assert max(now) <= MIN_PUSH_KEPT * 0.6, (share, signs)


def test_what_own_groups_pay_for_passes_as_it_is() -> None:
    direct, worked = (-0.5, -4.0, 0.1), (0.5, 4.0, -0.1)
    push_G = [0.6] * 2 + [-0.4] * 3
    assert project_push(push_G, [worked] * 2 + [direct] * 3, (1, 1, -1)) == pytest.approx(push_G)


def test_what_pays_is_known_after_some_groups_that_agree_and_forgotten_without_any() -> None:
    pays = FormTrend()
    assert pays.signs_F == (None,) * len(FORM_FIGURES)
    for _ in range(6):
        pays = update_trend(pays, [(0.5, 1.0, 0.0), (0.4, -1.0, 0.0)])
    assert pays.signs_F == (1, None, None)
    for _ in range(60):
        pays = update_trend(pays, [(0.0, 1.0, 0.0), (0.0, -1.0, 0.0)])
    assert pays.signs_F == (0,) * len(FORM_FIGURES), (
        "whoever always shows work learns nothing of it, and holds it"
    )
    for _ in range(60):
        pays = update_trend(pays, [])
    assert pays.signs_F == (None,) * len(FORM_FIGURES)
