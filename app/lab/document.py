"""`./shoal lab report DIR ...`: the whole report, written from the records of studies.

Every figure is computed here from the records. What people add stands in a study's about.md: its question, what
did not work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.common import files
from app.lab import attacks, effects, who
from app.lab.archive import Study, read_study
from app.lab.journal import pack
from app.lab.plan import named
from app.lab.plot import draw
from app.lab.results import Results, equal_generation, summarise
from app.lab.wording import NOTHING, growth, points, share, table

REPORT = Path(__file__).parent / "REPORT.md"
CURVES, EFFECTS = "curves.png", "effects.png"
GOALS = "goals.md"
"""Beside the studies: what they were to show, and whether it holds."""
CLOSED = "section.md"
"""What the report says of a study whose code is gone."""

_METHOD = """\
Each run is a whole swarm in one process: its nodes share a frozen model and have an adapter and an
optimiser each; a round is that of the app with the network left out. Question k of node n in round t is the
same in every arm, and so is the adapter that node n of seed s begins with, so differences are paired by
seed and node.

- **Held-out pass@1** decides: the same questions for every arm and node, never trained on by anybody, one
  answer each at temperature 1. **Mean height** is the area under that curve divided by its length, the
  honest analogue of a cumulative reward.
- Square brackets are 95 % bootstrap intervals over seeds and nodes. Nodes of a swarm learn from each other,
  so whole seeds are drawn first. With few seeds they are too narrow; `summary.json` has t intervals over
  seeds beside them.
- **I/J** means I own questions answered and up to J groups of peers learned from in a round. `8/0` is a
  node alone. `+ds` replaces own groups without a signal by fresh questions (dynamic sampling); all of it
  counts as generated. `@default` is the app's recipe, `-guard` takes away its checks of peers' text and
  `+steps=1` its optimiser step for every two groups that have something to teach. Arms without a name are
  faithful to SAPO (arXiv 2509.08721).
- The mean reward of training batches, in which the paper reports its +94 %, decides nothing here: choosing
  informative groups of peers raises it without anything being learnt.
- **Informative** groups have both right and wrong answers. The counting model expects `I s + E[min(J,
  Bin(offered, s))]` of them with `s = 1 - (1-p)^G - p^G`, from success rates alone.
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
- One to three seeds. The bootstrap over so few is too narrow; the t interval over seeds is the thin line in
  the second picture of each study.
- All arms are measured on the same held-out questions; the intervals do not contain the choice of those.
"""


def write_report(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Writes the pictures into the studies' folders, packs their finished runs, and writes the report to `out`,
    by default app/lab/REPORT.md. Raises JournalError for a folder without a finished run."""
    to = out or REPORT
    closed = [folder / CLOSED for folder in folders if (folder / CLOSED).is_file()]
    studies = [read_study(folder) for folder in folders if not (folder / CLOSED).is_file()]
    parts = [_head(folders)]
    for study in studies:
        results = summarise(study.arms, study.runs)
        pack(study.folder, study.plan.rounds)
        files.write(study.folder / CURVES, draw(study.arms, study.runs))
        files.write(study.folder / EFFECTS, effects.draw(results))
        parts.append(_section(study, results, to))
    parts += [section.read_text(encoding="utf-8") for section in closed]
    parts += ["## Limits\n", _LIMITS, _commands([*map(_command, studies)], folders, to)]
    files.write(to, "\n".join(parts).encode())
    return to


def _head(folders: Sequence[Path]) -> str:
    goals = folders[0].parent / GOALS
    lines = [
        "# Does the swarm teach?",
        "",
        "Models that learn in a swarm train on answers of others as well as on their own. Does that make them "
        "better, at what cost, and compared with what? This page is written by `./shoal lab report` from the "
        "records of every run, which lie beside it; remarks, goals and what is closed stand there as text.",
        "",
        *([goals.read_text(encoding="utf-8")] if goals.is_file() else []),
        "## Method",
        "",
        _METHOD,
    ]
    return "\n".join(lines)


def _section(study: Study, results: Results, to: Path) -> str:
    plan = study.plan
    levels = ", ".join(f"{family} {level}" for family, level in plan.levels.items())
    first = results.arms[0]
    counted = f"{study.finished} of {study.planned} runs finished"
    lines = [
        f"## Study `{study.name}`",
        "",
        study.about or "*No remarks.*",
        "",
        f"{plan.nodes} nodes, {plan.rounds} rounds, {plan.group} answers a question, learning rate "
        f"{plan.learning_rate:g}; {named(plan)} at {levels}; {plan.probe_items} held-out questions every "
        f"{plan.probe_every} rounds, of which {100 * first.held_out_start.mean:.1f} % are solved before the "
        f"first round. {counted}.",
        "",
        results.verdict,
        "",
        *_table(results),
        "",
        f"![Held-out pass@1 of every arm against rounds, completions and seconds]({_link(study, CURVES, to)})",
        "",
        f"![Differences to {results.baseline}, and informative groups against the counting model]"
        f"({_link(study, EFFECTS, to)})",
        "",
        *attacks.lines(study),
        *who.lines(plan, study.arms, study.runs, results.baseline),
        *_generation(study, results),
        *_inside(results),
        "",
        *_families(results),
        "",
    ]
    return "\n".join(lines)


