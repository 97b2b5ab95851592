"""From the records of a study to what it found: per arm the held-out curve, differences, costs and counts.

The measure that decides is held-out pass@1 at the last round. The paper's measure, cumulative reward of the
training batch, stands apart: choosing informative peer groups raises it without anything being learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import msgspec

from app.lab.arms import Arm
from app.lab.plan import LabProbe, LabRound
from app.lab.statistics import Estimate, area, average, estimate, paired, percent, reached, share

Runs = Mapping[int, Sequence[LabRound]]
"""The finished runs of one arm by seed."""


class InformativeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Informative groups a node had in a round, on average, and what success rates alone predict."""

    own: float
    own_predicted: float
    peer: float
    peer_predicted: float


class ArmResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one arm did. Shares in [0, 1]; sums are means over seeds, all nodes together."""

    arm: str
    recipe: str
    seeds: list[int]
    held_out_start: Estimate
    held_out_final: Estimate
    held_out_area: Estimate
    """Mean height of the curve: the honest analogue of cumulative reward."""
    difference: Estimate | None
    """The difference of `held_out_final` to the baseline, paired by seed and node; None for the baseline
    itself."""
    area_difference: Estimate | None
    area_gain: Estimate | None
    """How much larger the area is than the baseline's, as a share of it."""
    seeds_ahead: int | None
    rounds_needed: float | None
    """The round in which the nodes' mean is first as high as the baseline's at the end, mean over seeds; None
    for the baseline itself and where a seed never is."""
    pass_at_8_start: Estimate
    pass_at_8_final: Estimate
    swing: float | None
    """How the seeds' mean curves swing in the second half of the run, see `swing`."""
    own_swing: float | None
    """The same of the share of own fresh questions solved, which every round measures."""
    cumulative_training_batch_reward: float
    """The paper's column: mean reward of each node's training batch, summed over nodes and rounds."""
    cumulative_own_reward: float
    generated_completions: float
    generated_tokens: float
    seconds: float
    cpu_seconds: float
    worked_start: float
    worked_final: float
    informative: InformativeCounts
    entropy_start: float | None
    """Mean -log prob of own tokens, nats, over the first five rounds and over the last five."""
    entropy_final: float | None
    peer_nats: float | None
    """Mean -log prob of peers' tokens under their reader."""
    families_start: dict[str, float]
    families_final: dict[str, float]


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The whole study. `verdict` says in words which arm wins by held-out pass@1."""

    baseline: str
    arms: list[ArmResult]
    verdict: str


def summarise(arms: Sequence[Arm], runs: Mapping[str, Runs]) -> Results:
    """`runs` maps an arm's key to its finished runs; arms without any are left out, the baseline comes first.
    Raises ValueError when none has."""
    present = baseline_first(arms, runs)
    if not present:
        raise ValueError("There is no finished run to summarise.")
    baseline = present[0]
    found = [_arm(arm, runs[arm.key], None if arm is baseline else runs[baseline.key]) for arm in present]
    shuffled = {arm.name for arm in present if arm.shuffled}
    return Results(baseline=baseline.name, arms=found, verdict=_verdict(baseline.name, found, shuffled))


def baseline_first(arms: Sequence[Arm], runs: Mapping[str, Runs]) -> list[Arm]:
    """The arms with finished runs in their order, after the baseline: an arm without peers and with nothing
    added, else with its recipe changed alone, else one with peers of which that is true, else the first."""
    present = [arm for arm in arms if runs.get(arm.key)]
    plain = [arm for arm in present if arm.plain]
    bare = [arm for arm in present if not (arm.dynamic or arm.shuffled) and arm.ordinary]
    alone = [arm for arm in bare if not arm.peer]
    first = (plain or alone or bare or present)[:1]
    return first + [arm for arm in present if arm not in first]


def probes(run: Sequence[LabRound]) -> list[tuple[int, LabProbe]]:
    """The rounds at which a run was measured, and what was found."""
    return [(record.round, record.probe) for record in run if record.probe is not None]


def _arm(arm: Arm, runs: Runs, baseline: Runs | None) -> ArmResult:
    every = [run for _, run in sorted(runs.items())]
    shared = sorted(set(runs) & set(baseline or {}))
    there, here = [(baseline or {})[seed] for seed in shared], [runs[seed] for seed in shared]
    first, last = [probes(run)[0][1] for run in every], [probes(run)[-1][1] for run in every]
    needed = [_reached(run, average(final(other))) for run, other in zip(here, there, strict=True)]
    before = [areas(run) for run in there]
    return ArmResult(
        arm=arm.name,
        recipe=arm.recipe,
        seeds=sorted(runs),
        held_out_start=estimate([probe.pass_at_1_N for probe in first]),
        held_out_final=estimate([final(run) for run in every]),
        held_out_area=estimate([areas(run) for run in every]),
        difference=paired([*map(final, here)], [*map(final, there)]) if shared else None,
        area_difference=paired([*map(areas, here)], before) if shared else None,
        area_gain=estimate([*map(areas, here)], before)
        if shared and all(average(areas_N) > 0 for areas_N in before)
        else None,
        seeds_ahead=sum(average(final(a)) > average(final(b)) for a, b in zip(here, there, strict=True))
        if shared
        else None,
        rounds_needed=None if not shared or None in needed else _known(needed),
        pass_at_8_start=estimate([probe.pass_at_8_N or () for probe in first]),
        pass_at_8_final=estimate([probe.pass_at_8_N or () for probe in last]),
        swing=_known([swing([average(probe.pass_at_1_N) for _, probe in probes(run)]) for run in every]),
        own_swing=_known([swing([record.own_reward for record in run[1:]]) for run in every]),
        cumulative_training_batch_reward=_summed(every, lambda r, nodes: r.batch_reward * nodes),
        cumulative_own_reward=_summed(every, lambda r, nodes: r.own_reward * nodes),
        generated_completions=_summed(every, lambda r, _: r.generated),
        generated_tokens=_summed(every, lambda r, _: r.generated_tokens),
        seconds=_summed(every, lambda r, _: r.seconds),
        cpu_seconds=_summed(every, lambda r, _: r.cpu_seconds),
        worked_start=average([probe.worked for probe in first]),
        worked_final=average([probe.worked for probe in last]),
        informative=_counted([record for run in every for record in run[1:]]),
        entropy_start=_known([record.own_nats for run in every for record in run[1:6]]),
        entropy_final=_known([record.own_nats for run in every for record in run[-5:]]),
        peer_nats=_known([record.peer_nats for run in every for record in run]),
        families_start=_families(first),
        families_final=_families(last),
    )


def _reached(run: Sequence[LabRound], height: float) -> float | None:
    """The round in which the mean of a run's nodes first reaches this height."""
    rounds, curve = zip(*((number, average(probe.pass_at_1_N)) for number, probe in probes(run)), strict=True)
    return reached(rounds, curve, height)


