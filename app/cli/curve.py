"""`./shoal curve RUN.jsonl ... --out PICTURE.png`: draws what `./shoal run --json` printed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.cli._terminal import say

SUMMARY = "draw the curve of runs recorded with `run --json`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="a file with the output of run --json"
    )
    parser.add_argument("--out", type=Path, required=True, help="the picture, a PNG")


def main(args: argparse.Namespace) -> int:
    from app.lab.report.plot import CurveError, draw_curve, read_run

    drawn = len(args.runs)
    picture = draw_curve([read_run(path) for path in args.runs])
    try:
        args.out.write_bytes(picture)
    except OSError as error:
        raise CurveError(f"{args.out} cannot be written ({error.strerror}): choose another --out.") from error
    say(f"The curve of {drawn} run{'s' * (drawn != 1)} is in {args.out}.", sys.stderr)
    return 0
