"""Measures what a newcomer with another model learns from a swarm, compared with that model alone for equal
processor time.

    ./shoal bench spread --out DIR --seeds 3

Teachers (starters, each with its own seed) first learn with each other on a real relay, and their groups are
stored in its archive. Then the newcomer learns for `--seconds` processor seconds of all its processes: `alone`
without a relay, `archive` with the relay after the teachers have gone, `live` while they continue to learn,
`late` like `archive` but ended and restarted every ten minutes, `attacked` like `archive` with as many false
teachers (app.lab.false_teachers) added to it, who all write the same mark into right answers of a family, and a
different one in each family. At the end every arm answers the same held-out questions: the union of the
teachers' families and those in which any arm of this seed was placed. Running the command again continues with
the missing runs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil

from app.bench.harness import (
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
from app.lab.false_teachers import KINDS, bodies, by_author, rewritten
from app.lab.statistics import average
from app.models.shelf import locate
from app.relay.store.backing import CheckedGroup
from app.relay.store.sqlite import SQLite
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake.archive import read_relay_archive
from app.swarm.wire.body import seal
from engines.models.folder import read_settings

SUMMARY = "a newcomer that learns from a swarm of other models, and the same model alone"
ALONE, ARCHIVE, LIVE, LATE, ATTACKED = ARMS = ("alone", "archive", "live", "late", "attacked")
_ON_S = 600.0
"""Processor seconds after which the newcomer of `late` is ended and started again."""
_REST = "14"
"""Round lengths for which teachers rest after each round. A starter makes some nine informative groups a
second, and a relay accepts thirty a minute of one node: without rests nine of ten would never reach others."""
_LOOK_S = 2.0
_EACH, _ARCHIVE_BYTES = 96, 1 << 28
"""Groups of a false teacher in each family and level, and maximum size of the archive with all of them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="homes, events and figures")
    parser.add_argument("--model", default="smollm2-135m", help="the newcomer (%(default)s)")
    parser.add_argument("--arms", default=f"{ALONE},{ARCHIVE}", help=f"of {', '.join(ARMS)} (%(default)s)")
    parser.add_argument("--teachers", type=int, default=3, help="starters that were there before (%(default)s)")
    parser.add_argument("--rounds", type=int, default=60, help="of each teacher (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=1800, help="processor seconds of the newcomer (%(default)s)"
    )
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds (%(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (%(default)s)")
    parser.add_argument("--questions", type=int, default=16, help="held-out ones of each family (%(default)s)")
    parser.add_argument("--home", type=Path, help="where the newcomer's model lies")


def run(args: argparse.Namespace, tell: Tell) -> Figures:
    arms = [arm.strip() for arm in args.arms.split(",")]
    if unknown := set(arms) - {*ARMS}:
        raise BenchError(f"{min(unknown)!r} is no arm: choose from {', '.join(ARMS)}.")
    ends: dict[str, list[Figures]] = {arm: [] for arm in arms}
    for seed in range(args.first, args.first + args.seeds):
        for number in (seed, seed + 1) if ATTACKED in arms else (seed,):
            kept(args.out / f"{number}-teachers", "taught.json", partial(_teach, args, number, tell))
        for arm in arms:
            kept(args.out / f"{seed}-{arm}", "spent.json", partial(_learn, args, seed, arm, tell))
        levels = _union(args, seed, arms)
        for arm in arms:
            ends[arm].append(_measured(args, args.out / f"{seed}-{arm}", levels))
    figures = {arm: _compared(each, ends.get(ALONE, each)) for arm, each in ends.items()}
    files.write_json(args.out / "figures.json", figures)
    return {"arms": figures}


def table(figures: Mapping[str, Any]) -> list[str]:
    """The figures as lines of Markdown."""
    lines = [
        "| arm | held-out at the end, % | less alone, points | learned from others | rounds | by family, % |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in figures["arms"].items():
        families = ", ".join(f"{family} {share:.0f}" for family, share in one["families"].items())
        lines.append(
            f"| {name} | {one['end']:.1f} | {difference(one)} | {', '.join(one['skills'])} | "
            f"{one['rounds']} | {families} |"
        )
    return lines


def _teach(args: argparse.Namespace, seed: int, tell: Tell, place: Path) -> Figures:
    """Runs the teachers' rounds."""
    tell(f"seed {seed}: {args.teachers} teachers learn for {args.rounds} rounds")
    with open_relay(place) as url, contextlib.ExitStack() as nodes:
        started = [nodes.enter_context(_teacher(args, seed, n, place, url, args.rounds)) for n in _each(args)]
        if sum(node.wait() for node in started):
            raise BenchError(f"A teacher ended early: the logs in {place} say why.")
    return {}


def _each(args: argparse.Namespace) -> range:
    return range(1, args.teachers + 1)


@contextlib.contextmanager
def _teacher(
    args: argparse.Namespace, seed: int, number: int, place: Path, url: str, rounds: int | None
) -> Iterator[subprocess.Popen[Any]]:
    """Runs a starter on the relay; with `rounds` None it continues, until the context ends."""
    words = ["--relay", url, "--seed", str(100 * seed + number), "--home", str(place / f"teacher{number}")]
    words += ["--rest", _REST] + (["--rounds", str(rounds)] if rounds is not None else [])
    with _node(place / f"teacher{number}", "--model", "starter", "--probe-every", "30", *words) as node:
        yield node


@contextlib.contextmanager
def _node(where: Path, *words: str) -> Iterator[subprocess.Popen[Any]]:
    line, log = command("run", "--json", *words), Path(f"{where}.log")
    with Path(f"{where}.jsonl").open("ab") as events, running(line, log, stdout=events) as node:
        yield node


def _learn(args: argparse.Namespace, seed: int, arm: str, tell: Tell, place: Path) -> Figures:
    tell(f"seed {seed}: {args.model} learns, {arm}")
    words = ["--model", str(locate(args.model, args.home)), "--seed", str(seed), "--home", str(place / "home")]
    words += ["--probe-every", "1000"]
    with contextlib.ExitStack() as others:
        if arm == ALONE:
            words.append("--solo")
        else:
            shutil.copytree(args.out / f"{seed}-teachers", place, dirs_exist_ok=True)
            if arm == ATTACKED:
                asyncio.run(_attack(place / "relay", args.out / f"{seed + 1}-teachers" / "relay", tell))
            url = others.enter_context(open_relay(place))
            words += ["--relay", url]
            for number in _each(args) if arm == LIVE else ():
                others.enter_context(_teacher(args, seed, number, place, url, None))
        began, spent = time.monotonic(), 0.0
        while spent < args.seconds:
            until = min(args.seconds - spent, _ON_S if arm == LATE else args.seconds)
            spent += _on(place / "newcomer", words, until)
    return {"processor_s": spent, "seconds": time.monotonic() - began}


def _on(where: Path, words: Sequence[str], until: float) -> float:
    """Lets the newcomer learn for `until` processor seconds; returns how many it took."""
    with _node(where, *words) as node:
        spent = 0.0
        while node.poll() is None and spent < until:
            time.sleep(_LOOK_S)
            spent = max(spent, _processor_s(node.pid))
        if node.poll() is not None:
            raise BenchError(f"The newcomer ended early: {where}.log says why.")
    return spent


async def _attack(relay: Path, honest: Path, tell: Tell) -> None:
    """Adds false teachers to a relay's archive: the authors of another archive write marks into their right
    answers."""
    kinds = list(KINDS)
    with Sandbox() as sandbox:
        authors = [
            [
                forged
                for number, family in enumerate(sorted({one.at.family for one in groups}))
                for forged in rewritten(
                    [one for one in groups if one.at.family == family], kinds[number % len(kinds)], sandbox
                )
            ]
            for groups in by_author(read_relay_archive(honest), _EACH)
        ]
    swarm = next(read_relay_archive(relay)).swarm
    now_ms = time.time_ns() // 1_000_000
    store = SQLite(relay, swarm, archive=_ARCHIVE_BYTES)
    await store.start(lambda record: "accepted", lambda key, value: None, lambda relay, summary: None)
    for key, body in bodies(authors, swarm, now_ms, first=1000):
        envelope = seal(body, key.seed(), "zlib")
        await store.publish(
            CheckedGroup(
                id=bytes.fromhex(envelope.id),
                key=bytes.fromhex(envelope.pk),
                key_seq=body.key_seq,
                address=envelope.pk,
                family=body.task.family,
                level=body.task.level,
                arrived_ms=now_ms,
                raw=msgspec.json.encode(envelope),
            )
        )
    await store.close()
    tell(f"{sum(map(len, authors))} groups of {len(authors)} false teachers")


def _processor_s(pid: int) -> float:
    """Processor seconds that a process and all its descendants have used."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        node = psutil.Process(pid)
        for one in (node, *node.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                used = one.cpu_times()
                total += used.user + used.system + used.children_user + used.children_system
    return total


def _union(args: argparse.Namespace, seed: int, arms: Sequence[str]) -> dict[str, int]:
    """Families and levels to measure: the teachers', and those in which the newcomer was placed."""
    levels = dict(read_settings(locate("starter")).families)
    for arm in arms:
        for event in read_json_lines(args.out / f"{seed}-{arm}" / "newcomer.jsonl"):
            if event.get("event") == "placement":
                levels = dict(event["families"]) | levels
    return levels


def _measured(args: argparse.Namespace, place: Path, levels: Mapping[str, int]) -> Figures:
    def measure(place: Path) -> Figures:
        model, size = str(locate(args.model, args.home)), args.questions * len(levels)
        return measure_held_out(place / "home", size, 2, model, levels)

    events = read_json_lines(place / "newcomer.jsonl")
    return kept(place, "end.json", measure, fresh=False) | {
        "skills": [event["family"] for event in events if event.get("event") == "skill"],
        "rounds": max((event["round"] for event in events if event.get("event") == "round"), default=0),
    }


def _compared(ends: Sequence[Figures], alone: Sequence[Figures]) -> Figures:
    """Means over the seeds in percent, and differences to `alone` paired by seed, in points."""
    shares: dict[str, list[float]] = defaultdict(list)
    for one in ends:
        for family, share in one["families"].items():
            shares[family].append(share)
    return {
        **beside([one["pass_at_1"] for one in ends], [one["pass_at_1"] for one in alone]),
        "marked": round(100 * average([one["marked"] for one in ends]), 1),
        "families": {family: round(100 * average(some), 1) for family, some in sorted(shares.items())},
        "skills": sorted({family for one in ends for family in one["skills"]}),
        "rounds": sum(one["rounds"] for one in ends),
    }
