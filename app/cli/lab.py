"""`./shoal lab`: measures whether sharing helps, with swarms in one process: arms compared on the same
questions."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import msgspec

from app.cli._terminal import WrongUsage
from app.lab.arms import RECIPES, Arm, ArmError, parse_arms
from app.lab.journal import JournalError
from app.lab.plan import RegimeError, StudyPlan, StudySettings, digest, read_levels, read_regime, regimes
from app.sapo import curriculum
from app.sapo.asking import WAYS
from app.sapo.families import FAMILIES
from app.sapo.questions import VERSION, QuestionError
from engines.remedy import command

SUMMARY = "compare ways of learning together: whole swarms in one process, with tables and plots"


_ORDINARY = StudySettings(levels={})
"""Values used if neither a regime nor an option says otherwise."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "what",
        nargs="*",
        metavar="report DIR ...",
        help="instead of arms: report DIR ... writes app/lab/REPORT.md from these studies and packs their "
        "records",
    )
    add("--out", type=Path, help="folder of the results; the same command continues where it stopped")
    add("--regime", help="settings from app/lab/regimes: " + ", ".join(regimes()) + "; or a .toml file")
    add(
        "--arms",
        default="8/0,6/2,4/4,2/6,8/0+ds",
        help="own/peer groups a round; +ds: dynamic sampling; @default or @faithful: the arm's own recipe; "
        "-guard: without defences; +steps=1: one step a round; +fall=100: the rate falls, as in the "
        "app; !shuffled: shuffled rewards (default: %(default)s)",
    )
    add("--nodes", type=int, help=f"nodes of the swarm (default: {_ORDINARY.nodes})")
    add("--rounds", type=int, help=f"rounds of each run (default: {_ORDINARY.rounds})")
    add("--seeds", type=int, default=3, help="runs of each arm, seeds 0, 1, ... (default: %(default)s)")
    add(
        "--first-seed", type=int, default=0, help="where to begin instead of 0, to repeat a study independently"
    )
    add("--model", help=f"starter, a model's name or a folder (default: {_ORDINARY.model})")
    add("--way", choices=sorted(WAYS), help=f"how questions are put (default: {_ORDINARY.way})")
    add("--starters", type=Path, help="folder of the adapters that the regime's nodes begin with")
    add("--families", help="families of questions, comma-separated (default: the model's)")
    add("--levels", help="their levels, for example chain_sum=1,gcd=0 (default: the model's, else 0)")
    add("--recipe", default="faithful", help="recipe of arms that name none (default: %(default)s)")
    add(
        "--learning-rate",
        type=float,
        help="after five steps; constant unless an arm has +fall (default: the model's)",
    )
    add("--rank", type=int, help="rank of the adapters (default: the model's)")
    add("--group", type=int, help=f"completions of a question (default: {_ORDINARY.group})")
    add("--max-tokens", type=int, help="longest completion (default: the model's)")
    add("--probe-every", type=int, help=f"rounds between held-out probes (default: {_ORDINARY.probe_every})")
    add("--probe-items", type=int, help=f"held-out questions (default: {_ORDINARY.probe_items})")
    add("--tried", type=int, help=f"held-out questions answered for pass@8 (default: {_ORDINARY.tried})")
    add(
        "--window", type=int, help="rounds that a group stays in the pool after its own (default: the recipe's)"
    )
    add("--attempts", type=int, help=f"draws a round with dynamic sampling (default: {_ORDINARY.attempts})")
    add("--device", default="auto", help="auto, cpu, cuda or mps (default: %(default)s)")
    add("--threads", type=int, help="threads of a processor (default: its cores but one)")
    add(
        "--on",
        metavar="ray|ray://HOST",
        help="deal the runs to a Ray cluster, one of this computer's own or the one at HOST; --threads (1) is "
        "for each run",
    )
    add("--json", action="store_true", help="the summary on standard output, nothing else there")


def main(args: argparse.Namespace) -> int:
    from app.common.home import home as data_folder
    from app.models.shelf import locate
    from engines.contract import EngineError

    if args.what:
        return _report(args)
    try:
        if args.out is None:
            raise WrongUsage("A study needs a folder: give --out.")
        starters = _settle(args)
        _check_numbers(args)
        arms = _arms(args)
        folder = locate(args.model, data_folder())
        plan = _plan(args, folder, starters)
    except (ArmError, RegimeError, QuestionError, EngineError) as error:
        raise WrongUsage(str(error)) from error
    return _conduct(args, plan, arms, folder)


def _settle(args: argparse.Namespace) -> tuple[str, ...]:
    """Sets the options that were not given, from the regime or the defaults. Returns the regime's starters."""
    regime = read_regime(args.regime) if args.regime else _ORDINARY
    for name in StudySettings.__struct_fields__:
        if name not in ("levels", "starters") and getattr(args, name) is None:
            setattr(args, name, getattr(regime, name))
    if regime.levels and not (args.levels or args.families):
        args.levels = ",".join(f"{family}={level}" for family, level in regime.levels.items())
    if regime.starters and len(regime.starters) != args.nodes:
        raise WrongUsage(
            f"The regime {args.regime} has starters for {len(regime.starters)} nodes, not {args.nodes}: leave "
            "--nodes away."
        )
    if regime.starters and args.starters is None:
        raise WrongUsage(f"The regime {args.regime} begins with adapters: say with --starters where they lie.")
    return regime.starters


