"""`./shoal data`: where everything is stored, its size, what was sent, and choosing another folder."""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from pathlib import Path

from app.cli._frame import share, tell
from app.common.home import home
from app.common.text import in_bytes

SUMMARY = "where everything is kept, how large it is, and how to use another folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--use",
        type=Path,
        metavar="DIR",
        help="use this folder from now on; to take everything along, close Shoal and copy the old one first",
    )
    share(parser, "home", "json")


def main(args: argparse.Namespace) -> int:
    from app.node.data import contents
    from app.node.data.home import use_folder
    from app.swarm.client.traffic import read_traffic

    folder = home(args.home)
    if args.use is not None:
        use_folder(args.use, folder)
        folder = home()
    sizes = contents.sizes(folder)
    rows = {size.kind: size.bytes for size in sizes}
    lines = [str(folder), *(f"  {in_bytes(size.bytes):>12}  {size.label}" for size in sizes)]
    traffic = read_traffic(folder)
    hour, _ = traffic.hour(time.time())
    if traffic.sent:
        since = datetime.fromtimestamp(traffic.since).strftime("%Y-%m-%d")
        lines.append(
            f"Sent to relays: {in_bytes(hour)} in the last hour, {in_bytes(traffic.sent)} since {since}."
        )
    sent = {"hour": hour, "total": traffic.sent, "since": traffic.since}
    tell(args, "\n".join(lines), home=str(folder), bytes=sum(rows.values()), kinds=rows, sent=sent)
    return 0
