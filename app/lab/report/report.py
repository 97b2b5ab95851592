"""Writes a study's files, each figure of which is computed from the records: summary.json, curves.csv,
table.md, curves.png."""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from app.common import files
from app.lab.arms import Arm
from app.lab.plan import LabRound, StudyPlan
from app.lab.report.results import ArmResult, Results, Runs, summarise
from app.lab.statistics import average, number, percent, points, share, table
from engines.facts import package_version

SUMMARY, CSV, TABLE, CURVES = "summary.json", "curves.csv", "table.md", "curves.png"
_PACKAGES = ("torch", "transformers", "peft", "reasoning-gym", "numpy")


def write(
    folder: Path, plan: StudyPlan, arms: Sequence[Arm], runs: Mapping[str, Runs], command: str, complete: bool
) -> dict[str, Any]:
    """Writes the study's four files (three without matplotlib), each atomically, and returns the content of
    summary.json."""
    results = summarise(arms, runs)
    summary = {
        "complete": complete,
        "verdict": results.verdict,
        "baseline": results.baseline,
        "command": command,
        "config": msgspec.to_builtins(plan),
        "versions": {
            "python": platform.python_version(),
            **{name: package_version(name) or "not installed" for name in _PACKAGES},
        },
        "arms": {result.arm: msgspec.to_builtins(result) for result in results.arms},
    }
    files.write_json(folder / SUMMARY, summary)
    files.write(folder / CSV, as_csv(arms, runs).encode())
    files.write(folder / TABLE, "\n".join([*figures(plan, results), f"`{command}`", ""]).encode())
    try:
        from app.lab.report.plot import draw  # only here: an installed app's engine has no matplotlib
    except ModuleNotFoundError:
        return summary
    files.write(folder / CURVES, draw(arms, runs))
    return summary


def figures(plan: StudyPlan, results: Results) -> list[str]:
    """The study's results: sentences and tables, each ending with a line break."""
    levels = ", ".join(f"{family} {level}" for family, level in plan.levels.items())
    return [
        f"{plan.nodes} nodes, {plan.rounds} rounds, {plan.group} answers a question, learning rate "
        f"{plan.learning_rate:g}; {plan.model} at {levels}; {plan.probe_items} held-out questions every "
        f"{plan.probe_every} rounds, of which {percent(results.arms[0].held_out_start.mean)} are solved before "
        "the first round.\n",
        f"{results.verdict}\n",
        _gains(results),
        _inside(results),
        _families(results),
    ]


def _gains(results: Results) -> str:
    columns: dict[str, Callable[[ArmResult], str]] = {
        "arm": lambda arm: arm.arm,
        "seeds": lambda arm: f"{len(arm.seeds)}",
        "mean height of the held-out curve": lambda arm: share(arm.held_out_area),
        f"difference to {results.baseline}, points": lambda arm: points(arm.area_difference),
        "last round": lambda arm: share(arm.held_out_final),
        "completions generated": lambda arm: f"{arm.generated_completions:,.0f}",
        "processor seconds": lambda arm: number(arm.cpu_seconds or None, ",.0f"),
    }
    return table(columns, results.arms)


def _inside(results: Results) -> str:
    base = next(arm for arm in results.arms if arm.arm == results.baseline).cumulative_training_batch_reward

    def paper(arm: ArmResult) -> str:
        summed = arm.cumulative_training_batch_reward
        more = f" ({100 * (summed / base - 1):+.0f} %)" if base and arm.arm != results.baseline else ""
        return f"{summed:.1f}{more}, {arm.cumulative_own_reward:.1f}"

    columns: dict[str, Callable[[ArmResult], str]] = {
        "arm": lambda arm: arm.arm,
        "informative own, peer": lambda arm: f"{arm.informative_own:.2f} + {arm.informative_peer:.2f}",
        "worked answers": lambda arm: (
            f"{100 * arm.worked_start:.0f} → {number(arm.worked_final, '.0f', ' %', 100)}"
        ),
        "training batch, the paper's sum; of own answers": paper,
    }
    return table(columns, results.arms)


def _families(results: Results) -> str:
    columns: dict[str, Callable[[ArmResult], str]] = {"held out, last round": lambda arm: arm.arm}
    for name in sorted(results.arms[0].families_final):
        columns[name] = lambda arm, name=name: f"{100 * arm.families_final.get(name, 0.0):.1f}"  # type: ignore[misc]
    return table(columns, results.arms)


def as_csv(arms: Sequence[Arm], runs: Mapping[str, Runs]) -> str:
    """One CSV row per arm, seed and round. Columns without a measurement are empty."""
    rows: list[dict[str, Any]] = []
    for arm in arms:
        for seed, run in sorted(runs.get(arm.key, {}).items()):
            generated, seconds = 0, 0.0
            for record in run:
                generated += record.generated
                seconds += record.seconds
                row = {"arm": arm.name, "recipe": arm.recipe, "seed": seed, **_columns(record)}
                rows.append(row | {"generated_so_far": generated, "seconds_so_far": seconds})
    text = io.StringIO()
    writer = csv.DictWriter(text, list({name: None for row in rows for name in row}), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    )
    return text.getvalue()


def _columns(record: LabRound) -> dict[str, Any]:
    probe = record.probe
    measured = {
        name: value for name, value in msgspec.structs.asdict(record).items() if name not in ("probe", "extra")
    }
    return (
        measured
        | (record.extra or {})
        | {
            "held_out_pass_at_1": probe and average(probe.pass_at_1_N),
            "held_out_worked": probe and probe.worked,
            "held_out_finished": probe and probe.finished,
            "held_out_by_node": probe and " ".join(f"{value:.4f}" for value in probe.pass_at_1_N),
        }
    )