def _report(args: argparse.Namespace) -> int:
    from app.lab.journal import JournalError

    if args.what[0] != "report" or len(args.what) < 2:
        raise WrongUsage(f"Write {command('lab report DIR ...')}, with folders of studies.")
    from app.lab.report.report import write_report

    try:
        written = write_report([Path(name) for name in args.what[1:]], args.out)
    except JournalError as error:
        print(f"shoal lab: {error}", file=sys.stderr)
        return 1
    print(f"{written}", file=sys.stderr)
    return 0


def _conduct(args: argparse.Namespace, plan: StudyPlan, arms: list[Arm], folder: Path) -> int:
    from app.lab.study import ClusterError, ClusterRunner, conduct
    from app.lab.swarm import SwarmOpener

    starters_N = [args.starters / starter for starter in plan.starters]
    threads = args.threads if args.on is None else args.threads or 1
    opened = SwarmOpener(folder, starters_N, args.device, threads)
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    what = f"--arms {','.join(arm.name for arm in arms)} --recipe {args.recipe}"
    try:
        executor = None if args.on is None else ClusterRunner(args.on, opened, args.threads or 1)
        summary = conduct(plan, arms, seeds, args.out, opened, _command(args, plan, what), executor=executor)
    except (JournalError, ArmError) as error:
        raise WrongUsage(str(error)) from error
    except ClusterError as error:
        print(f"shoal lab: {error} Finished runs are kept; the same command continues.", file=sys.stderr)
        return 1
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


def _check_numbers(args: argparse.Namespace) -> None:
    if args.on is not None and not re.fullmatch(r"ray(://[^/\s]+)?", args.on):
        raise WrongUsage(f"--on takes ray or ray://HOST[:PORT], not {args.on[:80]}.")
    for name, least in {
        "nodes": 1,
        "rounds": 1,
        "seeds": 1,
        "first_seed": 0,
        "group": 2,
        "probe_every": 1,
        "probe_items": 1,
        "tried": 1,
        "attempts": 1,
        "rank": 1,
        "max_tokens": 1,
        "window": 0,
        "threads": 1,
    }.items():
        value = getattr(args, name)
        if value is not None and value < least:
            option = name.replace("_", "-")
            raise WrongUsage(f"--{option} must be at least {least}, not {value}.")


def _arms(args: argparse.Namespace) -> list[Arm]:
    if args.recipe not in RECIPES:
        raise WrongUsage(f"There is no recipe called {args.recipe!r}: choose one of {', '.join(RECIPES)}.")
    arms = parse_arms(args.arms, args.recipe)
    if args.nodes < 2 and any(arm.peer for arm in arms):
        raise WrongUsage("A single node has no peers: give --nodes 2 or more, or only arms like 8/0.")
    return arms


def _plan(args: argparse.Namespace, folder: Path, starters: tuple[str, ...]) -> StudyPlan:
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
        questions=VERSION,
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
        tried=args.tried,
        regime=args.regime or "",
        starters=starters,
        starter_weights=tuple(digest(args.starters / starter) for starter in starters),
        way=args.way,
    )


def _levels(families: str | None, levels: str | None, own: dict[str, int]) -> dict[str, int]:
    """Returns the requested families and their levels. `--levels` alone chooses the families too; the rest
    comes from the model."""
    given = read_levels(levels or "")
    own = own or dict.fromkeys(FAMILIES, 0)
    names = [name.strip() for name in families.split(",") if name.strip()] if families else list(given or own)
    stray = sorted(set(given) - set(names))
    if stray:
        raise WrongUsage(f"--levels names {stray[0]!r}, which is not among the --families: add it there.")
    return {name: given.get(name, own.get(name, 0)) for name in names}


def _command(args: argparse.Namespace, plan: StudyPlan, what: str) -> str:
    """Returns the command line that repeats this study exactly, spelling out what a model's settings could
    change. `what`: the arms and their recipe."""
    window = "" if plan.window is None else f" --window {plan.window}"
    rank = "" if plan.rank is None else f" --rank {plan.rank}"
    first = f" --first-seed {args.first_seed}" if args.first_seed else ""
    study = f"./shoal lab {what} --seeds {args.seeds}{first}"
    study += f" --starters {args.starters}" if plan.starters else ""
    if plan.regime and read_regime(plan.regime) == _regime(plan):
        return f"{study} --regime {plan.regime} --out {args.out}"
    regime = f" --regime {plan.regime}" if plan.regime else ""
    way = "" if plan.way == _ORDINARY.way else f" --way {plan.way}"
    return (
        f"{study}{regime}{way} --nodes {plan.nodes} --rounds {plan.rounds} --model {plan.model} "
        f"--levels {','.join(f'{family}={level}' for family, level in plan.levels.items())} "
        f"--group {plan.group} --learning-rate {plan.learning_rate:g}{rank} --max-tokens {plan.max_tokens} "
        f"--probe-every {plan.probe_every} --probe-items {plan.probe_items} --tried {plan.tried}{window} "
        f"--attempts {plan.attempts} --out {args.out}"
    )


def _regime(plan: StudyPlan) -> StudySettings:
    """The regime's settings as the plan has them: equal to the file's where no option changed anything."""
    names = StudySettings.__struct_fields__
    return StudySettings(**{name: getattr(plan, name) for name in names})
