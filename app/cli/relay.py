"""`./shoal relay`: runs a relay, or sends a command to a running one."""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import os
import re
import secrets
import signal
import sys
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.cli import _joining, _operator
from app.cli._frame import share
from app.cli._terminal import WrongUsage, say
from app.common.process.control import when_input_closes
from app.common.text import bounded_integer

if TYPE_CHECKING:
    from app.relay.store.backing import Backing

SUMMARY = "run a relay, where Shoals leave their answers and pick up others'"
HOST, PORT = "127.0.0.1", 8777
ARCHIVE_MB = 256
MEMORY = "memory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        help=f"address to listen at (default {HOST}: this computer only; with --lan or --class all networks)",
    )
    parser.add_argument(
        "--port",
        type=bounded_integer(0, 65_535, "a port is a number from 0 to 65535"),
        help=f"port, 0 for any free one (default {PORT}, or a free one where that is taken)",
    )
    parser.add_argument(
        "--backplane",
        type=_servers,
        default=MEMORY,
        metavar="memory|nats://..",
        help="what carries the groups: memory (default), or nats://HOST[:PORT][,..] for several relays",
    )
    parser.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="keep groups, bans and the relay's key in this folder (groups and bans are not with nats://)",
    )
    parser.add_argument(
        "--archive",
        type=bounded_integer(0, 1_000_000, "an archive has 0 to 1,000,000 MB"),
        default=ARCHIVE_MB,
        metavar="MB",
        help=f"most disk for a day of groups in --state, 0 for none (default {ARCHIVE_MB})",
    )
    parser.add_argument("--swarm", type=_swarm, help="id of the swarm (default shoal)")
    parser.add_argument(
        "--relay-key",
        type=Path,
        metavar="FILE",
        help="the relay's key, made if missing; its id follows from it (default: in --state or data folder)",
    )
    parser.add_argument(
        "--class",
        dest="classroom",
        action="store_true",
        help="a classroom: a page for its teacher, who sees skills over time and can pause everybody",
    )
    parser.add_argument(
        "--questions",
        type=Path,
        metavar="FILE",
        help="with --class: questions to hand out, a table or an exported set; pupils see them first",
    )
    parser.add_argument("--json", action="store_true", help="print a line for programs to a terminal too")
    share(parser, home="the data folder, for the relay's key (also: SHOAL_HOME)")
    _joining.add_arguments(parser)
    _operator.add_options(parser)
    _operator.add_orders(parser)


def main(args: argparse.Namespace) -> int:
    if args.order is not None:
        return _operator.send_command(args)
    from app.relay.access import AccessSetupError
    from app.relay.page import teacher
    from app.relay.server.serving import serve
    from app.relay.session.shared import RelayState

    try:
        joining = _joining.read_joining(args)
        rules = _operator.rules(args, None if joining.public is None else joining.public.url)
        if args.classroom:
            people = _operator.relay_folder(args) / teacher.PEOPLE_FILE
            rules = msgspec.structs.replace(rules, teacher=teacher.token(), people=people)
        handout = _handout(args)
        seed = _operator.relay_key(args)
    except (AccessSetupError, ValueError) as error:
        raise WrongUsage(str(error)) from error
    if args.until_stdin_closes:
        when_input_closes(_end)
    for_network = args.lan or (args.classroom and joining.public is None)
    host = args.host or (_joining.ANYWHERE if for_network else HOST)
    announcing: set[asyncio.Task[None]] = set()

    def open_state() -> RelayState:
        return RelayState(
            seed,
            joining.swarm,
            secrets.token_hex(8),
            pow_bits=joining.pow_bits,
            access=joining.access,
            backing=_backing(args, joining.swarm),
            classroom=args.classroom,
            handout=handout,
        )

    def opened(url: str, state: RelayState) -> None:
        near = _joining.invite(url, state.swarm, state.relay, None)
        link = _joining.invite(url, state.swarm, state.relay, joining.public)
        if args.classroom:
            link = msgspec.structs.replace(link, room="class")
        first = {"url": url, "relay": state.relay, "swarm": state.swarm, "invite": link.link()}
        first |= _operator.write_relay_url(args, rules, url)
        if args.classroom:
            first["teacher"] = f"{_page(link.url)}{teacher.PATH}{rules.teacher}/page"
        if args.json or not sys.stdout.isatty():  # the line is for programs
            print(json.dumps(first), flush=True)
        say("The relay is open.", sys.stderr)
        say(_joining.start_message(link, url, state.access.mode, args.lan), sys.stderr)
        say(f"Address: {url}\nSwarm: {state.swarm}, relay: {state.relay}", sys.stderr)
        if args.classroom:
            say(f"For the teacher alone, in a browser:\n{first['teacher']}", sys.stderr)
            if _joining.is_local(link):
                how = "leave out --host for that" if args.host else "this one has no network"
                say(f"Pupils on other computers can't join it: {how}.", sys.stderr)
            elif state.access.private is None and link.url.startswith("ws:"):
                say(
                    "Others on this network can read the page and the answers, which aren't encrypted. Open "
                    "the page on this computer. With --private, secret words encrypt the answers.",
                    sys.stderr,
                )
        if args.lan:
            closed_to_strangers = state.access.mode not in ("open", "pow")
            announcing.add(asyncio.create_task(_joining.announce(near, closed_to_strangers)))

    try:
        args.port = _port(host, args.port)
        asyncio.run(serve(host, args.port, open_state, opened, rules))
    except OSError as error:
        port = PORT if args.port is None else args.port
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
        print(
            f"shoal relay: It cannot listen at {host[:80]} port {port}: {why}; "
            "choose another --host or --port.",
            file=sys.stderr,
        )
        return 1
    print("The relay is closed.", file=sys.stderr)
    return 0