def _link(study: Study, name: str, to: Path) -> str:
    return Path(os.path.relpath(study.folder / name, to.parent)).as_posix()


def _table(results: Results) -> list[str]:
    head = (
        f"| arm | seeds | mean height of the held-out curve | gain over {results.baseline} "
        f"| difference, points | last round | seeds ahead at the end | as high as {results.baseline} ends by "
        "round | completions generated | processor seconds |"
    )
    rows = [
        (
            result.arm,
            str(len(result.seeds)),
            share(result.held_out_area),
            growth(result.area_gain),
            points(result.area_difference),
            share(result.held_out_final),
            NOTHING
            if result.area_difference is None or result.difference is None
            else f"{result.seeds_ahead} of {result.difference.seeds}",
            _number(result.rounds_needed, 0),
            f"{result.generated_completions:,.0f}",
            f"{result.cpu_seconds:,.0f}" if result.cpu_seconds else NOTHING,
        )
        for result in results.arms
    ]
    return table(head, rows)


def _generation(study: Study, results: Results) -> list[str]:
    """Every arm at equally many generated completions, against being alone and against dynamic sampling."""
    opponents = [arm for arm in (study.arm(results.baseline), study.arm("8/0+ds")) if arm is not None]
    rows = []
    for arm in study.arms:
        outcomes = [equal_generation(study.runs[arm.key], study.runs[other.key]) for other in opponents]
        if arm.shuffled or all(
            arm is other or found is None for other, found in zip(opponents, outcomes, strict=True)
        ):
            continue
        cells = [
            NOTHING if arm is other or found is None else f"{points(found[0])} up to {found[1]:,.0f}"
            for other, found in zip(opponents, outcomes, strict=True)
        ]
        rows.append([arm.name, *cells])
    if not rows:
        return []
    names = " | ".join(f"against {arm.name}" for arm in opponents)
    return [
        "Difference of mean height, points, over equally many generated completions:",
        "",
        *table(f"| arm | {names} |", rows),
        "",
    ]


def _inside(results: Results) -> list[str]:
    head = (
        "| arm | informative own, peer | counting model | swing held out, own | entropy, nats "
        "| peers' text, nats | worked answers | training batch, the paper's sum |"
    )
    rows = [
        (
            result.arm,
            f"{result.informative.own:.2f} + {result.informative.peer:.2f}",
            f"{result.informative.own_predicted:.2f} + {result.informative.peer_predicted:.2f}",
            f"{_number(result.swing, times=100)}, {_number(result.own_swing, times=100)}",
            f"{_number(result.entropy_start)} → {_number(result.entropy_final)}",
            _number(result.peer_nats),
            f"{100 * result.worked_start:.0f} → {100 * result.worked_final:.0f} %",
            f"{result.cumulative_training_batch_reward:.1f}",
        )
        for result in results.arms
    ]
    return [
        *table(head, rows),
        "",
        "Informative groups are means over nodes and rounds. Swing is the standard deviation, in points, of "
        "the smoothed curve about its straight line in the second half of a run: of the held-out probe, and of "
        "own fresh questions, which every round asks. Entropy is the mean -log prob of own tokens in the first "
        "and last five rounds.",
    ]


def _families(results: Results) -> list[str]:
    names = sorted(results.arms[0].families_final)

    def row(name: str, solved: Mapping[str, float]) -> list[str]:
        return [name, *(f"{100 * solved.get(family, 0.0):.1f}" for family in names)]

    rows = [row("before", results.arms[0].families_start)]
    rows += [row(result.arm, result.families_final) for result in results.arms]
    return table(f"| held out, last round | {' | '.join(names)} |", rows)


def _commands(commands: Sequence[str], folders: Sequence[Path], to: Path) -> str:
    shown = to if not to.is_absolute() else Path(os.path.relpath(to))
    report = f"./shoal lab report {' '.join(map(str, folders))}"
    lines = [
        "## Every number again",
        "",
        "The runs, which go on where they stopped and skip what is finished:",
        "",
        "```",
        *commands,
        "```",
        "",
        "Other seeds, for an independent repetition: add `--first-seed 100` and another `--out`. This page and "
        "its pictures, from the records:",
        "",
        "```",
        report + ("" if to == REPORT else f" --out {shown}"),
        "```",
        "",
    ]
    return "\n".join(lines)


def _command(study: Study) -> str:
    """What makes all of the study's runs; those that began it may have named fewer arms."""
    arms = f"--arms {','.join(arm.name for arm in study.arms)}"
    command = re.sub(r"--recipe \S+", "--recipe faithful", study.command)
    return re.sub(r"--arms \S+", lambda _: arms, command) or f"# {study.folder}"


def _number(value: float | None, digits: int = 2, times: float = 1.0) -> str:
    return NOTHING if value is None else f"{times * value:.{digits}f}"
