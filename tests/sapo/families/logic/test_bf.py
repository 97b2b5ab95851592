"""Tiny programs: what they print is known without running them."""

from __future__ import annotations

import pytest

from app.sapo import library
from app.sapo.families import FAMILIES


@pytest.mark.parametrize("level", [0, 1])
def test_items_are_those_of_the_library_which_runs_them(level: int) -> None:
    settings = FAMILIES["bf"].levels[level]
    opened = FAMILIES["bf"].opened
    assert opened is not None
    ours, theirs = opened(settings), library.gym().create_dataset("bf", seed=0, size=2**20, **settings)
    with library.silence():
        for seed in range(0, 25 * 10**7, 10**7):
            ours.seed = theirs.seed = seed
            assert ours[level] == theirs[level]
