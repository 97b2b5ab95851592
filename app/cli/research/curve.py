"""`./shoal curve RUN.jsonl ... --out PICTURE.png`: draws what `./shoal run --json` printed."""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "draw the curve of runs recorded with `run --json`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="a file with the output of run --json"
    )
    parser.add_argument("--out", type=Path, required=True, help="the picture, a PNG")


def main(args: argparse.Namespace) -> int:
    from app.lab.report.plot import CurveError, draw_curve, read_run

    picture = draw_curve([read_run(path) for path in args.runs])
    try:
        args.out.write_bytes(picture)
    except OSError as error:
        raise CurveError(f"{args.out} cannot be written ({error.strerror}): choose another --out.") from error
    return 0
