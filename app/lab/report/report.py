"""Writes a study's files (summary.json, curves.csv, table.md, curves.png) and, from several studies, the report
of `./shoal lab report DIR ...`.

Every figure is computed here from the records. People's remarks are in a study's about.md: its question, what
did not work."""

from __future__ import annotations

import csv
import io
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from app.common import files
from app.lab.arms import Arm
from app.lab.journal import ABOUT, SUMMARY, Study, pack, read_study
from app.lab.plan import LabRound, StudyPlan
from app.lab.report.results import COSTS, ArmResult, Results, Runs, at_equal_cost, probes, summarise
from app.lab.statistics import (
    EMPTY_CELL,
    average,
    estimate,
    growth,
    number,
    percent,
    points,
    share,
    table,
)
from engines.facts import package_version

REPORT = Path(__file__).parents[1] / "REPORT.md"
CSV, TABLE, CURVES = "curves.csv", "table.md", "curves.png"
GOALS = "goals.md"
"""File beside the studies: what they were to show, and whether they did."""
CLOSED_SECTION = "section.md"
"""File with the report's text on a study whose code has been removed."""
_PACKAGES = ("torch", "transformers", "peft", "reasoning-gym", "numpy")

_HEAD = """\
# Does the swarm teach?

Models that learn in a swarm train on answers of others as well as on their own. Does that make them \
better, at what cost, and compared with what? This page is written by `./shoal lab report` from the \
records of every run, which lie beside it; remarks, goals and what is closed stand there as text.
"""

_METHOD = """\
Each run is a whole swarm in one process: its nodes share a frozen model and have an adapter and an
optimiser each; a round is that of the app with the network left out. Question k of node n in round t is the
same in every arm, and so is the adapter that node n of seed s begins with, so differences are paired by
seed and node.

- **Held-out pass@1** decides: the same questions for every arm and node, never trained on by anybody, one
  answer each at temperature 1. **Mean height** is the area under that curve divided by its length, the
  honest analogue of a cumulative reward.
- Square brackets are 95 % bootstrap intervals over seeds and nodes. Nodes of a swarm learn from each other,
  so whole seeds are drawn first. With few seeds they are too narrow; t intervals over seeds stand
  beside them.
- **I/J** means I own questions answered and up to J groups of peers learned from in a round. `8/0` is a
  node alone. `+ds` replaces own groups without a signal by fresh questions (dynamic sampling); all of it
  counts as generated. `@default` is the app's recipe, `-guard` takes away its checks of peers' text and
  `+steps=1` its optimiser step for every two groups that have something to teach. Arms without a name are
  faithful to SAPO (arXiv 2509.08721).
- The mean reward of training batches, in which the paper reports its +94 %, decides nothing here: choosing
  informative groups of peers raises it without anything being learnt.
- **Informative** groups have both right and wrong answers. The counting model expects `I s + E[min(J,
  Bin(offered, s))]` of them with `s = 1 - (1-p)^G - p^G`, from success rates alone. Both are
  means over nodes and rounds.
- **Swing** is the standard deviation, in points, of the smoothed curve about its straight line in the second
  half of a run: of the held-out probe, and of own fresh questions, which every round asks. **Entropy** is the
  mean -log prob of own tokens in the first and last five rounds.
- Processor seconds are those of the process that samples and learns, without the probes, on one thread;
  other work on the machine does not stretch them.
"""

_LIMITS = """\
- One small starter of 1.7 million parameters, made for these puzzles, with adapters of rank 16: nothing
  here says how large a gain is for a model of half a billion parameters, nor for other kinds of questions.
- All nodes begin alike unless a study says otherwise, and nothing is lost or late on the way: the network
  of a real swarm is left out.
- Short runs: tens of rounds, where the paper made 2,000. A recipe that pays later, or that breaks down
  later, is not seen.
- The learning rate was tuned for no arm and is the same in all.
- One to three seeds. The bootstrap over so few is too narrow; the t interval over seeds stands beside it.
- All arms are measured on the same held-out questions; the intervals do not contain the choice of those.
"""


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
    study = Study(folder=folder, plan=plan, command=command, about="", arms=list(arms), runs=runs)
    files.write_json(folder / SUMMARY, summary)
    files.write(folder / CSV, as_csv(arms, runs).encode())
    _write_table(study, figures(study, results))
    _draw(study)
    return summary


def _write_table(study: Study, found: Sequence[str]) -> None:
    files.write(study.folder / TABLE, "\n".join([*found, f"`{_command(study)}`", ""]).encode())


def _draw(study: Study) -> None:
    try:
        from app.lab.report.plot import draw  # only here: an installed app's engine has no matplotlib
    except ModuleNotFoundError:
        return
    files.write(study.folder / CURVES, draw(study.arms, study.runs))


