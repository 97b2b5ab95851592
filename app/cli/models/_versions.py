"""`./shoal models name`, `back` and `start-over`: what an owner does with what a model learned."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from app.cli._terminal import agreed, json_line
from app.common import remedy
from app.common.text import in_bytes
from app.node.data.home import held
from app.node.data.library import called, history_of
from app.node.history import points
from app.node.models import versions
from app.node.record.errors import NodeError
from engines.contract import EngineError

VERBS = ("name", "back", "start-over", "forget")


def main(args: argparse.Namespace, home: Path) -> int:
    """0 when done. Raises NodeError and EngineError."""
    folder = history_of(home, args.model)
    if folder is None:
        raise EngineError(
            f"There is no model {args.model} on this computer; {remedy.command('models')} lists them."
        )
    if args.verb == "name":
        versions.call(folder, args.what or "")
        _done(args, {"called": called(folder)}, f"It's called {args.what} now." if args.what else "")
        return 0
    if args.verb == "back" and not args.what:
        _list(args, home, folder)
        return 0
    with held(home, args.wait):
        {"back": _back, "start-over": _start_over, "forget": _forget}[args.verb](args, home, folder)
    return 0


def _list(args: argparse.Namespace, home: Path, folder: Path) -> None:
    kept, by = points.kept(folder), versions.versions(home, folder)
    if args.json:
        rows: list[dict[str, Any]] = [{"round": one.round, "solved": one.solved} for one in kept]
        json_line({"rounds": rows, "versions": [{"id": one.id, "rounds": one.rounds} for one in by]})
        return
    for one in kept:
        print(f"{one.round:>8}  {_day(one.at)}{_solves(one.solved)}")
    for version in by:
        called = f"  {version.called}" if version.called else ""
        print(
            f"{version.id}  after {version.rounds} rounds, {_day(version.at)}{_solves(version.solved)}{called}"
        )
    if not kept and not by:
        print("Nothing to go back to yet.")


def _back(args: argparse.Namespace, home: Path, folder: Path) -> None:
    if not args.what.isdecimal():
        versions.bring_back(home, folder, args.what)
        _done(args, {"version": args.what}, f"{args.what} learns again. What learned before it is kept.")
        return
    round = int(args.what)
    later = "What it is now is kept." if args.keep else "All later rounds will be deleted for good."
    _agree(args, f"Back to round {round}? {later}")
    versions.back(home, folder, round, args.keep)
    _done(args, {"round": round}, f"Back to round {round}.")


def _start_over(args: argparse.Namespace, home: Path, folder: Path) -> None:
    goes = "is kept" if args.keep else "will be deleted for good"
    _agree(args, f"Start over? What {args.model} learned here {goes}. The model itself stays.")
    versions.start_over(home, folder, args.keep)
    _done(args, {"round": 0}, "It starts over with round 1.")


def _forget(args: argparse.Namespace, home: Path, folder: Path) -> None:
    _agree(args, f"{args.what} will be deleted for good.")
    freed = versions.forget(home, folder, args.what or "")
    _done(args, {"freed": freed}, f"{in_bytes(freed)} are free again.")


def _agree(args: argparse.Namespace, question: str) -> None:
    if args.yes:
        return
    if (said := agreed(f"{question} Continue?")) is None:
        raise NodeError("Shoal asks first, and can't get an answer here. Add --yes.")
    if not said:
        raise NodeError("Nothing was changed.")


def _done(args: argparse.Namespace, told: dict[str, Any], sentence: str) -> None:
    if args.json:
        json_line(told)
    elif sentence:
        print(sentence)


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _solves(share: float | None) -> str:
    return "" if share is None else f"  solves {100 * share:.0f} of 100 new puzzles"
