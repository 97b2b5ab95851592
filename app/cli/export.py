"""`./shoal export --format F OUT`: the trained model, as files for other programs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.cli._frame import reading_home, share
from app.cli._terminal import WrongUsage, json_line, overwrite, report_failure, say
from app.models.catalogue import stored_name
from app.node.models.card import FORMATS

SUMMARY = "take your model to other programs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes the newest safe point of a model, or what it learned from a table, into the new folder OUT, "
        "with a card that says how to ask it. It only reads the data folder, also while a node is learning "
        "there. Formats: " + ". ".join(f"{name}: {one.files}" for name, one in FORMATS.items()) + "."
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    parser.add_argument("--format", choices=tuple(FORMATS), required=True)
    parser.add_argument("--skill", metavar="NAME", help="what was learned from this table, not from puzzles")
    parser.add_argument(
        "--kind", choices=("f16", "q8_0", "f32"), default="f16", help="number format of GGUF weights (f16)"
    )
    parser.add_argument(
        "--create", action="store_true", help="then hand it to Ollama, which must be running on this computer"
    )
    share(parser, "model", "home")
    share(
        parser,
        json='{"event":"progress","share":..} while it runs, then {"event":"exported",..} or '
        '{"event":"refused","sentence":..}',
    )


def main(args: argparse.Namespace) -> int:
    if args.create and args.format != "ollama":
        raise WrongUsage("--create needs --format ollama.")
    from app.common.job import JobEvent, Progress
    from app.node.models import exporting
    from app.node.record.errors import NodeError
    from engines.contract import EngineError

    data = reading_home(args)
    wish = exporting.ExportRequest(
        model=stored_name(args.model),
        format=args.format,
        to=args.out.expanduser().absolute(),
        kind=args.kind,
        skill=args.skill or "",
    )

    def heard(event: JobEvent) -> None:
        if args.json:
            json_line(event)
        elif isinstance(event, Progress) and sys.stderr.isatty():
            overwrite(f"{100 * event.share:3.0f} %")

    with report_failure(args.json, EngineError, NodeError, kind=exporting.ExportFailed):
        done = exporting.export(data, wish, heard)
        if args.create:
            exporting.hand_to_ollama(done)
    heard(done)
    if not args.json:
        say(_summary(done))
    return 0


def _summary(done: object) -> str:
    from app.models.found import lm_studio_folder
    from app.node.models.exporting import ExportDone

    assert isinstance(done, ExportDone)
    score = f", {done.score} of new puzzles solved" if done.score else ""
    lines = [f"{done.model} after round {done.round}{score}, as {done.format} in {done.folder}:"]
    lines += [f"  {name:<28}{size / 1e6:>10.2f} MB" for name, size in done.files.items()]
    lines += [f"For Ollama: {done.command}"] if done.command else []
    studio = lm_studio_folder()
    if done.format == "ollama" and studio is not None:
        lines.append(f"For LM Studio: move that folder into {studio / 'shoal'}.")
    return "\n".join(lines)
