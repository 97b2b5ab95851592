"""`./shoal ask SKILL TEXT`: asks what the model learned from a table."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from app.cli._terminal import json_line
from engines import opening

SUMMARY = "ask a skill that your model has learned"
_MAX_TEXT = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Asks a skill as a row of its table is written, and prints the answer and how sure it is. It reads the "
        "best safe point, also while a node is learning, and opens no network socket."
    )
    parser.add_argument("skill", metavar="SKILL", help="its name, or its short name in other programs")
    parser.add_argument("text", metavar="TEXT", help="the question; - reads it from standard input")
    parser.add_argument("--model", metavar="NAME", help="the base model, if several have learned it")
    parser.add_argument("--engine", choices=opening.CHOICES, default=opening.AUTO)
    parser.add_argument("--home", type=Path, metavar="DIR", help="where all data lies (also: SHOAL_HOME)")
    parser.add_argument("--json", action="store_true", help='{"answer":..,"sure":..,"labels":{..},..}')


def main(args: argparse.Namespace) -> int:
    from app.chat.skills import ask_skill, open_skill
    from app.common.home import home
    from app.models.catalogue import full_name
    from app.models.shelf import locate
    from app.node.models.skills import find_skill
    from app.node.trainer import solo
    from engines.contract import Engine

    data = home(args.home)
    os.environ["SHOAL_HOME"] = str(data)
    solo.refuse_network()
    text = args.text
    if text == "-":
        text = sys.stdin.buffer.read(_MAX_TEXT).decode("utf-8", "replace")
    model = locate(full_name(args.model), data) if args.model else None
    known = find_skill(data, args.skill, model)

    def open_engine(folder: Path, rank: int | None) -> Engine:
        return opening.open_engine(args.engine, folder, rank=rank)

    (said,) = ask_skill(open_skill(known, data, open_engine), known, [text])
    if args.json:
        json_line(said)
        return 0
    if said.work:
        print(said.work)
    print(said.answer)
    print(f"{100 * said.sure:.0f} % sure{_kept(said.right, said.of)}", file=sys.stderr)
    for label, share in sorted(said.labels.items(), key=lambda one: -one[1]):
        print(f"  {label}  {100 * share:.1f} %", file=sys.stderr)
    return 0


def _kept(right: int, of: int) -> str:
    return f"; of {of} rows kept aside that were about as sure, {right} were right" if of else ""
