"""`./shoal swarm`: a relay and several nodes on this computer, learning from each other."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from app.common.process.stopping import when_asked_to_stop

if TYPE_CHECKING:
    from rich.console import Console

    from app.node.terminal.fleet import Fleet, FleetSummary

SUMMARY = "start a relay and several learners here, and watch them learn from each other"
_REFRESH_S = 0.25
_NOTES = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=_positive, metavar="N", default=3, help="how many nodes (3)")
    parser.add_argument("--rounds", type=_positive, metavar="R", default=30, help="rounds of each node (30)")
    parser.add_argument("--home", type=Path, metavar="DIR", help="each node's data lies in a folder below it")
    parser.add_argument("--json", action="store_true", help="the summary as JSON on the last line of output")
    parser.add_argument(
        "--models",
        metavar="A,B",
        default="starter",
        help="models, dealt out in turn (starter): names or folders",
    )
    parser.add_argument(
        "--families", metavar="A,B", help="puzzle families of all nodes (the model's own setting)"
    )
    parser.add_argument("--local", metavar="I", help="own questions a round")
    parser.add_argument("--external", metavar="J", help="peers' groups a round")
    parser.add_argument("--recipe", help="how groups become weights (default)")
    parser.add_argument("--probe-every", metavar="K", help="rounds between measurements (10)")
    parser.add_argument("--rest", metavar="F", help="rest F round lengths after each round (0)")


def main(args: argparse.Namespace) -> int:
    """0 when all nodes did their rounds or the owner stopped it, 1 when one failed or a group was lost."""
    from rich.console import Console

    from app.models.shelf import locate
    from app.node.data.home import folder
    from app.node.record.errors import NodeError
    from app.node.terminal.fleet import Fleet
    from app.node.terminal.fleet_view import picture

    models = [model.strip() for model in args.models.split(",") if model.strip()] or ["starter"]
    for model in models:
        locate(model)
    home = folder(args.home) / "swarm" if args.home is None else folder(args.home)
    console = Console(stderr=True)
    notes: list[str] = []

    def say(sentence: str) -> None:
        notes.append(sentence)
        del notes[:-_NOTES]
        if not console.is_terminal:
            print(sentence, file=sys.stderr, flush=True)

    fleet = Fleet(home, args.nodes, models, ["--rounds", str(args.rounds), *_options(args)], say)
    try:
        code, summary = asyncio.run(_sail(fleet, console, args.rounds, notes))
    except NodeError as error:
        print(f"shoal swarm: {error}", file=sys.stderr)
        return 1
    console.print(picture(fleet, args.rounds, notes, console.width))
    stored = "an unknown number" if summary.stored is None else summary.stored
    print(
        f"{summary.created} groups made, {summary.acknowledged} acknowledged, {stored} stored, "
        f"{summary.lost} lost. Everything is in {home}.",
        file=sys.stderr,
    )
    if args.json:
        import msgspec

        print(msgspec.json.encode(summary).decode(), flush=True)
    return code or int(summary.lost > 0)


async def _sail(fleet: Fleet, console: Console, rounds: int, notes: list[str]) -> tuple[int, FleetSummary]:
    """Runs the fleet under its table until it is done or stopped; then counts."""
    from rich.live import Live

    from app.node.terminal.fleet_view import picture

    task = asyncio.create_task(fleet.run())
    _stop_on_signals(task)
    live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
    if live is not None:
        live.start()
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_REFRESH_S)
            if live is not None:
                live.update(picture(fleet, rounds, notes, console.width), refresh=True)
    finally:
        if live is not None:
            live.stop()
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await task
        stored = await fleet.stored()
    finally:
        await fleet.close()
    return int(any(member.failed for member in fleet.members)), await asyncio.to_thread(fleet.summary, stored)


def _stop_on_signals(task: asyncio.Task[None]) -> None:
    """The first signal ends the nodes safely, the second one everything at once: the pipes close with us."""

    def stop() -> None:
        if task.cancelling():
            os._exit(1)
        task.cancel()

    when_asked_to_stop(stop)


def _options(args: argparse.Namespace) -> list[str]:
    """What every node is told as well; each checks it and refuses what is wrong."""
    names = ("families", "local", "external", "recipe", "probe_every", "rest")
    given = ((name, getattr(args, name)) for name in names)
    return [part for name, value in given if value for part in (f"--{name.replace('_', '-')}", value)]


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10**6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)
