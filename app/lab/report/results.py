"""Computes a study's results from its records: per arm the held-out curve, differences, costs and counts.

The deciding measure is held-out pass@1 at the last round. The paper's measure, cumulative reward of the
training batch, is listed separately: choosing informative peer groups raises it without any learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import msgspec

from app.lab.arms import Arm
from app.lab.plan import LabProbe, LabRound
from app.lab.statistics import Estimate, average, estimate, mean_height, paired, percent, points, share

Runs = Mapping[int, Sequence[LabRound]]
"""The finished runs of one arm, by seed."""


class ArmResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one arm. Shares in [0, 1]; sums are over all nodes, means over seeds."""

    arm: str
    recipe: str
    seeds: list[int]
    held_out_start: Estimate
    held_out_final: Estimate
    held_out_area: Estimate
    """Mean height of the held-out curve: the counterpart of cumulative reward that selection cannot raise."""
    difference: Estimate | None
    """Difference of `held_out_final` to the baseline, paired by seed and node; None for the baseline itself."""
    area_difference: Estimate | None
    seeds_ahead: int | None
    cumulative_training_batch_reward: float
    """The paper's measure: mean reward of each node's training batch, summed over nodes and rounds."""
    cumulative_own_reward: float
    generated_completions: float
    generated_tokens: float
    cpu_seconds: float
    worked_start: float
    worked_final: float
    informative_own: float
    """Informative groups trained on, mean per node and round."""
    informative_peer: float
    families_final: dict[str, float]


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a study. `verdict` says in words which arm is best by held-out pass@1."""

    baseline: str
    arms: list[ArmResult]
    verdict: str


def summarise(arms: Sequence[Arm], runs: Mapping[str, Runs]) -> Results:
    """Computes the results of all arms with finished runs, the baseline first. `runs` maps an arm's key to its
    runs. Raises ValueError without any run."""
    present = baseline_first(arms, runs)
    if not present:
        raise ValueError("There is no finished run to summarise.")
    baseline = present[0]
    found = [_arm(arm, runs[arm.key], None if arm is baseline else runs[baseline.key]) for arm in present]
    shuffled = {arm.name for arm in present if arm.shuffled}
    return Results(baseline=baseline.name, arms=found, verdict=_verdict(baseline.name, found, shuffled))


def baseline_first(arms: Sequence[Arm], runs: Mapping[str, Runs]) -> list[Arm]:
    """The arms with finished runs: the baseline, then the others in their order. The baseline is the first arm
    that is alone, else the first."""
    present = [arm for arm in arms if runs.get(arm.key)]
    first = ([arm for arm in present if arm.is_alone] or present)[:1]
    return first + [arm for arm in present if arm not in first]


def probes(run: Sequence[LabRound]) -> list[tuple[int, LabProbe]]:
    """The rounds in which a run was measured, with the results."""
    return [(record.round, record.probe) for record in run if record.probe is not None]


def _arm(arm: Arm, runs: Runs, baseline: Runs | None) -> ArmResult:
    every = [run for _, run in sorted(runs.items())]
    shared = sorted(set(runs) & set(baseline or {}))
    there, here = [(baseline or {})[seed] for seed in shared], [runs[seed] for seed in shared]
    first, last = [probes(run)[0][1] for run in every], [probes(run)[-1][1] for run in every]
    return ArmResult(
        arm=arm.name,
        recipe=arm.recipe,
        seeds=sorted(runs),
        held_out_start=estimate([probe.pass_at_1_N for probe in first]),
        held_out_final=estimate([final_scores(run) for run in every]),
        held_out_area=estimate([mean_heights(run) for run in every]),
        difference=paired([*map(final_scores, here)], [*map(final_scores, there)]) if shared else None,
        area_difference=paired([*map(mean_heights, here)], [*map(mean_heights, there)]) if shared else None,
        seeds_ahead=sum(
            average(final_scores(a)) > average(final_scores(b)) for a, b in zip(here, there, strict=True)
        )
        if shared
        else None,
        cumulative_training_batch_reward=_summed(every, lambda r, nodes: r.batch_reward * nodes),
        cumulative_own_reward=_summed(every, lambda r, nodes: r.own_reward * nodes),
        generated_completions=_summed(every, lambda r, _: r.generated),
        generated_tokens=_summed(every, lambda r, _: r.generated_tokens),
        cpu_seconds=_summed(every, lambda r, _: r.cpu_seconds),
        worked_start=average([probe.worked for probe in first]),
        worked_final=average([probe.worked for probe in last]),
        informative_own=average([record.informative_own for run in every for record in run[1:]]),
        informative_peer=average([record.informative_peer for run in every for record in run[1:]]),
        families_final=_families(last),
    )


def final_scores(run: Sequence[LabRound]) -> Sequence[float]:
    """Each node's pass@1 at the last probe."""
    return probes(run)[-1][1].pass_at_1_N


Cost = Callable[[LabRound], float]
"""The cost of a round."""


def mean_heights(run: Sequence[LabRound]) -> list[float]:
    """Mean height of each node's curve, over rounds."""
    measured = probes(run)
    shares_N = zip(*(probe.pass_at_1_N for _, probe in measured), strict=True)
    return [mean_height([number for number, _ in measured], curve) for curve in shares_N]


def cumulative_costs(run: Sequence[LabRound], value: Cost) -> list[float]:
    """The cumulative cost at each probe."""
    sums = accumulate(map(value, run))
    return [float(total) for total, record in zip(sums, run, strict=True) if record.probe is not None]


def _families(probes: Sequence[LabProbe]) -> dict[str, float]:
    return {name: average([probe.families.get(name, 0.0) for probe in probes]) for name in probes[0].families}


def _summed(every: Sequence[Sequence[LabRound]], value: Callable[[LabRound, int], float]) -> float:
    """Sum over rounds, mean over seeds."""
    return average([sum(value(record, len(final_scores(run))) for record in run) for run in every])


def _verdict(baseline: str, found: Sequence[ArmResult], shuffled: set[str]) -> str:
    """Sentences on which arm is best by held-out pass@1, how far each is from the baseline, and the
    controls."""
    arms = sorted(
        [result for result in found if result.arm not in shuffled] or found,
        key=lambda result: -result.held_out_final.mean,
    )
    told = [f"By held-out pass@1 at the last round {arms[0].arm} is highest: {share(arms[0].held_out_final)}."]
    for result in arms:
        if (apart := result.difference) is not None:
            t = (
                ""
                if apart.t_low is None or apart.t_high is None
                else (f", t over seeds [{100 * apart.t_low:+.1f}, {100 * apart.t_high:+.1f}]")
            )
            told.append(
                f"{result.arm} less {baseline}: {points(apart)} points, ahead in {result.seeds_ahead} of "
                f"{apart.seeds} seeds{t}."
            )
    told += [
        f"The shuffled-reward control {result.arm} went from {percent(result.held_out_start.mean)} to "
        f"{percent(result.held_out_final.mean)}."
        for result in found
        if result.arm in shuffled
    ]
    return " ".join(told)
