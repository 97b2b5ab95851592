"""The files a study leaves: summary.json, curves.csv, table.md and curves.png."""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from app.common import files
from app.lab import who
from app.lab.arms import Arm
from app.lab.plan import Plan, Round, named
from app.lab.results import ArmResult, Results, Runs, summarise
from app.lab.wording import points, share
from engines.facts import package_version

_PACKAGES = ("torch", "transformers", "peft", "reasoning-gym", "numpy")


CSV = "curves.csv"
"""Every round of every run, one a line."""


def write(
    folder: Path, plan: Plan, arms: Sequence[Arm], runs: Mapping[str, Runs], command: str, complete: bool
) -> dict[str, Any]:
    """Writes all four files, or three where no picture can be drawn, and returns what is in summary.json. Each
    file is replaced whole."""
    results = summarise(arms, runs)
    summary = _summary(plan, results, command, complete)
    files.write_json(folder / "summary.json", summary)
    files.write(folder / CSV, as_csv(arms, runs).encode())
    kinds = "\n".join(who.lines(plan, arms, runs, results.baseline))
    files.write(folder / "table.md", (table(plan, results, command, complete) + kinds).encode())
    try:
        from app.lab.plot import draw  # only here: an installed app's engine has no matplotlib
    except ModuleNotFoundError:
        return summary
    files.write(folder / "curves.png", draw(arms, runs))
    return summary


def _summary(plan: Plan, results: Results, command: str, complete: bool) -> dict[str, Any]:
    return {
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


def table(plan: Plan, results: Results, command: str, complete: bool) -> str:
    """The table as Markdown: the verdict, the paper's columns and ours, and what they mean."""
    first = results.arms[0]
    base = next(result for result in results.arms if result.arm == results.baseline)
    levels = ", ".join(f"{family} level {level}" for family, level in plan.levels.items())
    header = (
        "| config | cumulative reward, training batch (the paper's) | vs baseline | of own completions only "
        f"| held-out pass@1, round {plan.rounds} | difference to {results.baseline}, points | seeds ahead "
        "| mean over all rounds | worked answers | completions generated | seconds |"
    )
    lines = [
        results.verdict,
        "" if complete else "\nNot finished: only complete runs are in this table.",
        header,
        "|---" * (header.count("|") - 1) + "|",
        *[_row(result, base) for result in results.arms],
        "",
        f"{plan.nodes} nodes, {plan.rounds} rounds, {plan.group} completions a question, seeds "
        f"{', '.join(map(str, first.seeds))}; {named(plan)}, {levels}; learning rate {plan.learning_rate:g}. "
        f"Held-out pass@1 before training: {100 * first.held_out_start.mean:.1f} %.",
        "",
        "Square brackets: 95 % bootstrap over seeds and nodes. Held-out: the same questions for every arm, "
        "never trained on, one answer each at temperature 1, mean over nodes. The training batch contains "
        "chosen informative groups of peers, so its reward rises by selection alone and decides nothing. "
        "Generated: for training, all nodes, mean over seeds; seconds likewise, without the probes.",
        "",
        f"`{command}`",
        "",
    ]
    return "\n".join(lines)


def _row(result: ArmResult, base: ArmResult) -> str:
    reward, reference = result.cumulative_training_batch_reward, base.cumulative_training_batch_reward
    gain = "–" if result is base or not reference else f"{100 * (reward / reference - 1):+.0f} %"
    cells = [
        result.arm,
        f"{reward:.1f}",
        gain,
        f"{result.cumulative_own_reward:.1f}",
        share(result.held_out_final),
        points(result.difference),
        "–" if result.difference is None else f"{result.seeds_ahead} of {result.difference.seeds}",
        f"{100 * result.held_out_area.mean:.1f} %",
        f"{100 * result.worked_start:.0f} → {100 * result.worked_final:.0f} %",
        f"{result.generated_completions:,.0f}",
        f"{result.seconds:,.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def as_csv(arms: Sequence[Arm], runs: Mapping[str, Runs]) -> str:
    """One row per arm, seed and round. Columns are empty where nothing was measured."""
    rows: list[dict[str, Any]] = []
    for arm in arms:
        for seed, run in sorted(runs.get(arm.key, {}).items()):
            generated, seconds = 0, 0.0
            for record in run:
                generated += record.generated
                seconds += record.seconds
                row = {"arm": arm.name, "recipe": arm.recipe, "seed": seed, **_columns(record)}
                rows.append(row | {"generated_so_far": generated, "seconds_so_far": round(seconds, 3)})
    text = io.StringIO()
    writer = csv.DictWriter(text, list({name: None for row in rows for name in row}), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _columns(record: Round) -> dict[str, Any]:
    probe = record.probe
    mean = sum(probe.pass_at_1_N) / len(probe.pass_at_1_N) if probe else None
    columns = {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in msgspec.structs.asdict(record).items()
        if name not in ("probe", "extra")
    }
    columns |= {name: round(value, 6) for name, value in (record.extra or {}).items()}
    return columns | {
        "held_out_pass_at_1": mean if mean is None else round(mean, 6),
        "held_out_worked": probe and probe.worked,
        "held_out_finished": probe and probe.finished,
        "held_out_by_node": " ".join(f"{value:.4f}" for value in probe.pass_at_1_N) if probe else None,
    }
