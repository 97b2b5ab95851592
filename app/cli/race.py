"""`./shoal race`: compares the model before training with the trained one on new puzzles."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from app.cli._terminal import say
from app.common.text import bounded_integer
from engines import opening

SUMMARY = "race your model against how it began"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from app.chat.messages import DEFAULT_PUZZLES

    parser.description = (
        "Asks the model as it came and what it has become the same new puzzles, one answer each, and says who "
        "solves more, with the standard error. No model ever trains on these puzzles. It only reads the data "
        "folder and opens no network socket."
    )
    parser.add_argument(
        "--model", default="starter", help="starter, the name of a downloaded model, or a folder"
    )
    parser.add_argument("--engine", choices=opening.ENGINE_CHOICES, default=opening.AUTO)
    parser.add_argument(
        "--puzzles", type=bounded_integer(1, 100), default=DEFAULT_PUZZLES, metavar="N", help="how many (20)"
    )
    parser.add_argument("--seed", type=bounded_integer(0, 2**48 - 1), metavar="S", help="the same race again")
    parser.add_argument("--home", type=Path, metavar="DIR", help="where all data lies (also: SHOAL_HOME)")
    parser.add_argument(
        "--json",
        action="store_true",
        help='JSON lines: {"type": "lap", ..} for every puzzle, then {"type": "race", "before": .., '
        '"after": .., "won": .., "lost": .., "error": .., "chance": ..}',
    )


def main(args: argparse.Namespace) -> int:
    from rich.console import Console

    from app.chat.learned import Checkpoints
    from app.chat.talking import NOTHING_TO_RACE, Chat, ChatError
    from app.chat.terminal import race
    from app.common.home import home
    from app.models.shelf import locate
    from app.node.trainer import solo
    from engines.contract import Engine

    data = home(args.home)
    os.environ["SHOAL_HOME"] = str(data)
    solo.refuse_network()
    learns = Checkpoints(data, locate(args.model, home=data))
    if learns.rank() is None:  # before an engine is loaded, which takes seconds
        raise ChatError(NOTHING_TO_RACE)

    def open_engine(model: Path, rank: int | None) -> Engine:
        return opening.open_engine(args.engine, model, rank=rank)

    if not args.json:
        say("Loading the model. That takes some seconds.", sys.stderr)
    chat = Chat(args.model, data, open_engine)
    try:
        return race(chat, args.puzzles, args.seed, None if args.json else Console(), sys.stdout.buffer)
    finally:
        chat.close()
