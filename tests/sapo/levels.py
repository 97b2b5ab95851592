"""The levels of all families, for tests that look at each."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

LEVELS = [(family.name, level) for family in FAMILIES.values() for level in range(len(family.levels))]


def spread(offset: int) -> pytest.MarkDecorator:
    """Parametrises `family` and `level`: one level of each family by default, all of them with `-m long`.
    Another `offset` takes other levels, so tests of different offsets look at different ones."""
    sample = {(one.name, (place + offset) % len(one.levels)) for place, one in enumerate(FAMILIES.values())}
    every = [pytest.param(*one, marks=() if one in sample else pytest.mark.long) for one in LEVELS]
    return pytest.mark.parametrize(("family", "level"), every)
