"""What the studies were to show, each tested on the committed records and reported whether it holds or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean

import msgspec

from app.lab import attacks
from app.lab.archive import Study
from app.lab.arms import Arm, parse_arm
from app.lab.regime import families_of
from app.lab.results import ArmResult, equal_generation, own_curve, summarise, swing
from app.lab.statistics import Estimate, estimate, paired
from app.lab.wording import growth, points, share


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A goal and what was measured. `met` is None where the data do not decide, or there are none."""

    goal: str
    measured: str
    met: bool | None
    study: str = ""


Studies = Mapping[str, Study]
"""By the name of their folder."""


def sharing_doubles(studies: Studies) -> Finding:
    goal = "Rare success: 4/4 has at least 94 % more area under the held-out curve than 8/0"
    return _doubling(studies, "rare", goal)


def sharing_doubles_where_there_is_room(studies: Studies) -> Finding:
    goal = "The same where nodes can do more than they show"
    return _doubling(studies, "seldom", goal)


def _doubling(studies: Studies, regime: str, goal: str) -> Finding:
    study, found = _of(studies, regime, "4/4", "8/0")
    if study is None:
        return _unmeasured(goal)
    ours = _ours(study, "4/4")
    names = ["4/4"] if ours is None else ["4/4", ours.name]
    gains = {name: gain for name in names if (gain := found[name].area_gain) is not None}
    if not gains:
        return _unmeasured(goal)
    best = max(gains.values(), key=lambda gain: gain.mean)
    return Finding(
        goal=goal,
        measured="; ".join(f"{growth(gain)} by {name}, {_seeds(gain)}" for name, gain in gains.items()),
        met=_decided(best, best.low >= 0.94, best.high < 0.94),
        study=study.name,
    )


def sharing_beats_selection(studies: Studies) -> Finding:
    goal = (
        "Equally many generated completions: sharing 4/4 by the default recipe beats 8/0 with dynamic sampling"
    )
    for study in sorted(studies.values(), key=lambda study: study.plan.regime != "rare"):
        sharing, dynamic = _ours(study, "4/4"), study.arm("8/0+ds")
        if sharing is None or dynamic is None:
            continue
        outcome = equal_generation(study.runs[sharing.key], study.runs[dynamic.key])
        if outcome is None:
            continue
        ahead, end = outcome
        return Finding(
            goal=goal,
            measured=f"{points(ahead, ' points')} mean height by {sharing.name} up to {end:,.0f} completions, "
            f"{_seeds(ahead)}",
            met=_decided(ahead, ahead.low > 0, ahead.high <= 0),
            study=study.name,
        )
    return _unmeasured(goal)


def default_swings_less(studies: Studies) -> Finding:
    goal = "The default recipe at 2/6 swings less than faithful 2/6, at no lower mean"
    return _calmer(studies, "rare", goal)


def default_swings_less_where_there_is_room(studies: Studies) -> Finding:
    return _calmer(studies, "seldom", "The same where nodes can do more than they show (2/6)")


def _calmer(studies: Studies, regime: str, goal: str) -> Finding:
    study, found = _of(studies, regime, "2/6")
    ours = None if study is None else _ours(study, "2/6")
    if study is None or ours is None:
        return _unmeasured(goal)
    runs, theirs = study.runs[ours.key], study.runs[parse_arm("2/6", "faithful").key]
    swings = [
        (calm, wild)
        for seed in sorted(set(runs) & set(theirs))
        if (calm := swing(own_curve(runs[seed]))) is not None
        and (wild := swing(own_curve(theirs[seed]))) is not None
    ]
    if not swings:
        return _unmeasured(goal)
    less = paired([[calm] for calm, _ in swings], [[wild] for _, wild in swings])
    heights = found[ours.name].held_out_area.mean, found["2/6"].held_out_area.mean
    calmer = True if less.high < 0 else False if less.low > 0 else None
    return Finding(
        goal=goal,
        measured=f"{ours.name}: {points(less, ' points')} to the "
        f"{100 * mean(wild for _, wild in swings):.1f} of 2/6; "
        f"mean height {100 * heights[0]:.1f} % against {100 * heights[1]:.1f} %, {_seeds(less)}",
        met=None if less.seeds < 2 else False if heights[0] < heights[1] else calmer,
        study=study.name,
    )


def noise_teaches_nothing(studies: Studies) -> Finding:
    goal = "Shuffled rewards stay flat"
    for study in studies.values():
        for result in _results(study).values():
            if result.arm.endswith("!shuffled"):
                start, end = result.held_out_start, result.held_out_final
                return Finding(
                    goal=goal,
                    measured=f"{100 * start.mean:.1f} %, {share(end)} at the end, {_seeds(end)}",
                    met=end.low <= start.high and end.high >= start.low,
                    study=study.name,
                )
    return _unmeasured(goal)


