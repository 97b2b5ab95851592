"""The levels of all families, for tests that look at each."""

from __future__ import annotations

from collections import Counter

import pytest

from app.sapo.families import FAMILIES

LEVELS = [(family.name, level) for family in FAMILIES.values() for level in range(len(family.levels))]


def spread(offset: int, levels: list[tuple[str, int]] = LEVELS) -> pytest.MarkDecorator:
    """Parametrises `family` and `level`: one level of each family by default, all of them with `-m long`.
    Another `offset` takes other levels, so tests of different offsets look at different ones."""
    count = Counter(family for family, _ in levels)
    sample = {(name, (place + offset) % count[name]) for place, name in enumerate(FAMILIES) if name in count}
    every = [pytest.param(*one, marks=() if one in sample else pytest.mark.long) for one in levels]
    return pytest.mark.parametrize(("family", "level"), every)
