"""`./shoal lab`: does sharing help? Swarms in one process, arm against arm, with the same questions for all."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.lab.arms import RECIPES, Arm, ArmError, parse_arms
from app.lab.journal import JournalError
from app.lab.plan import Plan, digest, identity
from app.sapo import curriculum
from app.sapo.families import FAMILIES
from app.sapo.questions import VERSION, QuestionError
from app.sapo.seeds import sampling_seed

if TYPE_CHECKING:
    from app.lab.swarm import Swarm
    from engines.torch_lora import TorchSwarm

SUMMARY = "compare ways of sharing: swarms in one process, a table and a plot"


class UsageError(ValueError):
    """An option whose value makes no sense. The message says which and what would do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--out",
        type=Path,
        required=True,
        help="folder of the results; the same command goes on where it stopped",
    )
    add(
        "--arms",
        default="8/0,6/2,4/4,2/6,8/0+ds",
        help="own/peer groups a round; +ds: dynamic sampling; @default or @faithful: the arm's own recipe; "
        "!shuffled: control with shuffled rewards (default: %(default)s)",
    )
    add("--nodes", type=int, default=8, help="nodes of the swarm (default: %(default)s)")
    add("--rounds", type=int, default=100, help="rounds of each run (default: %(default)s)")
    add("--seeds", type=int, default=3, help="runs of each arm, seeds 0, 1, ... (default: %(default)s)")
    add("--model", default="starter", help="starter, a model's name or a folder (default: %(default)s)")
    add("--families", help="families of questions, comma-separated (default: the model's)")
    add("--levels", help="their levels, for example chain_sum=1,gcd=0 (default: the model's, else 0)")
    add("--recipe", default="faithful", help="recipe of arms that name none (default: %(default)s)")
    add("--learning-rate", type=float, help="constant after five steps (default: the model's)")
    add("--rank", type=int, help="rank of the adapters (default: the model's)")
    add("--group", type=int, default=8, help="completions of a question (default: %(default)s)")
    add("--max-tokens", type=int, help="longest completion (default: the model's)")
    add("--probe-every", type=int, default=10, help="rounds between held-out probes (default: %(default)s)")
    add("--probe-items", type=int, default=256, help="held-out questions (default: %(default)s)")
    add(
        "--window", type=int, help="rounds that a group stays in the pool after its own (default: the recipe's)"
    )
    add("--attempts", type=int, default=10, help="draws a round with dynamic sampling (default: %(default)s)")
    add("--device", default="auto", help="auto, cpu, cuda or mps (default: %(default)s)")
    add("--threads", type=int, help="threads of a processor (default: its cores but one)")
    add("--json", action="store_true", help="the summary on standard output, nothing else there")


def main(args: argparse.Namespace) -> int:
    from app.home import home as data_folder
    from engines.contract import EngineError
    from engines.models import locate

    try:
        _check_numbers(args)
        arms = _arms(args)
        folder = locate(args.model, data_folder())
        plan = _plan(args, folder)
    except (UsageError, ArmError, QuestionError, EngineError) as error:
        print(f"shoal lab: {error}", file=sys.stderr)
        return 2
    return _conduct(args, plan, arms, folder)


def _conduct(args: argparse.Namespace, plan: Plan, arms: list[Arm], folder: Path) -> int:
    from app.lab.study import conduct

    swarm: TorchSwarm | None = None

    def opened(plan: Plan, seed: int) -> Swarm:
        """Fresh adapters; the base is read once, and torch only imported where something is left to do."""
        from engines.torch_lora import open_swarm

        nonlocal swarm
        adapters_N = [sampling_seed(identity(seed, node), 0, "adapter") for node in range(plan.nodes)]
        if swarm is None:
            swarm = open_swarm(folder, adapters_N, rank=plan.rank, device=args.device, threads=args.threads)
        else:
            swarm.reset(adapters_N)
        return swarm

    try:
        summary = conduct(plan, arms, args.seeds, args.out, opened, _command(args, plan, arms))
    except JournalError as error:
        print(f"shoal lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nshoal lab: Stopped; finished runs are kept, the same command goes on.", file=sys.stderr)
        return 1
    if args.json:
        print(msgspec.json.encode(summary).decode())
    else:
        print((args.out / "table.md").read_text(encoding="utf-8"))
        print(f"{args.out}: summary.json, curves.csv, curves.png, table.md", file=sys.stderr)
    return 0