def poison_stays_out(studies: Studies) -> Finding:
    goal = (
        "30 % poisoners: with the defences at most 1 % of answers carry the mark after 200 rounds, and "
        "held-out pass@1 is no lower than alone"
    )
    for study in studies.values():
        guarded, bare = attacks.find(study, "poison30", None), attacks.find(study, "poison30", "off")
        alone = attacks.find(study, None, None, alone=True)
        if guarded is None or alone is None:
            continue
        with_them = attacks.attacked(study, guarded)
        against = attacks.difference(study, guarded, alone)
        out = with_them.marked.high <= 0.01 and study.plan.rounds >= 200
        failed = with_them.marked.low > 0.01 or against.high < 0
        without = "" if bare is None else f", {share(attacks.attacked(study, bare).marked)} without them"
        return Finding(
            goal=goal,
            measured=f"{share(with_them.marked)} by {guarded.name}{without}, after {study.plan.rounds} "
            f"rounds; held out {points(against, ' points')} against {alone.name}, {_seeds(against)}",
            met=_decided(against, not failed and out and against.mean >= 0, failed),
            study=study.name,
        )
    return _unmeasured(goal)


def liars_change_nothing(studies: Studies) -> Finding:
    goal = "30 % liars change nothing outside the interval"
    for study in studies.values():
        pairs = [
            (lied_to, clean)
            for guard in (None, "off")
            if (lied_to := attacks.find(study, "liar30", guard)) is not None
            and (clean := attacks.find(study, None, guard)) is not None
        ]
        if not pairs:
            continue
        told = [
            f"{points(attacks.difference(study, lied_to, clean), ' points')} by {lied_to.name}"
            for lied_to, clean in pairs
        ]
        against = attacks.difference(study, *pairs[0])
        return Finding(
            goal=goal,
            measured=f"{'; '.join(told)}, each against the same without liars, {_seeds(against)}",
            met=None if against.seeds < 2 else against.low <= 0 <= against.high,
            study=study.name,
        )
    return _unmeasured(goal)


def neighbours_knowledge_arrives(studies: Studies) -> Finding:
    goal = "Specialists: families that a node does not know rise from at most 2 % to at least 25 %"
    for study in studies.values():
        sharing, alone = _ours(study, "4/4"), study.arm("8/0")
        if sharing is None or alone is None or not any(_known(study)):
            continue
        start, end = (foreign(study, sharing, last) for last in (False, True))
        failed = start.low > 0.02 or end.high < 0.25
        reached = start.mean <= 0.02 and end.low >= 0.25
        return Finding(
            goal=goal,
            measured=f"{share(start)} to {share(end)} by {sharing.name}, to "
            f"{share(foreign(study, alone, True))} by {alone.name}, {_seeds(end)}",
            met=_decided(end, reached and not failed, failed),
            study=study.name,
        )
    return _unmeasured(goal)


def _known(study: Study) -> list[tuple[str, ...]]:
    """The families that each node's starter was taught, if they began with any."""
    return [families_of(name, study.plan.levels) for name in study.plan.starters]


def foreign(study: Study, arm: Arm, last: bool) -> Estimate:
    """Held-out pass@1 of the families that each node's starter was not taught, before the first round or after
    the last."""
    known_N = _known(study)
    values_SN = []
    for _, run in sorted(study.runs[arm.key].items()):
        probes = [record.probe for record in run if record.probe is not None]
        by_family = probes[-1 if last else 0].nodes or {}
        values_SN.append(
            [
                mean([shares_N[node] for family, shares_N in by_family.items() if family not in known])
                for node, known in enumerate(known_N)
            ]
        )
    return estimate(values_SN)


GOALS: tuple[Callable[[Studies], Finding], ...] = (
    sharing_doubles,
    sharing_doubles_where_there_is_room,
    sharing_beats_selection,
    neighbours_knowledge_arrives,
    default_swings_less,
    default_swings_less_where_there_is_room,
    noise_teaches_nothing,
    liars_change_nothing,
    poison_stays_out,
)


def _ours(study: Study, split: str) -> Arm | None:
    """The arm with this I/J of the app's recipe; where that was not run, without its defences, and else with
    one step a round."""
    names = [f"{split}@default{less}" for less in ("", "-guard", "-guard+steps=1")]
    return next((arm for name in names if (arm := study.arm(name))), None)


def _of(studies: Studies, regime: str, *arms: str) -> tuple[Study | None, dict[str, ArmResult]]:
    """The first study of a regime that has finished runs of these arms, and its results by arm."""
    for study in studies.values():
        if study.plan.regime == regime and all(study.arm(name) for name in arms):
            return study, _results(study)
    return None, {}


def _results(study: Study) -> dict[str, ArmResult]:
    return {result.arm: result for result in summarise(study.arms, study.runs).arms}


def _decided(by: Estimate, yes: bool, no: bool) -> bool | None:
    """What the data say; one seed decides nothing."""
    return yes if by.seeds > 1 and (yes or no) else None


def _unmeasured(goal: str) -> Finding:
    return Finding(goal=goal, measured="not measured", met=None)


def _seeds(value: Estimate) -> str:
    return f"{value.seeds} seed{'s' * (value.seeds > 1)}"


def rows(findings: Sequence[Finding]) -> list[str]:
    """The goals as a Markdown table."""
    words = {True: "met", False: "**not met**", None: "open"}
    lines = ["| goal | measured | | study |", "|---|---|---|---|"]
    lines += [f"| {f.goal} | {f.measured} | {words[f.met]} | {f.study or '–'} |" for f in findings]
    return lines
