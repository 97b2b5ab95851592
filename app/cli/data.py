"""`./shoal data`: where everything is stored, its size, and moving it to another folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from app.common.home import home
from app.common.text import in_bytes

SUMMARY = "where everything is kept, how large it is, and how to move it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", type=Path, metavar="DIR", help="the data folder (also: SHOAL_HOME)")
    parser.add_argument("--move", type=Path, metavar="DIR", help="move it to this new or empty folder")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def main(args: argparse.Namespace) -> int:
    from app.node.data import contents, moving

    folder = home(args.home)
    if args.move is not None:
        folder = moving.move(args.move, _Bar(), current=folder)
    else:
        moving.empty_old_folder()
    sizes = contents.sizes(folder)
    if args.json:
        rows = {size.kind: size.bytes for size in sizes}
        print(msgspec.json.encode({"home": str(folder), "bytes": sum(rows.values()), "kinds": rows}).decode())
        return 0
    print(folder)
    for size in sizes:
        print(f"  {in_bytes(size.bytes):>12}  {size.label}")
    return 0


class _Bar:
    """Progress on one line, for people."""

    def __init__(self) -> None:
        self._shown = -1

    def __call__(self, done: int, total: int) -> None:
        percent = 100 * done // max(1, total)
        if sys.stderr.isatty() and percent != self._shown:
            self._shown = percent
            print(f"\rCopying and checking: {percent} %", end="" if percent < 100 else "\n", file=sys.stderr)
