"""The operator's side of `./shoal relay`: the operator's key, the rules of a relay, and the commands `./shoal
relay ban|unban|bans|status` for a running one.

With --state the relay creates the operator's key in that folder, beside its URL, so commands on the same
computer need only --state. From elsewhere: --at URL --key FILE, for a relay started with --operator."""

from __future__ import annotations

import argparse
import json
import re
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli._terminal import WrongUsage, json_line
from app.common import files
from app.common.text import bounded_integer, exact_duration, safe_line

if TYPE_CHECKING:
    from app.relay.access import Rules
    from app.relay.admin.operator import Act, RelayStatus, Reply

KEY_FILE, RELAY_KEY_FILE, PLACE_FILE = "operator.key", "relay.key", "relay.json"
_WAIT_S = 30.0
_LARGEST = 16 * 2**20
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


class OperatorError(Exception):
    """The operator's command cannot be carried out; one sentence says why."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDR",
        help="address or network of a proxy whose X-Forwarded-For is believed; may be repeated",
    )
    parser.add_argument("--metrics", metavar="HOST:PORT", help="serve /metrics there (default: nowhere)")
    parser.add_argument(
        "--operator",
        action="append",
        default=[],
        metavar="KEY",
        help="public key, 64 hex digits, that may give orders; may be repeated",
    )
    parser.add_argument("--contact", default="", help="how to reach the operator, for the status page")
    parser.add_argument(
        "--connections",
        type=bounded_integer(1, 999_999, "a number from 1 on is needed"),
        metavar="N",
        help="most open connections",
    )
    parser.add_argument("--no-checks", action="store_true", help="do not score some of the groups again")
    parser.add_argument(
        "--no-limits-here",
        action="store_true",
        help="no limits for this computer's own connections, for experiments with many nodes",
    )


def add_orders(parser: argparse.ArgumentParser) -> None:
    orders = parser.add_subparsers(dest="order", metavar="ORDER", title="orders to a relay that is running")
    for name, text in (
        ("ban", "shut out a key or an address"),
        ("unban", "let it in again"),
        ("bans", "list who is shut out"),
        ("status", "show how the relay is doing and who publishes most"),
    ):
        one = orders.add_parser(name, help=text)
        if name in ("ban", "unban"):
            one.add_argument("target", metavar="KEY|ADDRESS")
        if name == "ban":
            one.add_argument(
                "--for", dest="period", type=_period, default=86_400, metavar="24h", help="default 24h"
            )
            one.add_argument("--reason", default="", help="for the operators' own list")
            one.add_argument("--shadow", action="store_true", help="accept its groups and never give them out")
        # SUPPRESS: an order's own default must not wipe out what stood before the order
        one.add_argument(
            "--state", type=Path, default=argparse.SUPPRESS, metavar="DIR", help="the relay's folder"
        )
        one.add_argument("--at", metavar="URL", help="of a relay elsewhere")
        one.add_argument("--key", type=Path, metavar="FILE", help="the operator's key")
        one.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print the relay's answer as JSON"
        )


def operators(args: argparse.Namespace) -> frozenset[bytes]:
    """Returns the public keys of those who may send commands and invite. Raises OperatorError."""
    from app.common import signing

    keys = set()
    for text in args.operator:
        if not re.fullmatch(r"[0-9a-f]{64}", text):
            raise WrongUsage(f"An operator is named by a public key of 64 hex digits, not {text[:80]!r}.")
        keys.add(bytes.fromhex(text))
    if args.state is not None:
        keys.add(signing.public_key(_load_or_make_key(args.state / KEY_FILE)))
    return frozenset(keys)


def relay_key(args: argparse.Namespace) -> bytes:
    """Returns the seed of the relay's key, created at its first start: nodes recognise a known relay by this
    key. Raises OperatorError."""
    return _load_or_make_key(args.relay_key or relay_folder(args) / RELAY_KEY_FILE)


def relay_folder(args: argparse.Namespace) -> Path:
    """Returns the relay's folder: --state if given, else `relay` in the data folder."""
    from app.common.home import home

    return Path(args.state) if args.state is not None else home(args.home) / "relay"