def _check_numbers(args: argparse.Namespace) -> None:
    for name, least in {
        "nodes": 1,
        "rounds": 1,
        "seeds": 1,
        "group": 2,
        "probe_every": 1,
        "probe_items": 1,
        "attempts": 1,
        "rank": 1,
        "max_tokens": 1,
        "window": 0,
        "threads": 1,
    }.items():
        value = getattr(args, name)
        if value is not None and value < least:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} must be at least {least}, not {value}.")


def _arms(args: argparse.Namespace) -> list[Arm]:
    if args.recipe not in RECIPES:
        raise UsageError(f"There is no recipe called {args.recipe!r}: choose one of {', '.join(RECIPES)}.")
    arms = parse_arms(args.arms, args.recipe)
    if args.nodes < 2 and any(arm.peer for arm in arms):
        raise UsageError("A single node has no peers: give --nodes 2 or more, or only arms like 8/0.")
    return arms


def _plan(args: argparse.Namespace, folder: Path) -> Plan:
    """The plan that the options and the model's own settings make. Raises UsageError or QuestionError."""
    from engines.models import read_settings

    settings = read_settings(folder)
    levels = _levels(args.families, args.levels, settings.families)
    curriculum.start(levels)
    rate = settings.learning_rate if args.learning_rate is None else args.learning_rate
    if not 0 < rate < 1:
        raise UsageError(f"--learning-rate must lie between 0 and 1, not {rate:g}.")
    return Plan(
        model=args.model,
        weights=digest(folder),
        questions=VERSION,
        levels=levels,
        nodes=args.nodes,
        rounds=args.rounds,
        group=args.group,
        learning_rate=rate,
        rank=settings.rank if args.rank is None else args.rank,
        max_tokens=settings.max_tokens if args.max_tokens is None else args.max_tokens,
        probe_every=args.probe_every,
        probe_items=args.probe_items,
        window=args.window,
        attempts=args.attempts,
    )


def _levels(families: str | None, levels: str | None, own: dict[str, int]) -> dict[str, int]:
    """Families and levels asked for. `--levels` alone chooses the families too; the rest is the model's."""
    given: dict[str, int] = {}
    for part in (levels or "").split(","):
        name, _, level = part.strip().partition("=")
        if not name and not level:
            continue
        if not level.strip().isdecimal():
            raise UsageError(
                f"{part.strip()!r} is no level: write --levels family=level, for example chain_sum=1."
            )
        given[name.strip()] = int(level)
    own = own or dict.fromkeys(FAMILIES, 0)
    names = [name.strip() for name in families.split(",") if name.strip()] if families else list(given or own)
    stray = sorted(set(given) - set(names))
    if stray:
        raise UsageError(f"--levels names {stray[0]!r}, which is not among the --families: add it there.")
    return {name: given.get(name, own.get(name, 0)) for name in names}


def _command(args: argparse.Namespace, plan: Plan, arms: list[Arm]) -> str:
    """The command line that gives this very study, spelling out what a model's settings could change."""
    window = "" if plan.window is None else f" --window {plan.window}"
    rank = "" if plan.rank is None else f" --rank {plan.rank}"
    return (
        f"./shoal lab --arms {','.join(arm.name for arm in arms)} --recipe {args.recipe} --nodes {plan.nodes} "
        f"--rounds {plan.rounds} --seeds {args.seeds} --model {plan.model} "
        f"--levels {','.join(f'{family}={level}' for family, level in plan.levels.items())} "
        f"--group {plan.group} --learning-rate {plan.learning_rate:g}{rank} --max-tokens {plan.max_tokens} "
        f"--probe-every {plan.probe_every} --probe-items {plan.probe_items}{window} --attempts {plan.attempts} "
        f"--out {args.out}"
    )
