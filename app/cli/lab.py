"""`./shoal lab`: measures whether sharing helps, with swarms in one process: arms compared on the same
questions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from app.cli._terminal import WrongUsage
from app.common.text import bounded_integer
from app.lab.arms import FORM, RECIPES, Arm, ArmError, parse_arms
from app.lab.attackers import KINDS
from app.lab.plan import StudyPlan, digest
from app.sapo import curriculum
from app.sapo.asking import WAYS
from app.sapo.families import FAMILIES
from app.sapo.questions import QUESTIONS_VERSION, QuestionError

_COUNTS: dict[str, tuple[int, int | None, str]] = {
    "--nodes": (1, 8, "nodes of the swarm (default: %(default)s)"),
    "--rounds": (1, 100, "rounds of each run (default: %(default)s)"),
    "--seeds": (1, 3, "runs of each arm (default: %(default)s)"),
    "--first-seed": (0, 0, "the first seed, 0: another repeats a study"),
    "--rank": (1, None, "rank of the adapters (default: the model's)"),
    "--group": (2, 8, "completions of a question (default: %(default)s)"),
    "--max-tokens": (1, None, "longest completion (default: the model's)"),
    "--probe-every": (1, 10, "rounds between probes (default: %(default)s)"),
    "--probe-items": (1, 256, "held-out questions (default: %(default)s)"),
    "--window": (0, None, "rounds that a group stays in the pool after its own"),
    "--attempts": (1, 10, "draws a round with +ds (default: %(default)s)"),
    "--threads": (1, None, "threads of a processor (default: its cores but one)"),
}
"""Whole numbers: the least, the default, and the help text."""

SUMMARY = "compare ways of learning together: whole swarms in one process, with tables and plots"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, help="folder of the results; the same command continues where it stopped")
    add(
        "--arms",
        default="8/0,6/2,4/4,2/6,8/0+ds",
        help=f"{FORM}: own/peer groups a round; +ds: dynamic sampling; @default or @faithful: the arm's own "
        f"recipe; -guard: without defences; +foes=terse30: 30 %% of all nodes are attackers, of "
        f"{', '.join(KINDS)}; +fall=100: the rate falls, as in the app; !shuffled: shuffled rewards "
        "(default: %(default)s)",
    )
    add("--solo", action="store_true", help="instead of a study: one node alone, by the shortest loop there is")
    add("--model", default="starter", help="starter, a model's name or a folder (default: %(default)s)")
    add("--way", choices=sorted(WAYS), default="tagged", help="how questions are put (default: %(default)s)")
    add("--families", help="families of questions, comma-separated (default: the model's)")
    add("--levels", help="their levels, for example chain_sum=1,gcd=0 (default: the model's, else 0)")
    add("--recipe", default="faithful", help="recipe of arms that name none (default: %(default)s)")
    add(
        "--learning-rate",
        type=float,
        help="after five steps; constant unless an arm has +fall (default: the model's)",
    )
    add("--device", default="auto", help="auto, cpu, cuda or mps (default: %(default)s)")
    for name, (least, default, text) in _COUNTS.items():
        add(name, type=bounded_integer(least), default=default, metavar="N", help=text)
    add("--json", action="store_true", help="the summary on standard output, nothing else there")


def main(args: argparse.Namespace) -> int:
    from app.common.home import home as data_folder
    from app.models.shelf import locate
    from engines.contract import EngineError

    try:
        if args.out is None and not args.solo:
            raise WrongUsage("A study needs a folder: give --out.")
        arms = _arms(args)
        folder = locate(args.model, data_folder())
        plan = _plan(args, folder)
    except (ArmError, QuestionError, EngineError) as error:
        raise WrongUsage(str(error)) from error
    return _solo(args, plan, folder) if args.solo else _conduct(args, plan, arms, folder)


def _solo(args: argparse.Namespace, plan: StudyPlan, folder: Path) -> int:
    from app.common.home import home as data_folder
    from app.lab import solo
    from app.node.data.home import identity

    own = identity(data_folder(), args.first_seed)  # as ./shoal run --solo --seed has it
    for line in solo.learn(folder, plan.levels, plan.rounds, own, threads=args.threads):
        print(line, flush=True)
    return 0


def _conduct(args: argparse.Namespace, plan: StudyPlan, arms: list[Arm], folder: Path) -> int:
    from app.lab.study import StudyError, conduct
    from app.lab.swarm import SwarmOpener

    opened = SwarmOpener(folder, args.device, args.threads)
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    try:
        summary = conduct(plan, arms, seeds, args.out, opened, _command(args, plan, arms))
    except StudyError as error:
        raise WrongUsage(str(error)) from error
    except KeyboardInterrupt:
        print("\nshoal lab: Stopped. Finished runs are safe, and the same command continues.", file=sys.stderr)
        return 1
    if args.json:
        print(msgspec.json.encode(summary).decode())
    else:
        print((args.out / "table.md").read_text(encoding="utf-8"))
        picture = "curves.png" if (args.out / "curves.png").exists() else "no picture (matplotlib is not here)"
        print(f"{args.out}: summary.json, curves.csv, {picture}, table.md", file=sys.stderr)
    return 0


def _arms(args: argparse.Namespace) -> list[Arm]:
    if args.recipe not in RECIPES:
        raise WrongUsage(f"There is no recipe called {args.recipe!r}: choose one of {', '.join(RECIPES)}.")
    arms = parse_arms(args.arms, args.recipe)
    if args.nodes < 2 and any(arm.peer for arm in arms):
        raise WrongUsage("A single node has no peers: give --nodes 2 or more, or only arms like 8/0.")
    return arms


def _plan(args: argparse.Namespace, folder: Path) -> StudyPlan:
    """The plan made from the options and the model's own settings. Raises WrongUsage or QuestionError."""
    from engines.models.folder import read_settings

    settings = read_settings(folder)
    levels = _levels(args.families, args.levels, settings.families)
    curriculum.start(levels)
    rate = settings.learning_rate if args.learning_rate is None else args.learning_rate
    if not 0 < rate < 1:
        raise WrongUsage(f"--learning-rate must lie between 0 and 1, not {rate:g}.")
    return StudyPlan(
        model=args.model,
        weights=digest(folder),
        questions=QUESTIONS_VERSION,
        levels=levels,
        nodes=args.nodes,
        rounds=args.rounds,
        group=args.group,
        learning_rate=rate,
        rank=settings.rank if args.rank is None else args.rank,
        max_tokens=WAYS[args.way].token_limit(settings.max_tokens)
        if args.max_tokens is None
        else args.max_tokens,
        probe_every=args.probe_every,
        probe_items=args.probe_items,
        window=args.window,
        attempts=args.attempts,
        way=args.way,
    )