def rules(args: argparse.Namespace, public: str | None = None) -> Rules:
    """Returns the rules that the options set, with the metrics' socket bound. Raises OperatorError."""
    from app.relay.access import Rules
    from app.relay.origin import proxies
    from app.relay.server.serving import bind

    listener = None
    try:
        trusted = proxies(args.trusted_proxy)
    except ValueError as error:
        raise WrongUsage(str(error)) from error
    if args.metrics is not None:
        host, port = _place(args.metrics)
        try:
            listener = bind(host, port)
        except OSError as error:
            raise OperatorError(
                f"It cannot serve metrics at {args.metrics[:80]}: {error.strerror or error}; "
                "choose another place."
            ) from error
    return Rules(
        proxies=trusted,
        operators=operators(args),
        contact=args.contact[:200],
        checks=not args.no_checks,
        metrics=listener,
        sockets=args.connections,
        unlimited_here=args.no_limits_here,
        public=public,
    )


def write_relay_url(args: argparse.Namespace, rules: Rules, url: str) -> dict[str, str]:
    """Writes the relay's URL into its state folder, if it has one, for later commands. Returns extra fields
    for the first line of output. Raises OperatorError."""
    if args.state is not None:
        try:
            files.write(args.state / PLACE_FILE, json.dumps({"url": url}).encode(), private=True)
        except OSError as error:
            raise OperatorError(f"It cannot write in {args.state}: {error.strerror or error}.") from error
    if rules.metrics is None:
        return {}
    host, port = rules.metrics.getsockname()[:2]
    return {"metrics": f"http://[{host}]:{port}/metrics" if ":" in host else f"http://{host}:{port}/metrics"}


def send_command(args: argparse.Namespace) -> int:
    """Sends one command to a running relay and prints the answer. Raises OperatorError and WrongUsage."""
    reply = _give(args)
    if args.json:
        json_line(reply)
    else:
        print(_told(reply, args.order))
    return 0


def _give(args: argparse.Namespace) -> Reply:
    from app.relay.admin import operator
    from app.swarm.wire import frames, protocol
    from app.swarm.wire.limits import Refused

    seed = _seed(args)
    base = _base(args)
    try:
        info = frames.decode_info(_ask(base + protocol.INFO_PATH)[1])
    except Refused as error:
        raise OperatorError(f"There is no relay at {base}: check the address.") from error
    # by the relay's clock: an operator's own may be wrong
    content = operator.encode_order(seed, info.relay, _act(args), info.time_ms)
    status, answer = _ask(base + operator.PATH, content)
    try:
        reply = operator.reply_decoder.decode(answer)
    except ValueError as error:
        words = answer[:200].decode("utf-8", "replace").strip() or f"HTTP {status}"
        raise OperatorError(f"The relay at {base} does not take orders: {words}") from error
    if not reply.ok:
        raise OperatorError(reply.sentence)
    return reply


def _act(args: argparse.Namespace) -> Act:
    from app.relay.admin import operator

    if args.order in ("ban", "unban"):
        try:
            operator.parse_source(args.target)
        except operator.Rejected as error:
            raise WrongUsage(str(error)) from error
    match args.order:
        case "ban":
            return operator.BanOrder(
                target=args.target, for_s=args.period, reason=args.reason[:200], shadow=args.shadow
            )
        case "unban":
            return operator.Unban(target=args.target)
        case "bans":
            return operator.BansOrder()
        case _:
            return operator.StatusOrder()


def _seed(args: argparse.Namespace) -> bytes:
    file = args.key or (args.state / KEY_FILE if args.state is not None else None)
    if file is None:
        raise WrongUsage("Say whose order it is: --state DIR with the relay's folder, or --key FILE.")
    return read_key(file)