def _end() -> None:
    """Ends this process as SIGTERM does."""
    if os.name == "nt":
        signal.raise_signal(signal.SIGTERM)
    else:
        os.kill(os.getpid(), signal.SIGTERM)


def _handout(args: argparse.Namespace) -> str:
    """Reads the question set that a class hands out. Returns it encoded, "" without --questions. Raises
    ValueError for a set that cannot be handed out."""
    if args.questions is None:
        return ""
    if not args.classroom:
        raise ValueError("--questions hands a question set out to a class: add --class.")
    from app.sapo.sets.bounds import MAX_BYTES
    from app.sapo.sets.question_set import check, encode
    from app.sapo.sets.tables import read
    from app.swarm.wire.limits import BATCH_FRAME, HANDOUT_CHARS

    try:
        with args.questions.expanduser().open("rb") as file:
            made = read(file.read(MAX_BYTES + 1), args.questions.stem).made
    except OSError as error:
        raise ValueError(f"{args.questions} can't be read ({error.strerror or error}).") from error
    check(made)
    content = encode(made).decode()
    if len(content) > HANDOUT_CHARS or len(json.dumps(content)) > BATCH_FRAME - 100:
        raise ValueError(
            f"A class hands out {HANDOUT_CHARS // 1024} KB of questions at most. Take a part of them."
        )
    return content


def _backing(args: argparse.Namespace, swarm: str) -> Backing | None:
    """Opens what the relay keeps its groups in; None for memory. Raises StoreError."""
    file = None
    if args.state is not None and (args.archive or not args.backplane):
        from app.relay.store.sqlite import SQLite

        file = SQLite(args.state, swarm, archive=args.archive << 20)
    if not args.backplane:
        return file
    from app.relay.store.jetstream import JetStream

    return JetStream(args.backplane, swarm, day=file)


def _port(host: str, wanted: int | None) -> int:
    """Returns the requested port; without one the usual port, or 0 for any if that is taken. Raises OSError."""
    from app.relay.server.serving import bind

    if wanted is not None:
        return wanted
    try:
        bind(host, PORT).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        say(f"Port {PORT} is taken, so the relay opens another one.", sys.stderr)
        return 0
    return PORT


def _page(socket_url: str) -> str:
    """Returns the HTTP address of a relay's pages from its websocket URL.

    >>> _page("wss://relay.example/v1/ws"), _page("ws://192.168.1.20:8777/v1/ws")
    ('https://relay.example', 'http://192.168.1.20:8777')
    """
    parts = urllib.parse.urlsplit(socket_url)
    return f"{'https' if parts.scheme == 'wss' else 'http'}://{parts.netloc}"


def _servers(text: str) -> tuple[str, ...]:
    """NATS server addresses; empty for a relay of its own."""
    if text == MEMORY:
        return ()
    from app.relay.store.jetstream import servers

    try:
        return servers(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, or {MEMORY}") from None


def _swarm(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{2,63}", text):
        raise argparse.ArgumentTypeError("a swarm's id has 3 to 64 small letters, digits and hyphens")
    return text
