"""`./shoal puzzle`: a puzzle for a person to solve, scored like a model's answers."""

from __future__ import annotations

import argparse
import sys

from app.cli._frame import share
from app.cli._terminal import WrongUsage
from app.common.process.streams import bare
from app.common.text import bounded_integer

SUMMARY = "solve the puzzles yourself"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Asks the puzzles that models practise on, and judges answers with the same scorers, in the same "
        "closed-off process. Answers are neither kept nor shared, and no network socket is opened. Your own "
        "right answer can teach your model on the page Try it."
    )
    parser.add_argument("--family", metavar="F", help="one family of puzzles, for example gcd (any)")
    parser.add_argument("--level", type=bounded_integer(1), metavar="L", help="its level, from 1 (1)")
    parser.add_argument("--count", type=bounded_integer(1), metavar="N", help="stop after N answers")
    share(parser, "home")


def main(args: argparse.Namespace) -> int:
    from rich.console import Console

    from app.chat.terminal import solve
    from app.node.trainer import solo
    from app.sapo.families import FAMILIES

    if args.family is not None and args.family not in FAMILIES:
        raise WrongUsage(f"There is no family {args.family}: choose one of {', '.join(sorted(FAMILIES))}.")
    if args.level is not None and args.family is None:
        raise WrongUsage("--level is a family's: add --family.")
    if args.level is not None and args.level > len(FAMILIES[args.family].levels):
        raise WrongUsage(
            f"{args.family} has levels 1 to {len(FAMILIES[args.family].levels)}: choose one of those."
        )
    solo.refuse_network()
    level = None if args.level is None else args.level - 1
    return solve(args.family, level, args.count, sys.stdin, Console(file=bare(sys.stdout)))