def final(run: Sequence[LabRound]) -> Sequence[float]:
    """Each node's share of the last probe."""
    return probes(run)[-1][1].pass_at_1_N


Cost = Callable[[LabRound], float]
"""What a round cost."""
COSTS: dict[str, Cost] = {
    "completions": lambda record: record.generated,
    "tokens": lambda record: record.generated_tokens,
    "processor seconds": lambda record: record.cpu_seconds,
}


def areas(run: Sequence[LabRound], cost: Cost | None = None, end: float | None = None) -> list[float]:
    """The area under each node's own curve, over rounds, or over a cost up to `end`."""
    measured = probes(run)
    at = [number for number, _ in measured] if cost is None else spent(run, cost)
    shares_N = zip(*(probe.pass_at_1_N for _, probe in measured), strict=True)
    return [area(at, curve, end) for curve in shares_N]


def at_equal_cost(runs: Runs, other: Runs, cost: Cost) -> tuple[Estimate, float] | None:
    """How far the curve of one arm lies above another's where both have cost as much, mean height from nothing
    to as much as both have cost; and how much that is. None without a seed in common or where one cost
    nothing."""
    shared = sorted(set(runs) & set(other))
    if not shared:
        return None
    both = [[every[seed] for seed in shared] for every in (runs, other)]
    end = min(spent(run, cost)[-1] for every in both for run in every)
    return (paired(*([areas(run, cost, end) for run in every] for every in both)), end) if end else None