def write_report(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Writes plots and tables into the studies' folders, packs their finished runs, and writes the report to
    `out`, by default app/lab/REPORT.md: for each study its question, settings, verdict and links. Raises
    JournalError for a folder without a finished run."""
    to = out or REPORT
    goals = folders[0].parent / GOALS
    closed = [folder / CLOSED_SECTION for folder in folders if (folder / CLOSED_SECTION).is_file()]
    studies = [read_study(folder) for folder in folders if not (folder / CLOSED_SECTION).is_file()]
    parts = [_HEAD, *([goals.read_text(encoding="utf-8")] if goals.is_file() else []), "## Method\n", _METHOD]
    for study in studies:
        pack(study.folder, study.plan.rounds)
        _draw(study)
        picture = Path(os.path.relpath(study.folder / CURVES, to.parent)).as_posix()
        question, _, _ = (study.about or "*No remarks.*").partition("\n\n")
        parts += [f"## Study `{study.name}`\n", f"{question}\n"]
        found = figures(study, summarise(study.arms, study.runs))
        _write_table(study, found)
        parts += found[:2]
        linked = {"curves": CURVES, "tables": TABLE, "remarks": ABOUT}
        place = picture.removesuffix(CURVES)
        parts += [", ".join(f"[{what}]({place}{name})" for what, name in linked.items()) + "\n"]
    for section in closed:
        where = Path(os.path.relpath(section, to.parent)).as_posix()
        head, question, *_ = section.read_text(encoding="utf-8").split("\n\n")
        parts += [f"{head}\n\n{question.rstrip()}\n\n[tables]({where})\n"]
    parts += ["## Limits\n", _LIMITS, _commands(folders, to)]
    files.write(to, "\n".join(parts).encode())
    return to


def figures(study: Study, results: Results) -> list[str]:
    """The study's results: sentences and tables, each ending with a line break."""
    plan, first = study.plan, results.arms[0]
    levels = ", ".join(f"{family} {level}" for family, level in plan.levels.items())
    found = [
        f"{plan.nodes} nodes, {plan.rounds} rounds, {plan.group} answers a question, learning rate "
        f"{plan.learning_rate:g}; {plan.model} at {levels}; {plan.probe_items} held-out questions every "
        f"{plan.probe_every} rounds, of which {percent(first.held_out_start.mean)} are solved before the "
        f"first round. {study.finished} of {study.planned} runs finished.\n",
        f"{results.verdict}\n",
        _gains(results),
        attackers_table(study),
        _at_equal_cost(study, results),
        _inside(results),
        _families(results),
    ]
    return [part for part in found if part]


def _gains(results: Results) -> str:
    base = results.baseline
    columns: dict[str, Callable[[ArmResult], str]] = {
        "arm": lambda arm: arm.arm,
        "seeds": lambda arm: f"{len(arm.seeds)}",
        "mean height of the held-out curve": lambda arm: share(arm.held_out_area),
        f"gain over {base}": lambda arm: growth(arm.area_gain),
        "difference, points": lambda arm: points(arm.area_difference),
        "t over seeds": _over_seeds,
        "last round": lambda arm: share(arm.held_out_final),
        "seeds ahead at the end": lambda arm: (
            f"{arm.seeds_ahead} of {arm.difference.seeds}" if arm.difference else EMPTY_CELL
        ),
        f"as high as {base} ends by round": lambda arm: number(arm.rounds_needed, ".0f"),
        "completions generated": lambda arm: f"{arm.generated_completions:,.0f}",
        "processor seconds": lambda arm: number(arm.cpu_seconds or None, ",.0f"),
    }
    return table(columns, results.arms)


def _over_seeds(arm: ArmResult) -> str:
    gap = arm.area_difference
    if gap is None or gap.t_low is None or gap.t_high is None:
        return EMPTY_CELL
    return f"[{100 * gap.t_low:+.1f}, {100 * gap.t_high:+.1f}]"


def _at_equal_cost(study: Study, results: Results) -> str:
    """Compares every arm with the baseline and with dynamic sampling, up to an equal cost."""
    opponents = [arm for arm in (study.arm(results.baseline), study.arm("8/0+ds")) if arm is not None]
    found = {
        (arm.key, other.key, name): at_equal_cost(study.runs[arm.key], study.runs[other.key], cost)
        for arm in study.arms
        for other in opponents
        for name, cost in COSTS.items()
        if arm is not other and not arm.shuffled
    }

    def cell(arm: Arm, other: Arm, name: str) -> str:
        outcome = found.get((arm.key, other.key, name))
        return f"{points(outcome[0])} up to {outcome[1]:,.0f}" if outcome else EMPTY_CELL

    columns: dict[str, Callable[[Arm], str]] = {"arm": lambda arm: arm.name}
    for other in opponents:
        for name in COSTS:
            if any(found.get((arm.key, other.key, name)) for arm in study.arms):
                columns[f"against {other.name}, {name}"] = lambda arm, other=other, name=name: cell(  # type: ignore[misc]
                    arm, other, name
                )
    rows = [arm for arm in study.arms if any(found.get((arm.key, o.key, n)) for o in opponents for n in COSTS)]
    head = "Difference of mean height, points, where both have cost as much, of all nodes together:\n\n"
    return head + table(columns, rows) if rows else ""


def _inside(results: Results) -> str:
    base = next(arm for arm in results.arms if arm.arm == results.baseline).cumulative_training_batch_reward

    def paper(arm: ArmResult) -> str:
        summed = arm.cumulative_training_batch_reward
        more = f" ({100 * (summed / base - 1):+.0f} %)" if base and arm.arm != results.baseline else ""
        return f"{summed:.1f}{more}, {arm.cumulative_own_reward:.1f}"

    columns: dict[str, Callable[[ArmResult], str]] = {
        "arm": lambda arm: arm.arm,
        "informative own, peer": lambda arm: f"{arm.informative.own:.2f} + {arm.informative.peer:.2f}",
        "counting model": lambda arm: (
            f"{arm.informative.own_predicted:.2f} + {arm.informative.peer_predicted:.2f}"
        ),
        "swing held out, own": lambda arm: (
            f"{number(arm.swing, times=100)}, {number(arm.own_swing, times=100)}"
        ),
        "entropy, nats": lambda arm: f"{number(arm.entropy_start)} → {number(arm.entropy_final)}",
        "peers' text, nats": lambda arm: number(arm.peer_nats),
        "worked answers": lambda arm: (
            f"{100 * arm.worked_start:.0f} → {number(arm.worked_final, '.0f', ' %', 100)}"
        ),
        "training batch, the paper's sum; of own answers": paper,
        "seconds": lambda arm: f"{arm.seconds:,.0f}",
    }
    return table(columns, results.arms)


def _families(results: Results) -> str:
    before = ("before", results.arms[0].families_start)
    rows = [before, *((arm.arm, arm.families_final) for arm in results.arms)]
    columns: dict[str, Callable[[tuple[str, dict[str, float]]], str]] = {
        "held out, last round": lambda row: row[0]
    }
    for name in sorted(results.arms[0].families_final):
        columns[name] = lambda row, name=name: f"{100 * row[1].get(name, 0.0):.1f}"  # type: ignore[misc]
    return table(columns, rows)


def _commands(folders: Sequence[Path], to: Path) -> str:
    shown = to if not to.is_absolute() else Path(os.path.relpath(to))
    report = f"./shoal lab report {' '.join(map(str, folders))}{'' if to == REPORT else f' --out {shown}'}"
    return (
        "## Every number again\n\nThe last line of each study's tables is the command that runs it; it "
        "continues where it stopped. Arms that the lab refuses were taken out of the code after their study. "
        "Other seeds, for an independent repetition: add `--first-seed 100` and another `--out`. This page, "
        f"the pictures and the tables, from the records:\n\n```\n{report}\n```\n"
    )


def _command(study: Study) -> str:
    """The command that makes all of the study's runs; the recorded one may have named fewer arms and another
    folder."""
    told = {"arms": ",".join(arm.name for arm in study.arms), "recipe": "faithful", "out": str(study.folder)}
    command = re.sub(r"--(arms|recipe|out) \S+", lambda found: f"--{found[1]} {told[found[1]]}", study.command)
    return command or f"# {study.folder}"


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


# The findings of a study with attackers: how far their mark got into the nodes, and what was kept out beside
# it.

LAST_ROUNDS = 25
"""Number of last rounds over which the nodes' own samples are counted."""


def attackers_table(study: Study) -> str:
    """A Markdown table if the study has attackers or defences; otherwise an empty string."""
    records = [record for runs in study.runs.values() for run in runs.values() for record in run]
    if not (_has(records, "honest_taken") or any("foes" in dict(arm.extras) for arm in study.arms)):
        return ""
    nodes = study.plan.nodes

    def runs(arm: Arm) -> list[Sequence[LabRound]]:
        return [run for _, run in sorted(study.runs[arm.key].items())]

    def every(arm: Arm) -> list[LabRound]:
        return [record for run in runs(arm) for record in run[1:]]

    def late(arm: Arm) -> list[LabRound]:
        return [record for run in runs(arm) for record in run[1:][-LAST_ROUNDS:]]

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
        f"own samples with it, last {LAST_ROUNDS} rounds": lambda arm: percent(
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