def _levels(families: str | None, levels: str | None, own: dict[str, int]) -> dict[str, int]:
    """Returns the requested families and their levels. `--levels` alone chooses the families too; the rest
    comes from the model."""
    given = _read_levels(levels or "")
    own = own or dict.fromkeys(FAMILIES, 0)
    names = [name.strip() for name in families.split(",") if name.strip()] if families else list(given or own)
    stray = sorted(set(given) - set(names))
    if stray:
        raise WrongUsage(f"--levels names {stray[0]!r}, which is not among the --families: add it there.")
    return {name: given.get(name, own.get(name, 0)) for name in names}


def _read_levels(text: str) -> dict[str, int]:
    """Parses families and their levels, `chain_sum=1, gcd=0`. Raises WrongUsage."""
    levels = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, level = part.partition("=")
        if not level.strip().isdecimal():
            raise WrongUsage(f"{part!r} is no level: write --levels family=level, for example chain_sum=1.")
        levels[name.strip()] = int(level)
    return levels


def _command(args: argparse.Namespace, plan: StudyPlan, arms: list[Arm]) -> str:
    """Returns the command line that repeats this study exactly, spelling out what a model's settings could
    change."""
    given = msgspec.to_builtins(plan) | {
        "arms": ",".join(arm.name for arm in arms),
        "recipe": args.recipe,
        "seeds": args.seeds,
        "first_seed": args.first_seed,
        "levels": ",".join(f"{family}={level}" for family, level in plan.levels.items()),
        "learning_rate": f"{plan.learning_rate:g}",
        "out": args.out,
    }
    words = [f"--{name.replace('_', '-')} {given[name]}" for name in _REPEATED if given[name] is not None]
    return f"./shoal lab {' '.join(words)}"


_REPEATED = (
    "arms", "recipe", "seeds", "first_seed", "nodes", "rounds", "model", "levels", "way", "group",
    "learning_rate", "rank", "max_tokens", "probe_every", "probe_items", "window", "attempts", "out",
)  # fmt: skip
