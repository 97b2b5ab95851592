"""A key, a group and a body that the tests of this room share."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.swarm.wire.body import Body

SEED = bytes(range(32))
SWARM = "example-swarm"
NOW_MS = 1_800_000_000_000


@pytest.fixture
def group() -> GroupRecord:
    return GroupRecord(
        coordinates=Coordinates(family="chain_sum", level=0, seed=2**41 + 5, index=0, version="0.1.25/1"),
        completions_G=("4-1=3 3-7=-4 #-4", "#-4", '"quoted" \\ \n é 🐟', ""),
        finished_G=(True, True, False, True),
        model="starter",
    )


@pytest.fixture
def body(group: GroupRecord) -> Body:
    return Body.of(group, (1, 1, 0, 0), SWARM, key_seq=7, created_ms=NOW_MS)


@pytest.fixture
def plain(body: Body) -> dict[str, Any]:
    """The body as plain JSON values, to be spoiled."""
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(body))
    return values
