"""One scoring child for the tests of this room that do not harm it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.sapo.scoring.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """Patient, so that a busy test machine never ends the child: a new process id means that an answer did."""
    with Sandbox(judge_seconds=20.0) as shared:
        yield shared
