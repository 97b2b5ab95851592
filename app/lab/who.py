"""Who gains and who pays: what an arm does for each kind of node, where the nodes of a swarm are not alike.

Nodes differ by their model, and by how often an arm lets them act (`+paces`, `+churn`). Everything is computed
from the probes' node-by-node shares, so a difference is that of the same nodes with the same seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from app.lab.arms import Arm
from app.lab.plan import Plan
from app.lab.results import Runs, areas, probes
from app.lab.statistics import Estimate, estimate, paired
from app.lab.twists import PACE, STAY, paced, staying
from app.lab.wording import NOTHING, percent, points, share, table


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of an arm that are alike, and in how many rounds one of them acts on average."""

    name: str
    nodes: tuple[int, ...]
    rounds: float


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one kind in one arm. Shares in [0, 1]; differences are None without another arm."""

    arm: str
    kind: Kind
    start: Estimate
    height: Estimate
    """Mean height of the held-out curve."""
    height_difference: Estimate | None
    final: Estimate
    final_difference: Estimate | None
    against: str | None
    """The arm of the differences: the baseline, with the arm's own extras where that was run."""


def kinds(plan: Plan, arm: Arm) -> list[Kind]:
    """The kinds of an arm's nodes, biggest difference first: model, then pace, then how often they are there.

    The slow ones are those of `+paces`. With `+churn` the half that is there in most rounds stays, the other
    half leaves; node 0 is always there.
    """
    everyone = set(range(plan.nodes))
    acting = [everyone] * plan.rounds
    labels_N: list[list[str]] = [[model] for model in plan.models] or [[] for _ in everyone]
    for name, value in arm.extras:
        if name == "paces":
            here = [paced(plan.nodes, int(value or PACE), number) for number in range(1, plan.rounds + 1)]
            halves = ("fast", "slow")
        elif name == "churn":
            here = [staying(plan.nodes, int(value or STAY), number) for number in range(1, plan.rounds + 1)]
            halves = ("stays", "leaves")
        else:
            continue
        acting = [before & now for before, now in zip(acting, here, strict=True)]
        order = sorted(everyone, key=lambda node: (name == "churn" and -_rounds(here, node), node))
        for place, node in enumerate(order):
            labels_N[node].append(halves[place >= plan.nodes - plan.nodes // 2])
    nodes_by_name: dict[str, list[int]] = {}
    for node, labels in enumerate(labels_N):
        nodes_by_name.setdefault(", ".join(labels) or "all", []).append(node)
    return [
        Kind(
            name=name,
            nodes=tuple(nodes),
            rounds=sum(_rounds(acting, node) for node in nodes) / len(nodes),
        )
        for name, nodes in nodes_by_name.items()
    ]


def fates(plan: Plan, arms: Sequence[Arm], runs: Mapping[str, Runs], baseline: str) -> list[Fate]:
    """Every kind of every arm that has finished runs; `baseline` is the name of the arm to compare with."""
    present = [arm for arm in arms if runs.get(arm.key)]
    base = next(arm for arm in present if arm.name == baseline)
    found = []
    for arm in present:
        against = next((a for a in present if a.extras == arm.extras and _bare(a) == _bare(base)), base)
        against = base if against is arm else against
        found += [_fate(arm, kind, runs[arm.key], against, runs[against.key]) for kind in kinds(plan, arm)]
    return found


def lines(plan: Plan, arms: Sequence[Arm], runs: Mapping[str, Runs], baseline: str) -> list[str]:
    """A Markdown table, empty for a study whose nodes are all alike."""
    present = [arm for arm in arms if runs.get(arm.key)]
    if all(len(kinds(plan, arm)) < 2 for arm in present):
        return []
    head = (
        f"| arm | nodes | rounds of {plan.rounds} | before | mean height of the held-out curve "
        "| difference, points | last round | difference, points | compared with |"
    )
    rows = [
        (
            fate.arm,
            f"{len(fate.kind.nodes)} {fate.kind.name}",
            f"{fate.kind.rounds:.1f}".removesuffix(".0"),
            percent(fate.start.mean),
            share(fate.height),
            points(fate.height_difference),
            share(fate.final),
            points(fate.final_difference),
            fate.against or NOTHING,
        )
        for fate in fates(plan, arms, runs, baseline)
    ]
    return [
        "Who gains, who pays:",
        "",
        *table(head, rows),
        "",
        f"Differences are those of the same nodes and seeds to {baseline}, with the arm's own extras where "
        "that was run too.",
        "",
    ]


def _fate(arm: Arm, kind: Kind, runs: Runs, against: Arm, others: Runs) -> Fate:
    shared = [] if against is arm else sorted(set(runs) & set(others))

    def some(shares_N: Sequence[float]) -> list[float]:
        return [shares_N[node] for node in kind.nodes]

    start = {seed: some(probes(run)[0][1].pass_at_1_N) for seed, run in sorted(runs.items())}
    height = {seed: some(areas(run)) for seed, run in sorted(runs.items())}
    final = {seed: some(probes(run)[-1][1].pass_at_1_N) for seed, run in sorted(runs.items())}
    height_there = [some(areas(others[seed])) for seed in shared]
    final_there = [some(probes(others[seed])[-1][1].pass_at_1_N) for seed in shared]
    return Fate(
        arm=arm.name,
        kind=kind,
        start=estimate(list(start.values())),
        height=estimate(list(height.values())),
        height_difference=paired([height[seed] for seed in shared], height_there) if shared else None,
        final=estimate(list(final.values())),
        final_difference=paired([final[seed] for seed in shared], final_there) if shared else None,
        against=against.name if shared else None,
    )


def _bare(arm: Arm) -> tuple[int, int, str, bool, bool]:
    """An arm without its extras."""
    return arm.own, arm.peer, arm.recipe, arm.dynamic, arm.shuffled


def _rounds(acting: Sequence[set[int]], node: int) -> int:
    return sum(node in here for here in acting)
