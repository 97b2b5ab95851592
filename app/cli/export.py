"""`./shoal export --format F OUT`: the trained model, as files for other programs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.cli._frame import opener, reading_home, share, tell
from app.cli._terminal import WrongUsage, json_line, report_failure, say
from app.models.catalogue import STARTER
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
    parser.add_argument(
        "--check",
        action="store_true",
        help="then answer ten new puzzles, or the rows kept aside of a table, with the GGUF in "
        "llama-cpp-python and here, and compare",
    )
    share(parser, "model", "home")
    share(
        parser,
        json='{"event":"progress","share":..} while it runs, then {"event":"exported",..} or '
        '{"event":"refused","sentence":..}',
    )


def main(args: argparse.Namespace) -> int:
    if (args.check or args.create) and args.format != "ollama":
        raise WrongUsage("--check and --create need --format ollama.")
    from app.common.job import JobEvent, Progress
    from app.node.models import exporting
    from app.node.record.errors import NodeError
    from engines.contract import EngineError

    data = reading_home(args)
    wish = exporting.ExportRequest(
        model=args.model,
        format=args.format,
        to=args.out.expanduser().absolute(),
        kind=args.kind,
        skill=args.skill or "",
    )

    def heard(event: JobEvent) -> None:
        if args.json:
            json_line(event)
        elif isinstance(event, Progress) and sys.stderr.isatty():
            print(f"\r{100 * event.share:3.0f} %", end="", file=sys.stderr, flush=True)

    with report_failure(args.json, EngineError, NodeError, kind=exporting.ExportRefused):
        done = exporting.export(data, wish, heard)
        if args.create:
            exporting.hand_to_ollama(done)
    heard(done)
    if not args.json:
        say(_summary(done))
    return _check(args, data, wish.to) if args.check else 0


def _check(args: argparse.Namespace, home: Path, exported: Path) -> int:
    """Compares the exported model's answers with the original's. Returns 1 if they differ, else 0."""
    from app.chat.agreement import compare_answers, compare_skill
    from app.models.shelf import locate
    from app.node.models.skills import find_skill

    if args.skill:
        named = None if args.model == STARTER else locate(args.model, home)
        found = compare_skill(find_skill(home, args.skill, named), home, exported, opener(args))
    else:
        found = compare_answers(args.model, home, exported, opener(args))
    kind = "rows kept aside" if args.skill else "new puzzles"
    said = f"The exported model answers {found.equal} of {found.asked} {kind} exactly as it does here."
    if not found.within_tolerance:
        _, ours, theirs = found.different[0]
        said += f" For example {theirs.strip()[:60]!r} instead of {ours.strip()[:60]!r}."
    tell(args, said, event="checked", asked=found.asked, equal=found.equal, sentence=said)
    return 0 if found.within_tolerance else 1


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
