"""Measures the harm that attackers' keys on a real relay do to a real node, compared with that node alone.

    ./shoal bench poison --out DIR --arms 10terse,20terse --seeds 3

Every arm is twenty keys in one process (`app.bench.relay.simulated`): some attackers of a kind of
`app.lab.attackers`, the others honest. A node with the app's default recipe learns with them from scratch, and
once more after it was trained alone (`--after`). `alone` is run first, with the same seed. At the end each of
the held-out questions is answered eight times. Running the command again continues with the missing runs."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from app.bench.harness import (
    ROOT,
    BenchError,
    Figures,
    Tell,
    beside,
    command,
    difference,
    kept,
    open_relay,
    read_json_lines,
    running,
)
from app.bench.runs.held_out import measure_held_out
from app.common import files
from app.lab.attackers import MODEL_FREE_KINDS
from app.lab.statistics import average, mean_height

SUMMARY = "a node that learns beside attackers' keys on a real relay, and the same node alone"
_ARM = re.compile(rf"(\d{{1,3}})({'|'.join(MODEL_FREE_KINDS)})")
ALONE, TRAINED = "alone", "+"
"""The arm to compare with, and the suffix of runs that start with a trained node."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="homes, events and figures")
    add("--arms", default="10terse,20terse", help="attackers among the keys, by number and kind (%(default)s)")
    add("--keys", type=int, default=20, help="keys on the relay (%(default)s)")
    add("--rounds", type=int, default=50, help="of each run (%(default)s)")
    add("--after", type=int, default=50, help="rounds of the trained node, 0: none (%(default)s)")
    add("--seeds", type=int, default=3, help="seeds 1, 2, ... (%(default)s)")
    add("--questions", type=int, default=256, help="held-out questions (%(default)s)")


def run(args: argparse.Namespace, tell: Tell) -> Figures:
    arms = [ALONE, *(arm.strip() for arm in args.arms.split(","))]
    for arm in arms[1:]:
        if (found := _ARM.fullmatch(arm)) is None or int(found[1]) > args.keys:
            raise BenchError(f"{arm!r} is no arm: write a number of attackers and a kind, such as 10terse.")
    runs: dict[str, list[Figures]] = {name: [] for name in arms + [arm + TRAINED for arm in arms if args.after]}
    for seed in range(1, args.seeds + 1):
        for name, each in runs.items():
            place = args.out / f"{seed}-{name}"
            if not (place / "end.json").exists():
                tell(f"seed {seed}: {name}")
            end = kept(place, "end.json", partial(_play, args, seed, name))
            each.append(end | _read(place))
    alone = {trained: runs.get(ALONE + TRAINED * trained, []) for trained in (False, True)}
    figures = {name: _compared(each, alone[name.endswith(TRAINED)]) for name, each in runs.items()}
    files.write_json(args.out / "figures.json", figures)
    return {"runs": figures}


def table(figures: Mapping[str, Any]) -> list[str]:
    """The figures as lines of Markdown."""
    lines = [
        "| run | held-out by round, % | at the end, % (with work) | less alone, points | worst probe | "
        "mean height | peers' groups left out |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in figures["runs"].items():
        curve = ", ".join(f"{at}: {share:.1f}" for at, share in one["curve"].items())
        lines.append(
            f"| {name} | {curve} | {one['end']:.1f} ({one['worked']:.2f}) | {difference(one)} | "
            f"{one['worst']:+.1f} | {one['height']:.1f} | "
            f"{one['kept_out']} of {one['kept_out'] + one['taken']} |"
        )
    return lines


def _play(args: argparse.Namespace, seed: int, name: str, place: Path) -> Figures:
    arm, trained = name.removesuffix(TRAINED), name.endswith(TRAINED)
    if trained:
        shutil.copytree(args.out / f"{seed}-{ALONE}" / "home", place / "home")
    with _company(place, arm, args.keys) as where, (place / "events.jsonl").open("wb") as events:
        words = ["run", "--json", *where, "--home", str(place / "home"), "--seed", str(seed)]
        words += ["--rounds", str(args.after if trained else args.rounds)]
        words += ["--probe-questions", str(args.questions)]
        with (place / "node.log").open("wb") as log:
            done = subprocess.run(
                command(*words), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=events, stderr=log
            )
    if done.returncode:
        raise BenchError(f"The node ended with {done.returncode}: {place / 'node.log'} says why.")
    return measure_held_out(place / "home", args.questions)


@contextmanager
def _company(place: Path, arm: str, keys: int) -> Iterator[list[str]]:
    """Runs a relay with the arm's keys; yields a node's options for it."""
    found = _ARM.fullmatch(arm)
    if found is None:
        yield ["--solo"]
        return
    kinds = [f"honest={keys - int(found[1])}", f"{found[2]}={found[1]}"]
    with open_relay(place) as url:
        words = [sys.executable, "-m", "app.bench.relay.simulated", url, str(place / "keys"), *kinds]
        with running(words, place / "keys.log", stdout=subprocess.DEVNULL):
            yield ["--relay", url]


def _read(place: Path) -> Figures:
    events = read_json_lines(place / "events.jsonl")
    rounds = [row for row in events if row.get("event") == "round"]
    return {
        "curve": {row["round"]: row["pass_at_1"] for row in events if row.get("event") == "probe"},
        "taken": sum(row["informative_peer"] for row in rounds),
        "kept_out": sum(row["peer_groups"] - row["informative_peer"] for row in rounds),
    }


def _compared(runs: Sequence[Figures], alone: Sequence[Figures]) -> Figures:
    """Means over the seeds in percent, and differences to `alone` paired by seed, in points."""
    every = sorted(set.intersection(*(set(one["curve"]) for one in (*runs, *alone))))
    worst = [
        min(100 * (one["curve"][at] - by["curve"][at]) for at in every)
        for one, by in zip(runs, alone, strict=True)
    ]
    curve = {at: round(100 * average([one["curve"][at] for one in runs]), 1) for at in every}
    return {
        **beside([one["pass_at_1"] for one in runs], [one["pass_at_1"] for one in alone]),
        "curve": curve,
        "height": round(mean_height(every, list(curve.values())), 1),
        "worked": round(average([one["worked"] for one in runs]), 3),
        "worst": round(min(worst), 1),
        "taken": sum(one["taken"] for one in runs),
        "kept_out": sum(one["kept_out"] for one in runs),
    }
