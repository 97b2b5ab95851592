"""`./shoal relay`: the meeting place of a swarm, in one process with everything in memory."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import secrets
import sys
from pathlib import Path

SUMMARY = "run a relay, where nodes leave their groups and pick up those of others"
HOST, PORT = "127.0.0.1", 8777
MEMORY = "memory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", default=HOST, help=f"address to listen at (default {HOST}: this computer only)"
    )
    parser.add_argument("--port", type=_port, default=PORT, help=f"port, 0 for any free one (default {PORT})")
    parser.add_argument(
        "--backplane",
        default=MEMORY,
        metavar="memory|nats://..",
        help="what carries the groups (default memory)",
    )
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="keep groups, bans and the relay's id in this folder"
    )
    parser.add_argument("--swarm", type=_swarm, default="shoal", help="id of the swarm (default shoal)")
    parser.add_argument("--name", type=_name, help="the relay's id, which clients sign for (default HOST:PORT)")


def main(args: argparse.Namespace) -> int:
    if args.backplane != MEMORY:
        print(
            f"shoal relay: This version has the memory backplane only and cannot use {args.backplane[:80]}; "
            "leave --backplane out.",
            file=sys.stderr,
        )
        return 2
    from app.relay.backplane import BackplaneError
    from app.relay.desk import Desk
    from app.relay.journal import Journal
    from app.relay.server import serve

    def open_desk(bound: str) -> Desk:
        if args.state is None:
            return Desk(args.name or bound, args.swarm, secrets.token_hex(8))
        journal = Journal(args.state, args.swarm)
        return Desk(journal.relay(args.name, bound), args.swarm, secrets.token_hex(8), backplane=journal)

    def opened(url: str, desk: Desk) -> None:
        print(json.dumps({"url": url, "relay": desk.relay, "swarm": desk.swarm}), flush=True)
        print(f"The relay {desk.relay} of the swarm {desk.swarm} is open at {url}.", file=sys.stderr)

    try:
        asyncio.run(serve(args.host, args.port, open_desk, opened))
    except BackplaneError as error:
        print(f"shoal relay: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"shoal relay: It cannot listen at {args.host[:80]} port {args.port}: {error.strerror or error}; "
            "choose another --host or --port.",
            file=sys.stderr,
        )
        return 1
    print("The relay is closed.", file=sys.stderr)
    return 0


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65_535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


def _swarm(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{2,63}", text):
        raise argparse.ArgumentTypeError("a swarm's id has 3 to 64 small letters, digits and hyphens")
    return text


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,127}", text):
        raise argparse.ArgumentTypeError("a relay's id has letters, digits and . : _ -")
    return text
