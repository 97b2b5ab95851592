"""Measures the harm that attackers' keys on a real relay do to a real node, compared with that node alone.

    ./shoal bench poison --out DIR --arms 10terse,20terse --seeds 3

Every arm is twenty keys in one process (`app.bench.relay.simulated`): some attackers of a kind of
`app.lab.attackers`, the others honest. A node with the app's default recipe learns with them from scratch, and
once more after it was trained alone (`--after`). `alone` is run first, with the same seed. At the end each of
the held-out questions is answered TRIES times. Running the command again continues with the missing runs."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from app.bench import ROOT, BenchError, Tell, read_json_lines
from app.chat.learned import Checkpoints
from app.common import files
from app.lab.attackers import MODEL_FREE_KINDS
from app.lab.false_teachers import is_marked
from app.lab.statistics import mean_height, paired
from app.models.shelf import locate
from app.sapo.asking import messages, shows_work
from app.sapo.groups import GroupRecord
from app.sapo.probe import probe_questions
from app.sapo.scoring.sandbox import Sandbox, score_group
from engines.models.folder import read_settings
from engines.opening import open_engine

SUMMARY = "a node that learns beside attackers' keys on a real relay, and the same node alone"
TRIES = 8
_SEED, _AT_ONCE = 1, 16
_ARM = re.compile(rf"(\d{{1,3}})({'|'.join(MODEL_FREE_KINDS)})")
ALONE, TRAINED = "alone", "+"
"""The arm to compare with, and the suffix of runs that start with a trained node."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="homes, events and figures")
    parser.add_argument(
        "--arms", default="10terse,20terse", help="attackers among the keys, by number and kind (%(default)s)"
    )
    parser.add_argument("--keys", type=int, default=20, help="keys on the relay (%(default)s)")
    parser.add_argument("--rounds", type=int, default=50, help="of each run (%(default)s)")
    parser.add_argument(
        "--after", type=int, default=50, help="rounds of the trained node, 0: none (%(default)s)"
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds 1, 2, ... (%(default)s)")
    parser.add_argument("--questions", type=int, default=256, help="held-out questions (%(default)s)")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    arms = [ALONE, *(arm.strip() for arm in args.arms.split(","))]
    for arm in arms[1:]:
        if (found := _ARM.fullmatch(arm)) is None or int(found[1]) > args.keys:
            raise BenchError(f"{arm!r} is no arm: write a number of attackers and a kind, such as 10terse.")
    names = arms + [arm + TRAINED for arm in arms if args.after]
    for seed in range(1, args.seeds + 1):
        for name in names:
            if not (args.out / f"{seed}-{name}" / "end.json").exists():
                tell(f"seed {seed}: {name}")
                _play(args, seed, name)
    runs = {name: [_read(args.out / f"{seed}-{name}") for seed in range(1, args.seeds + 1)] for name in names}
    figures = {name: _compared(each, runs[_baseline(name)]) for name, each in runs.items()}
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
        interval = "" if one["low"] is None else f" [{one['low']:+.1f}, {one['high']:+.1f}]"
        left_out = f"{one['kept_out']} of {one['kept_out'] + one['taken']}"
        lines.append(
            f"| {name} | {curve} | {one['end']:.1f} ({one['worked']:.2f}) | {one['apart']:+.1f}{interval} | "
            f"{one['worst']:+.1f} | {one['height']:.1f} | {left_out} |"
        )
    return lines


def _baseline(name: str) -> str:
    return ALONE + TRAINED * name.endswith(TRAINED)


def _play(args: argparse.Namespace, seed: int, name: str) -> None:
    """Executes one run, from the start unless its last round is already there."""
    place, trained = args.out / f"{seed}-{name}", name.endswith(TRAINED)
    last = args.rounds + args.after * trained
    if not any(
        row.get("event") == "round" and row["round"] >= last for row in read_json_lines(place / "events.jsonl")
    ):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        if trained:
            shutil.copytree(args.out / f"{seed}-{ALONE}" / "home", place / "home")
        with _company(place, name.removesuffix(TRAINED), args.keys) as where:
            _learn(args, seed, place, where, args.after if trained else args.rounds)
    files.write_json(place / "end.json", measure_held_out(place / "home", args.questions))


def _learn(args: argparse.Namespace, seed: int, place: Path, where: Sequence[str], rounds: int) -> None:
    words = ["run", "--json", *where, "--home", str(place / "home"), "--rounds", str(rounds)]
    words += ["--seed", str(seed), "--probe-questions", str(args.questions)]
    with (place / "events.jsonl").open("wb") as events, (place / "node.log").open("wb") as log:
        done = subprocess.run(command(*words), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=events, stderr=log)
    if done.returncode:
        raise BenchError(f"The node ended with {done.returncode}: {place / 'node.log'} says why.")


@contextmanager
def _company(place: Path, arm: str, keys: int) -> Iterator[list[str]]:
    """Runs a relay with the arm's keys; yields a node's options for it."""
    found = _ARM.fullmatch(arm)
    if found is None:
        yield ["--solo"]
        return
    kinds = [
        f"{kind}={number}" for kind, number in (("honest", keys - int(found[1])), (found[2], int(found[1])))
    ]
    with open_relay(place) as url, (place / "keys.log").open("wb") as log:
        words = [sys.executable, "-m", "app.bench.relay.simulated", url, str(place / "keys"), *kinds]
        keys_ = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=log)
        try:
            yield ["--relay", url]
        finally:
            _end(keys_)