def _base(args: argparse.Namespace) -> str:
    """Returns the relay's HTTP address."""
    url = args.at
    if url is None:
        if args.state is None:
            raise WrongUsage("Say which relay is meant: --state DIR with its folder, or --at URL.")
        try:
            url = json.loads((args.state / PLACE_FILE).read_bytes())["url"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OperatorError(
                f"No relay has been started with --state {args.state}: start it, or name it with --at URL."
            ) from error
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    scheme = {"ws": "http", "wss": "https", "http": "http", "https": "https"}.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise WrongUsage(f"{url[:80]!r} is no address of a relay, such as https://relay.example.")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(parts.hostname, parts.hostname)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" + (f":{parts.port}" if parts.port else "")


def _ask(url: str, content: bytes | None = None) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json", "User-Agent": "shoal"}
    request = urllib.request.Request(url, data=content, headers=headers)
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=_WAIT_S) as answer:
            return answer.status, answer.read(_LARGEST)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_LARGEST)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise OperatorError(f"The relay at {url} does not answer ({reason}): is it running?") from error


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect handler that follows none: a command goes only to the address it was sent to."""

    def redirect_request(self, *_: object) -> None:
        return None


def _load_or_make_key(file: Path) -> bytes:
    """Returns the key in this file, creating it if missing, readable by its owner only."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            files.write(file, secrets.token_bytes(32).hex().encode() + b"\n", private=True)
    except OSError as error:
        raise OperatorError(f"It cannot write in {file.parent}: {error.strerror or error}.") from error
    return read_key(file)


def read_key(file: Path) -> bytes:
    """Reads a key of 64 hex digits from a file. Raises OperatorError."""
    try:
        text = file.read_text("ascii").strip()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise OperatorError(f"The key in {file} cannot be read: {reason}.") from error
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise OperatorError(f"{file} holds no key: 64 hex digits, as the relay has made it.")
    return bytes.fromhex(text)


def _told(reply: Reply, order: str) -> str:
    """Returns a relay's answer as text for people."""
    if reply.status is not None:
        return _status(reply.status)
    if order == "bans":
        rows = [
            f"{ban.target:<64}  {exact_duration(ban.until - time.time()):>8}  "
            f"{'shadow' if ban.shadow else 'shut out'}  "
            f"by {safe_line(ban.by)}: {safe_line(ban.reason) or 'no reason given'}"
            for ban in sorted(reply.bans, key=lambda ban: ban.until)
        ]
        return "\n".join(rows) or "No one is banned."
    return reply.sentence


def _status(doing: RelayStatus) -> str:
    def counts(found: dict[str, int]) -> str:
        return ", ".join(f"{name} {count}" for name, count in sorted(found.items())) or "none"

    lines = [
        f"{doing.relay} of the swarm {doing.swarm}, {doing.software}, up for {exact_duration(doing.uptime_s)}"
        + ("" if doing.ready else ", NOT READY: its backplane does not answer"),
        f"peers {doing.peers}, connections {doing.connections}",
        f"groups {doing.window}, ever stored {doing.stored}",
        f"answers: {counts(doing.answers)}",
        "checks: " + ("off" if doing.checks is None else counts(doing.checks)),
        f"ended by the relay: {counts(doing.ended)}",
        f"bans: {doing.bans}",
    ]
    if doing.publishers:
        lines.append("most in the window:")
    for one in doing.publishers:
        where = one.address or "not here"
        lines.append(
            f"  {one.key}  {one.name:<24} {one.groups:>5} groups  {one.honest:>5} honest"
            f"  error {one.error:.2f}  {where}"
        )
    return "\n".join(lines)


def _period(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,6})([smhdw])", text)
    if not found or not 0 < (seconds := int(found[1]) * _UNITS[found[2]]) <= 3650 * 86_400:
        raise argparse.ArgumentTypeError(
            "a time is a number with s, m, h, d or w, such as 24h, at most 10 years"
        )
    return seconds


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535:
        raise WrongUsage(f"{text[:80]!r} is no HOST:PORT, such as 127.0.0.1:9464.")
    return host.strip("[]"), int(port)
