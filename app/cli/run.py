"""`./shoal run`: runs a node without a window."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli._frame import share
from app.cli._terminal import WrongUsage
from app.common.home import home as data_folder
from app.common.process.control import lower_priority
from app.common.text import bounded_integer
from app.desktop.apps import own_processes
from app.models.catalogue import stored_name
from app.models.gguf_shelf import is_gguf
from app.models.shelf import locate
from app.node.data import question_sets
from app.node.data.home import check_format, identity, lock_data_folder, prepare_data_folder, stamp_format
from app.node.governing import FactsFile, Governor, Provider, ruling_event, ruling_without_rules
from app.node.node import Node
from app.node.record import events, settings
from app.node.record.errors import NodeError, UsageError
from app.node.record.reasons import Reason
from app.node.record.records import Probe
from app.node.round.peers import NodeSwarm, default_external
from app.node.rules.setting import PROBE_EVERY
from app.node.terminal.lines import SnapshotLines, log_line
from app.node.terminal.terminal import closing_sentence
from app.sapo.recipes import RECIPES
from app.sapo.sets.question_set import SetError
from app.skills.skill import Skill
from engines.models.folder import read_settings

if TYPE_CHECKING:
    from app.node.swarm.choice import SwarmToJoin
from app.cli._live import LiveTerminal, LiveView, run_node

SUMMARY = "learn without a window, with a view in this terminal"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--solo", action="store_true", help="learn alone and open no network socket at all")
    parser.add_argument(
        "--relay",
        action="append",
        metavar="URL",
        help="the swarm to learn with: a relay's address or an invite link (- reads it from standard input, "
        "which no one else sees); several are tried in turn",
    )
    parser.add_argument(
        "--private",
        action="store_true",
        help="a private swarm: its six words are asked for, or read from SHOAL_PRIVATE or standard input",
    )
    parser.add_argument(
        "--rounds", type=bounded_integer(1), metavar="N", help="stop after N rounds (default: until Ctrl-C)"
    )
    parser.add_argument(
        "--local", type=bounded_integer(1), metavar="I", help="own questions a round (the model's own setting)"
    )
    parser.add_argument(
        "--external", type=bounded_integer(0), metavar="J", help="peers' puzzles a round (half of I, at most 8)"
    )
    parser.add_argument("--recipe", choices=tuple(RECIPES), default="default")
    parser.add_argument("--families", metavar="A,B", help="puzzle families to learn (the model's own setting)")
    parser.add_argument(
        "--questions",
        action="append",
        default=[],
        metavar="NAME",
        help="learn from a question set of your own instead of puzzles (see the command questions); several "
        "take turns",
    )
    parser.add_argument(
        "--no-placement",
        action="store_true",
        help="begin at once, without finding out what a new model can begin with",
    )
    parser.add_argument(
        "--rest", type=_factor, metavar="F", default=0.0, help="rest F round lengths after each round (0)"
    )
    parser.add_argument("--seed", type=bounded_integer(0), metavar="S", help="make the run repeatable")
    parser.add_argument(
        "--probe-every",
        type=bounded_integer(1),
        metavar="K",
        default=PROBE_EVERY,
        help=f"rounds between measurements ({PROBE_EVERY}); two come before the first",
    )
    parser.add_argument(
        "--probe-questions",
        type=bounded_integer(16),
        metavar="N",
        help="held-out questions of a measurement (64 to 256)",
    )
    parser.add_argument(
        "--rules",
        action="store_true",
        help="give way to the owner: learn only while no one uses the computer, on mains power, and so on",
    )
    parser.add_argument("--facts", type=Path, help=argparse.SUPPRESS)  # with --rules: FactsFile
    share(parser, "model", "engine", "home", "json")
    parser.add_argument(
        "--snapshots", action="store_true", help=argparse.SUPPRESS
    )  # for a window: app.node.terminal.lines
    parser.add_argument(
        "--hold", action="store_true", help=argparse.SUPPRESS
    )  # with orders: wait for one to begin
    parser.add_argument("--said", default="", help=argparse.SUPPRESS)  # what the view would cover
    parser.add_argument("--shuffled-rewards", action="store_true", help=argparse.SUPPRESS)


def main(args: argparse.Namespace) -> int:
    """Returns 0 when the rounds are done or the user stopped it, 2 for wrong usage; raises other errors that
    end a node."""
    output = sys.stdout  # kept: a puzzle library prints, so the name is redirected while questions are made
    try:
        _refuse(args)
        joins = None if args.solo else _joins(args)
        args.model = stored_name(args.model)
        model = locate(args.model, data_folder(args.home), _reading(args.model))
        if not (model / "config.json").is_file():
            raise NodeError(f"There is no model in {model}: it needs a config.json and weights beside it.")
        sets = question_sets.register_sets(data_folder(args.home))
        skills = _skills(args, sets)
        plan = _settings(args, model, skills[0] if skills else None)
    except UsageError as error:
        raise WrongUsage(str(error)) from error
    home = prepare_data_folder(args.home)
    check_format(home)
    with lock_data_folder(home), tempfile.TemporaryDirectory(prefix="shoal-sets-") as copies:
        stamp_format(home)
        own = identity(home, args.seed)
        live = sys.stderr.isatty() and not (args.json and output.isatty()) and not args.snapshots
        write = events.JsonLines(output, args.snapshots) if args.json or args.snapshots else None
        if args.snapshots and not args.rules:
            lower_priority()

        def tell(event: events.Event) -> None:
            if not live:
                _say(event)
            if write is not None:
                write(event)

        def hear(event: events.Event) -> None:
            tell(event)
            if governor is not None and isinstance(event, events.CheckpointSaved | Probe):
                governor.round_finished()

        node = Node(
            plan,
            model,
            home,
            own,
            hear,
            swarm=_swarm(plan, home, joins, sets),
            hold=args.hold,
            governed=args.rules,
            sets=question_sets.copy_sets(sets, Path(copies)),
            skills=skills,
        )
        governor: Governor | None = None
        if args.rules:
            governor = Governor(
                home,
                lambda say: _facts(args.facts, say),
                node.obey,
                node.forward_event,
                by_hand=not args.snapshots,
                step_back=(lambda: lower_priority(own_processes())) if args.snapshots else None,
            )

        def class_paused(paused: bool) -> None:
            ruling = ruling_without_rules(paused, Reason.CLASS)
            node.obey(ruling)
            node.forward_event(ruling_event(ruling))

        node.on_class = governor.set_class_paused if governor is not None else class_paused
        view: LiveView | None = None
        if live:
            view = LiveTerminal(node, governor, args.said, keys=not args.hold)
        elif args.snapshots:
            view = SnapshotLines(output, lambda: node.snapshot)
        asyncio.run(run_node(node, governor, home, plan.solo, view, args.snapshots or args.hold))
        print(closing_sentence(node.snapshot), file=sys.stderr)
    return 0


def _facts(file: Path | None, say: Callable[[str], None]) -> Provider:
    """Returns the source of facts for the rules: this computer, unless a file was given."""
    if file is not None:
        return FactsFile(file)
    from app.desktop import Gatherer

    return Gatherer(say)


def _say(event: events.Event) -> None:
    if said := log_line(event):
        print(said, file=sys.stderr, flush=True)


def _refuse(args: argparse.Namespace) -> None:
    if args.solo and args.relay:
        raise UsageError("--solo opens no network socket and --relay needs one: leave one of them out.")
    if args.solo and args.external:
        raise UsageError("Learning alone, there are no peers to learn from: leave out --solo or --external.")
    if args.solo and args.private:
        raise UsageError("--private is for a swarm: leave out --solo, or --private.")
    if args.facts and not args.rules:
        raise UsageError("--facts is what the rules go by: add --rules.")
    if args.questions and args.families is not None:
        raise UsageError(
            "Your own questions and puzzles are learned apart: leave out --questions or --families."
        )
    if args.shuffled_rewards and not args.solo:
        raise UsageError(
            "--shuffled-rewards is for nodes alone: add --solo, so that peers get no false groups."
        )


def _joins(args: argparse.Namespace) -> SwarmToJoin:
    """The swarm to join. Raises UsageError. Imports are local so that solo mode never loads the swarm."""
    from app.common.process.surroundings import FROM_STDIN, read_stdin_line
    from app.node.swarm.choice import SwarmToJoin

    relays = [read_stdin_line() if one == FROM_STDIN else one for one in args.relay or ()]
    private = None
    if args.private:
        from app.cli._joining import ask_private
        from app.relay.access import AccessSetupError
        from app.swarm.invite.private import PrivateError

        try:
            private = ask_private()
        except (AccessSetupError, PrivateError) as error:
            raise UsageError(str(error)) from error
    return SwarmToJoin.named(relays, private)


def _swarm(
    plan: settings.Settings, home: Path, joins: SwarmToJoin | None, sets: Sequence[question_sets.KeptSet]
) -> NodeSwarm | None:
    """Returns the swarm to learn with; in solo mode the groups imported from a file, or None."""
    if joins is None and not (home / "archive.jsonl").exists():
        return None
    from app.node.rules.preferences import Preferences
    from app.node.swarm.member import SwarmMember

    return SwarmMember(
        home,
        (lambda say: joins.find(home, say)) if joins is not None else None,
        recipe=RECIPES[plan.recipe],
        external=plan.external,
        families=(*plan.families, *plan.others),
        receipts=lambda: bool(Preferences(home).values["receipts"]),
        people=lambda: bool(Preferences(home).values["people"]),
        shared=lambda: [one.made for one in sets if one.shares_answers],
    )


def _reading(model: str) -> Callable[[float], None]:
    """Returns a callback that says once that a file is being read, which takes a minute for a large one."""
    said: list[float] = []

    def tell(share: float) -> None:
        if not said:
            print(f"Reading {Path(model).name}; this happens once.", file=sys.stderr, flush=True)
        said.append(share)

    return tell


def _public_name(model: str) -> str:
    """Returns the name of `--model` that peers are told; a folder's name stays private."""
    from app.models.catalogue import STARTER

    if model != STARTER and (is_gguf(model) or Path(model).expanduser().exists()):
        return "local"
    return model