def spent(run: Sequence[LabRound], value: Cost) -> list[float]:
    """What had been spent before each probe."""
    sums = accumulate(map(value, run))
    return [float(total) for total, record in zip(sums, run, strict=True) if record.probe is not None]


def swing(curve: Sequence[float]) -> float | None:
    """Standard deviation about a straight line of the smoothed second half: a curve that only rises does not
    swing. Smoothed over five values, over fewer where there are fewer than twelve; None for a short one."""
    width = 5 if len(curve) >= 12 else max(1, len(curve) // 3)
    smooth = [average(curve[k : k + width]) for k in range(len(curve) - width + 1)]
    half = smooth[len(smooth) // 2 :]
    if len(half) < 3:
        return None
    middle, mean = (len(half) - 1) / 2, average(half)
    spread = sum((k - middle) ** 2 for k in range(len(half)))
    slope = sum((k - middle) * value for k, value in enumerate(half)) / spread
    rest = sum((value - mean - slope * (k - middle)) ** 2 for k, value in enumerate(half))
    return float((rest / (len(half) - 2)) ** 0.5)


def _known(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return average(found) if found else None


def _families(probes: Sequence[LabProbe]) -> dict[str, float]:
    return {name: average([probe.families.get(name, 0.0) for probe in probes]) for name in probes[0].families}


def _summed(every: Sequence[Sequence[LabRound]], value: Callable[[LabRound, int], float]) -> float:
    """Mean over seeds of the sum over rounds."""
    return average([sum(value(record, len(final(run))) for record in run) for run in every])


def _counted(records: Sequence[LabRound]) -> InformativeCounts:
    return InformativeCounts(
        own=average([record.informative_own for record in records]),
        own_predicted=average([record.predicted_own or 0.0 for record in records]),
        peer=average([record.taken for record in records]),
        peer_predicted=average([record.predicted_peer or 0.0 for record in records]),
    )


def _verdict(baseline: str, found: Sequence[ArmResult], shuffled: set[str]) -> str:
    """Which arm wins by held-out pass@1, whether that is more than noise, and what the controls did."""
    arms = sorted(
        [result for result in found if result.arm not in shuffled] or found,
        key=lambda result: -result.held_out_final.mean,
    )
    best, height = arms[0].arm, share(arms[0].held_out_final)
    if len(arms) < 2:
        told = [f"There is only {best}, with held-out pass@1 {height} at the last round: nothing to compare."]
    else:
        told = [f"By held-out pass@1 at the last round {best} is highest: {height}."]
        told += [f"No arm beats the baseline {baseline}."] * (best == baseline)
    told += [_compared(result, baseline, result.difference) for result in arms if result.difference]
    told += [
        f"The shuffled-reward control {result.arm} went from {percent(result.held_out_start.mean)} to "
        f"{percent(result.held_out_final.mean)}."
        for result in found
        if result.arm in shuffled
    ]
    return " ".join(told)


def _compared(result: ArmResult, baseline: str, difference: Estimate) -> str:
    how_far = f"{abs(100 * difference.mean):.1f} points {'ahead of' if difference.mean > 0 else 'behind'}"
    text = (
        f"{result.arm} is {how_far if difference.mean else 'level with'} {baseline} "
        f"[{100 * difference.low:+.1f}, {100 * difference.high:+.1f}], ahead in {result.seeds_ahead} of "
        f"{difference.seeds} seeds: the interval {'excludes' if difference.excludes_zero else 'includes'} zero"
    )
    if difference.t_excludes_zero is None:
        return text + ", but one seed speaks only of its own nodes."
    if difference.excludes_zero and not difference.t_excludes_zero:
        return text + ", though a t interval over the few seeds does not."
    return text + "."