@contextmanager
def open_relay(place: Path) -> Iterator[str]:
    """Runs a relay process with its state in `place`; yields its URL."""
    with (place / "relay.log").open("wb") as log:
        words = command("relay", "--port", "0", "--state", str(place / "relay"))
        relay = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        try:
            assert relay.stdout is not None
            if not (line := relay.stdout.readline()):
                raise BenchError(f"The relay does not open: {place / 'relay.log'} says why.")
            yield json.loads(line)["url"]
        finally:
            _end(relay)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "app.cli", *words]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def measure_held_out(
    home: Path,
    questions: int,
    tries: int = TRIES,
    model: str = "starter",
    levels: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Has `model`, with what it learned in `home`, answer held-out questions `tries` times each, by default of
    its own families. Returns the shares of answers that are right (overall and by family), that show work, and
    that have a false teacher's mark. Raises BenchError if nothing was learned."""
    folder = locate(model, home)
    settings, learned = read_settings(folder), Checkpoints(home, folder)
    engine = open_engine("torch", folder, rank=learned.rank(), threads=1, device="cpu")
    state = learned.refresh(engine, None)
    if state is None:
        raise BenchError(f"Nothing was learned in {home}.")
    longest = state.max_tokens or state.way.token_limit(settings.max_tokens)
    worked = marked = 0
    families: dict[str, list[int]] = {}
    with Sandbox() as sandbox:
        asked = probe_questions(levels or settings.families, questions, sandbox.questions)
        for start in range(0, len(asked), _AT_ONCE):
            part = asked[start : start + _AT_ONCE]
            prompts = [messages(one.text, state.way) for one in part]
            groups_PG = engine.sample(prompts, tries, longest, _SEED + start)
            for question, completions_G in zip(part, groups_PG, strict=True):
                group = GroupRecord(
                    coordinates=question.coordinates,
                    completions_G=tuple(one.text for one in completions_G),
                    finished_G=tuple(one.finished for one in completions_G),
                    model=model,
                )
                rewards_G = score_group(sandbox, group).rewards_G
                families.setdefault(question.coordinates.family, []).extend(rewards_G)
                worked += sum(map(shows_work, group.completions_G))
                marked += sum(map(is_marked, group.completions_G))
    answers = sum(map(len, families.values()))
    return {
        "pass_at_1": sum(map(sum, families.values())) / answers,
        "worked": worked / answers,
        "marked": marked / answers,
        "answers": answers,
        "families": {family: sum(solved) / len(solved) for family, solved in families.items()},
    }


def _read(place: Path) -> dict[str, Any]:
    events = read_json_lines(place / "events.jsonl")
    end = msgspec.json.decode((place / "end.json").read_bytes())
    rounds = [row for row in events if row.get("event") == "round"]
    return {
        "curve": {row["round"]: row["pass_at_1"] for row in events if row.get("event") == "probe"},
        "end": end["pass_at_1"],
        "worked": end["worked"],
        "taken": sum(row["informative_peer"] for row in rounds),
        "kept_out": sum(row["peer_groups"] - row["informative_peer"] for row in rounds),
    }


def _compared(runs: Sequence[Mapping[str, Any]], alone: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over the seeds in percent, and differences to `alone` paired by seed, in points."""
    every = sorted(set.intersection(*(set(one["curve"]) for one in (*runs, *alone))))
    apart = paired([[one["end"]] for one in runs], [[one["end"]] for one in alone])
    worst = [
        min(100 * (one["curve"][at] - by["curve"][at]) for at in every)
        for one, by in zip(runs, alone, strict=True)
    ]
    curve = {at: round(100 * sum(one["curve"][at] for one in runs) / len(runs), 1) for at in every}
    return {
        "seeds": len(runs),
        "curve": curve,
        "height": round(mean_height(every, list(curve.values())), 1),
        "end": round(100 * sum(one["end"] for one in runs) / len(runs), 2),
        "worked": round(sum(one["worked"] for one in runs) / len(runs), 3),
        "apart": round(100 * apart.mean, 2) + 0.0,  # not -0.0
        "low": None if apart.t_low is None else round(100 * apart.t_low, 2),
        "high": None if apart.t_high is None else round(100 * apart.t_high, 2),
        "worst": round(min(worst), 1),
        "taken": sum(one["taken"] for one in runs),
        "kept_out": sum(one["kept_out"] for one in runs),
    }
