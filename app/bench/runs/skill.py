"""Measures what a skill gets right on rows that nobody taught, beside what its owner could use instead.

    ./shoal bench skill --tables DIR --out OUT --seeds 1,2,3 --arms lesson,constant,letters

Every file `*.csv` in DIR is a table. A seed decides which fifth of its rows is kept aside, the order of the
lesson and the first adapter. Each run has a process of its own (app.bench.runs.skill_inside), and is asked
after the lesson and when it has used so many processor seconds: those of all threads from the opened model on,
without those of the asking. Running the command again continues with the missing runs."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from app.bench.harness import BenchError, Tell, child, child_environment, kept
from app.bench.runs.skill_inside import ARMS, INSTANT, Asked, SkillRun
from app.common import files
from app.common.text import bounded_integer
from app.models.shelf import locate
from app.sapo.probe import wilson
from engines.contract import EngineError
from engines.facts import cpu_name

SUMMARY = "what a skill gets right on new rows, beside other ways to sort them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tables", type=Path, required=True, metavar="DIR", help="a folder of CSV files")
    add("--out", type=Path, required=True, metavar="DIR", help="what each run found, and all figures")
    add("--only", metavar="NAME,NAME", help="of the tables, by their files' names")
    add("--model", default="smollm2-135m", help="the base model (%(default)s)")
    add("--home", type=Path, metavar="DIR", help="where the model lies")
    add("--arms", default="lesson,constant,letters", help=f"of {', '.join(ARMS)} (%(default)s)")
    add("--seeds", default="1,2,3", metavar="S,S", help="(%(default)s)")
    add("--seconds", default="300,600", metavar="S,S", help="processor seconds when it is asked (%(default)s)")
    add("--threads", type=bounded_integer(1), default=1, metavar="N", help="of each run (%(default)s)")
    add("--embeddings", type=Path, metavar="FOLDER", help="a sentence encoder in transformers' format")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    arms, seeds = args.arms.split(","), [int(seed) for seed in args.seeds.split(",")]
    if unknown := {*arms} - {*ARMS}:
        raise BenchError(f"{min(unknown)!r} is no arm: choose from {', '.join(ARMS)}.")
    if "embeddings" in arms and args.embeddings is None:
        raise BenchError("The arm embeddings needs --embeddings, the folder of a sentence encoder.")
    tables = sorted(args.tables.glob("*.csv"))
    if args.only:
        tables = [one for one in tables if one.stem in args.only.split(",")]
    if not tables:
        raise BenchError(f"There is no such table in {args.tables}: it needs files that end in .csv.")
    try:
        model = str(locate(args.model, args.home))
    except EngineError as error:
        raise BenchError(str(error)) from error
    found: dict[str, dict[str, list[dict[str, Asked]]]] = defaultdict(lambda: defaultdict(list))
    for seed in seeds:
        for file in tables:
            for arm in arms:
                task = SkillRun(
                    table=str(file.resolve()),
                    seed=seed,
                    arm=arm,
                    model=model,
                    seconds=tuple(float(one) for one in args.seconds.split(",")),
                    threads=args.threads,
                    embeddings=str(args.embeddings or ""),
                )
                if asked := _asked(task, args.out, tell):
                    found[file.stem][arm].append(asked)
    figures = {
        "tables": {
            name: {arm: _together(each) for arm, each in by_arm.items()} for name, by_arm in found.items()
        },
        "model": args.model,
        "machine": f"{cpu_name()}, {args.threads} threads",
    }
    files.write_json(args.out / "figures.json", figures)
    return figures


def _asked(task: SkillRun, out: Path, tell: Tell) -> dict[str, Asked]:
    """Returns what a run found, from its file if it is done; empty if it failed, with the reason told."""
    name = f"{Path(task.table).stem}-{task.seed}-{task.arm}"
    words = ["app.bench.runs.skill_inside", msgspec.json.encode(task).decode()]
    environment = child_environment(task.threads, out / "home")
    try:
        kept_figures = kept(out, f"{name}.json", lambda _: child(words, environment), fresh=False)
    except BenchError as error:
        tell(f"{name} failed: {error}")
        return {}
    found = msgspec.convert(kept_figures, dict[str, Asked])
    tell(f"{name}: " + ", ".join(f"{at} {one.right} of {one.of}" for at, one in found.items()))
    return found


def _together(seeds: list[dict[str, Asked]]) -> dict[str, dict[str, Any]]:
    """The figures of one arm at each time: the mean over the seeds, and Wilson's 95 % interval of all their
    answers together."""
    found = {}
    for at in seeds[0]:
        each = [one[at] for one in seeds if at in one]
        right, of = sum(one.right for one in each), sum(one.of for one in each)
        low, high = wilson(right / of, of, z=1.96)
        found[at] = {
            "share": round(100 * right / of, 1),
            "low": round(100 * low, 1),
            "high": round(100 * high, 1),
            "seeds": [round(100 * one.right / one.of, 1) for one in each],
            "processor_s": round(mean(one.processor_s for one in each), 1),
            "seconds": round(mean(one.seconds for one in each), 1),
        }
    return found


def table(figures: Mapping[str, Any]) -> list[str]:
    """The figures as lines of Markdown, in percent."""
    lines = ["| table | arm | asked | right, % | of each seed | processor s |", "|---|---|---|---|---|---|"]
    for name, arms in figures["tables"].items():
        for arm, times in arms.items():
            for at, one in times.items():
                asked = "at once" if at == INSTANT else at
                seeds = ", ".join(f"{share:.0f}" for share in one["seeds"])
                lines.append(
                    f"| {name} | {arm} | {asked} | {one['share']:.1f} [{one['low']:.0f}, {one['high']:.0f}] | "
                    f"{seeds} | {one['processor_s']:.0f} |"
                )
    return [*lines, f"{figures['model']}; {figures['machine']}."]
