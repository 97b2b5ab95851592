"""Which nodes gain and which lose: what an arm does for each kind of node, if the nodes of a swarm differ.

Nodes differ by their model, and by how often an arm lets them act (`+paces`, `+churn`). Everything is computed
from the probes' node-by-node shares, so a difference compares the same nodes with the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from app.lab.arms import Arm
from app.lab.journal import Study
from app.lab.plan import LabRound, StudyPlan
from app.lab.report.results import Runs, areas, final, probes
from app.lab.rounds.extras import PACE, STAY, paced, staying
from app.lab.statistics import (
    NOTHING,
    Estimate,
    average,
    estimate,
    number,
    paired,
    percent,
    points,
    share,
    table,
)


class NodeKind(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of an arm that are alike, and in how many rounds one of them acts on average."""

    name: str
    nodes: tuple[int, ...]
    rounds: float


def kinds(plan: StudyPlan, arm: Arm) -> list[NodeKind]:
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
        NodeKind(name=name, nodes=tuple(nodes), rounds=average([_rounds(acting, node) for node in nodes]))
        for name, nodes in nodes_by_name.items()
    ]


def _rounds(acting: Sequence[set[int]], node: int) -> int:
    return sum(node in here for here in acting)


class NodeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one kind of node in one arm. Shares in [0, 1]; differences are None without another
    arm."""

    arm: str
    kind: NodeKind
    start: Estimate
    height: Estimate
    """Mean height of the held-out curve."""
    height_difference: Estimate | None
    final: Estimate
    final_difference: Estimate | None
    against: str | None
    """The arm it is compared with: the baseline, with the arm's own extras if that was run."""


def fates(plan: StudyPlan, arms: Sequence[Arm], runs: Mapping[str, Runs], baseline: str) -> list[NodeOutcome]:
    """Every kind of every arm that has finished runs; `baseline` is the name of the arm to compare with."""
    present = [arm for arm in arms if runs.get(arm.key)]
    base = next(arm for arm in present if arm.name == baseline)
    found = []
    for arm in present:
        against = next((a for a in present if a.extras == arm.extras and _bare(a) == _bare(base)), base)
        against = base if against is arm else against
        others: Runs = {} if against is arm else runs[against.key]
        found += [_fate(arm, kind, runs[arm.key], against.name, others) for kind in kinds(plan, arm)]
    return found


def _bare(arm: Arm) -> tuple[int, int, str, bool, bool]:
    """An arm without its extras."""
    return arm.own, arm.peer, arm.recipe, arm.dynamic, arm.shuffled


def _fate(arm: Arm, kind: NodeKind, runs: Runs, against: str, others: Runs) -> NodeOutcome:
    def start(run: Sequence[LabRound]) -> Sequence[float]:
        return probes(run)[0][1].pass_at_1_N

    def of(value: Callable[[Sequence[LabRound]], Sequence[float]], run: Sequence[LabRound]) -> list[float]:
        return [value(run)[node] for node in kind.nodes]

    every = [run for _, run in sorted(runs.items())]
    pairs = [(runs[seed], others[seed]) for seed in sorted(set(runs) & set(others))]
    height, last = (
        paired([of(value, run) for run, _ in pairs], [of(value, other) for _, other in pairs])
        if pairs
        else None
        for value in (areas, final)
    )
    return NodeOutcome(
        arm=arm.name,
        kind=kind,
        start=estimate([of(start, run) for run in every]),
        height=estimate([of(areas, run) for run in every]),
        height_difference=height,
        final=estimate([of(final, run) for run in every]),
        final_difference=last,
        against=against if pairs else None,
    )


def lines(plan: StudyPlan, arms: Sequence[Arm], runs: Mapping[str, Runs], baseline: str) -> str:
    """A Markdown table, empty for a study whose nodes are all alike."""
    if all(len(kinds(plan, arm)) < 2 for arm in arms if runs.get(arm.key)):
        return ""
    columns = {
        "arm": lambda fate: fate.arm,
        "nodes": lambda fate: f"{len(fate.kind.nodes)} {fate.kind.name}",
        f"rounds of {plan.rounds}": lambda fate: f"{fate.kind.rounds:.1f}".removesuffix(".0"),
        "before": lambda fate: percent(fate.start.mean),
        "mean height of the held-out curve": lambda fate: share(fate.height),
        "difference of height, points": lambda fate: points(fate.height_difference),
        "last round": lambda fate: share(fate.final),
        "difference at the end, points": lambda fate: points(fate.final_difference),
        "compared with": lambda fate: fate.against or NOTHING,
    }
    return (
        f"Who gains, who pays (differences are those of the same nodes and seeds to {baseline}, with the arm's "
        f"own extras where that was run too):\n\n{table(columns, fates(plan, arms, runs, baseline))}"
    )


# The findings of a study with attackers: how far their mark got into the nodes, and what was kept out beside
# it.

LATE = 25
"""Number of last rounds over which the nodes' own samples are counted."""


def attackers_table(study: Study) -> str:
    """A Markdown table of a study whose records tell of attackers or defences; empty for another one."""
    records = [record for runs in study.runs.values() for run in runs.values() for record in run]
    if not (_has(records, "honest_taken") or any("foes" in dict(arm.extras) for arm in study.arms)):
        return ""
    nodes = study.plan.nodes

    def runs(arm: Arm) -> list[Sequence[LabRound]]:
        return [run for _, run in sorted(study.runs[arm.key].items())]

    def every(arm: Arm) -> list[LabRound]:
        return [record for run in runs(arm) for record in run[1:]]

    def late(arm: Arm) -> list[LabRound]:
        return [record for run in runs(arm) for record in run[1:][-LATE:]]

    def tokens(arm: Arm) -> float:
        return sum(r.generated_tokens for r in late(arm)) / max(1, sum(r.generated for r in late(arm)))

    def chosen(arm: Arm) -> float | None:
        peers = sum(r.taken * (r.active or nodes) for r in every(arm))
        return _extra(every(arm), "foe_chosen") / peers if peers and _has(every(arm), "foe_chosen") else None

    columns = {
        "arm": lambda arm: arm.name,
        "answers with the mark, held out, last round": lambda arm: share(
            estimate([probes(run)[-1][1].marked_N or (0.0,) * nodes for run in runs(arm)])
        ),
        f"own samples with it, last {LATE} rounds": lambda arm: percent(
            _extra(late(arm), "marked") / len(late(arm))
        ),
        "tokens an answer": lambda arm: number(tokens(arm), ".1f"),
        "finished": lambda arm: percent(average([record.finished for record in late(arm)])),
        "attackers' part of groups chosen": lambda arm: percent(chosen(arm)),
        "right answers kept out: honest peers'": lambda arm: percent(_kept_out(every(arm), "honest")),
        "attackers'": lambda arm: percent(_kept_out(every(arm), "foe")),
    }
    return table(columns, study.arms)


def _has(records: Sequence[LabRound], name: str) -> bool:
    return any(name in (record.extra or {}) for record in records)


def _extra(records: Sequence[LabRound], name: str) -> float:
    return sum((record.extra or {}).get(name, 0.0) for record in records)


def _kept_out(records: Sequence[LabRound], who: str) -> float | None:
    taken, kept_out = _extra(records, f"{who}_taken"), _extra(records, f"{who}_kept_out")
    return kept_out / (taken + kept_out) if taken + kept_out else None