def _skills(args: argparse.Namespace, sets: Sequence[question_sets.KeptSet]) -> list[Skill]:
    """Returns the skills to learn, in order; none for puzzles. Raises UsageError."""
    try:
        found = {(one := question_sets.find(sets, name).made).mark: one for name in args.questions}
    except SetError as error:
        raise UsageError(str(error)) from error
    return [Skill(made) for made in found.values()]


def _settings(args: argparse.Namespace, model: Path, skill: Skill | None) -> settings.Settings:
    own = read_settings(model)
    families = settings.starting_levels(model, own.families)
    if args.families is not None:
        families = settings.chosen_families(args.families, own.families)
    if skill is not None:
        families = {skill.family: 0}
    chosen = args.families is not None or args.no_placement or skill is not None
    others = {} if chosen else {name: level for name, level in own.others.items() if name not in families}
    if others:
        settings.check_families(others, f"shoal.json of the model {model.name} names in “others”")
    groups = args.local or own.groups
    return settings.Settings(
        model=model.name if Path(args.model).exists() or is_gguf(args.model) else args.model,
        engine=args.engine,
        public_model=_public_name(args.model),
        families=families,
        groups=groups,
        external=_external(args, groups),
        max_tokens=own.max_tokens,
        learning_rate=own.learning_rate,
        rank=own.rank,
        recipe=args.recipe,
        probe_every=args.probe_every,
        probe_questions=args.probe_questions or settings.probe_size(model),
        solo=args.solo,
        rounds=args.rounds,
        seed=args.seed,
        shuffled_rewards=args.shuffled_rewards,
        rest=args.rest,
        others=others,
        place=not own.families and not args.no_placement and skill is None,
    )


def _external(args: argparse.Namespace, groups: int) -> int:
    if args.solo:
        return 0
    return default_external(groups) if args.external is None else args.external


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 <= factor <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1000")
    return factor
