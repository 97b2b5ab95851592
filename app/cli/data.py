"""`./shoal data`: where everything is stored, its size, and moving it to another folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli._frame import share, tell
from app.cli._terminal import TerminalLine
from app.common.home import home
from app.common.text import in_bytes

SUMMARY = "where everything is kept, how large it is, and how to move it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--move", type=Path, metavar="DIR", help="move it to this new or empty folder")
    share(parser, "home", "json")


def main(args: argparse.Namespace) -> int:
    from app.node.data import contents, moving

    folder = home(args.home)
    if args.move is not None:
        line = TerminalLine()
        folder = moving.move(
            args.move,
            lambda done, total: line.progress(f"Copying and checking: {100 * done // max(1, total)} %"),
            current=folder,
        )
        line.say()
    else:
        moving.empty_old_folder()
    sizes = contents.sizes(folder)
    rows = {size.kind: size.bytes for size in sizes}
    lines = [str(folder), *(f"  {in_bytes(size.bytes):>12}  {size.label}" for size in sizes)]
    tell(args, "\n".join(lines), home=str(folder), bytes=sum(rows.values()), kinds=rows)
    return 0
