from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
import pytest

from app.lab.arms import parse_arm
from app.lab.plan import StudyPlan
from app.lab.study import open_experiment
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.scoring.scoring import score_group
from tests.lab.fake_swarm import FakeSwarm
from tests.lab.rounds.test_experiment import PLAN


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


def test_a_lonely_node_learns_from_what_yesterdays_nodes_left_and_from_nobody_of_today(
    sandbox: Sandbox,
) -> None:
    opened: list[int] = []

    def open_swarm(plan: StudyPlan, seed: int) -> FakeSwarm:
        opened.append(seed)
        return FakeSwarm(plan.nodes, -2.0)

    plan = msgspec.structs.replace(PLAN, rounds=6)
    today = open_experiment(
        plan, parse_arm("4/2+archive", "faithful"), 3, open_swarm, partial(score_group, sandbox)
    )
    records = list(today.rounds())
    assert opened == [1_000_003, 3]
    seen = set().union(*today.taken)
    assert seen and not seen & {one.scored.group.coordinates for one in today.published}
    assert records[1].informative_peer == 2.0  # from the first round on, and from any of yesterday's rounds
    learned = sum(record.informative_peer * plan.nodes for record in records[1:])
    assert sum(map(len, today.taken)) == pytest.approx(learned), "none is taken twice by a node"


def test_without_the_archive_there_is_no_yesterday(sandbox: Sandbox) -> None:
    opened: list[int] = []

    def open_swarm(plan: StudyPlan, seed: int) -> FakeSwarm:
        opened.append(seed)
        return FakeSwarm(plan.nodes, -2.0)

    open_experiment(PLAN, parse_arm("4/2", "faithful"), 3, open_swarm, partial(score_group, sandbox))
    assert opened == [3]
