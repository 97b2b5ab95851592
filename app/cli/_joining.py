"""Options of `./shoal relay` about who may join and how they find it: options, words, invites, announcing."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import ipaddress
import os
import re
import sys
import time
import urllib.parse
from pathlib import Path

import msgspec

from app.cli import _operator
from app.common.process.surroundings import PRIVATE_WORDS, read_stdin_line
from app.common.text import bounded_integer
from app.relay.access import (
    MAX_WORK_BITS,
    WORK_BITS,
    Access,
    AccessSetupError,
    AllowListAccess,
    InviteAccess,
    OpenAccess,
    PrivateSwarmAccess,
)
from app.swarm.invite.invite import Invite, invite_from_text
from app.swarm.invite.private import PrivateSwarm, new_words, private_swarm_from_text
from engines import remedy

SWARM = "shoal"
ANYWHERE = "0.0.0.0"
_MODES = ("open", "pow", "invite", "allowlist", "private")


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """Which swarm a relay serves, and who may join it."""

    access: Access
    pow_bits: int
    swarm: str
    public: Invite | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--access", choices=_MODES, default="open", help="who may join (default open)")
    parser.add_argument(
        "--private", dest="access", action="store_const", const="private",
        help=f"only who knows six words; they are asked for, or read from {PRIVATE_WORDS} or standard input",
    )  # fmt: skip
    parser.add_argument(
        "--pow-bits",
        type=bounded_integer(0, MAX_WORK_BITS, f"work has 0 to {MAX_WORK_BITS} bits"),
        metavar="N",
        help=f"ask for work of 2^N hashes a day ({WORK_BITS} with pow)",
    )
    parser.add_argument("--invite-key", metavar="KEY", help="one more public key that may sign invites")
    parser.add_argument("--allow", type=Path, metavar="FILE", help="keys that may join, one a line")
    parser.add_argument("--lan", action="store_true", help="listen to the local network and announce it there")
    parser.add_argument("--public", metavar="URL", help="the address for invites, where it is another one")
    parser.add_argument("--until-stdin-closes", action="store_true", help=argparse.SUPPRESS)


def read_joining(args: argparse.Namespace) -> Joining:
    """Reads the options into a Joining. Raises AccessSetupError, PrivateError or InviteError for options that
    contradict each other or name missing things."""
    mode = args.access
    for option, value, needed in (
        ("--invite-key", args.invite_key, "invite"),
        ("--allow", args.allow, "allowlist"),
    ):
        if value is not None and mode != needed:
            raise AccessSetupError(f"{option} says who may join only with --access {needed}: add that.")
    if args.allow is None and mode == "allowlist":
        raise AccessSetupError("--access allowlist needs --allow FILE with the keys that may join: add it.")
    bits = args.pow_bits if args.pow_bits is not None else WORK_BITS * (mode == "pow")
    swarm = args.swarm or SWARM
    access: Access = OpenAccess("pow" if bits else "open")
    if mode == "invite":
        access = InviteAccess(_who_invites(args))
    elif mode == "allowlist":
        access = AllowListAccess(args.allow)
    elif mode == "private":
        private = ask_private()
        if args.swarm not in (None, private.swarm):
            raise AccessSetupError("A private swarm's id follows from its words: leave out --swarm.")
        access, swarm = PrivateSwarmAccess(private), private.swarm
    public = None if args.public is None else invite_from_text(args.public)
    return Joining(access=access, pow_bits=bits, swarm=swarm, public=public)


def _who_invites(args: argparse.Namespace) -> frozenset[bytes]:
    """Public keys of the operators and of those they let invite. Raises AccessSetupError, OperatorError."""
    keys = _operator.operators(args)
    if args.invite_key is not None:
        keys |= {public_key(args.invite_key)}
    if not keys:
        raise AccessSetupError(
            "--access invite needs a key that signs invites: --state DIR makes one, --invite-key names yours."
        )
    return keys


def public_key(text: str) -> bytes:
    """Reads a public key given in hex, or as the file that `./shoal invite --new-key` wrote beside the secret
    one. Raises AccessSetupError."""
    if re.fullmatch(r"[0-9a-f]{64}", text):
        return bytes.fromhex(text)
    try:
        return _operator.read_key(Path(text))
    except _operator.OperatorError as error:
        raise AccessSetupError(
            "--invite-key takes 64 hex digits or the file that holds them: correct it."
        ) from error


def ask_private() -> PrivateSwarm:
    """Reads the words of a private swarm from the environment, the terminal or standard input; never from the
    command line, which other users can read. An empty entry at the terminal makes new words and prints them to
    standard error. Raises PrivateError for words that are wrong and AccessSetupError if none were given."""
    text = os.environ.get(PRIVATE_WORDS, "")
    if not text and sys.stdin is not None and sys.stdin.isatty():
        text = getpass.getpass("The private swarm's six words (Enter alone makes new ones): ")
        if not text.strip():
            text = new_words()
            print(f"The six words, for those who may join: {text}", file=sys.stderr)
    elif not text and sys.stdin is not None:
        text = read_stdin_line()
    if not text.strip():
        raise AccessSetupError(
            f"The six words are missing: put them into {PRIVATE_WORDS} or on standard input; "
            f"{remedy.command('invite --new-words')} makes some."
        )
    return private_swarm_from_text(text)


def invite(url: str, swarm: str, relay: str, public: Invite | None) -> Invite:
    """Returns the invite to a relay that listens at `url`, with this computer's network address if it listens
    on all interfaces. It never contains a secret."""
    if public is not None:
        return Invite(url=public.url, swarm=swarm, relay=relay)
    parts = urllib.parse.urlsplit(url)
    if _is_wildcard(parts.hostname or ""):
        from app.swarm.invite.discovery import lan_address

        # IPv4, which six words can say; a relay at :: takes it too
        url = f"ws://{lan_address() or '127.0.0.1'}:{parts.port}{parts.path}"
    return Invite(url=invite_from_text(url).url, swarm=swarm, relay=relay)


def start_message(link: Invite, listening: str, mode: str, announced: bool) -> str:
    """Returns the message for the person who started the relay: what is open, to whom, and how to stop it."""
    host = urllib.parse.urlsplit(listening).hostname or ""
    port = urllib.parse.urlsplit(listening).port
    who = {
        "invite": f"; each also needs a token ({remedy.command('invite')})",
        "allowlist": "; their keys must be on your list",
        "private": "; each also enters the six words",
    }.get(mode, "")
    words = link.words() if mode != "private" and not _is_loopback(host) else None
    lines = [f"Others join with this invite{who}:", link.link()]
    if words is not None:
        first = f"Others join on the page Swarm with these six words{who}:"
        lines = [first, words, "Or with this invite:", link.link()]
    if not _is_loopback(host):
        heard = " and announces itself on the local network" if announced else ""
        lines.append(
            f"It listens to every network of this computer on port {port}{heard}, without encryption; "
            "Ctrl-C closes it."
            if _is_wildcard(host)
            else f"It listens at {host} port {port}{heard}, without encryption; Ctrl-C closes it."
        )
    return "\n".join(lines)


def is_local(link: Invite) -> bool:
    """True if the invite leads to this computer itself."""
    return _is_loopback(urllib.parse.urlsplit(link.url).hostname or "")


async def announce(link: Invite, private: bool) -> None:
    """Announces the relay on the local network until cancelled. If that is impossible, says so and returns."""
    from app.swarm.invite.discovery import Advert, DiscoveryError, advertise

    parts = urllib.parse.urlsplit(link.url)
    advert = Advert(
        swarm=link.swarm or SWARM,
        relay=link.relay or "",
        port=parts.port or 80,
        since_ms=int(time.time() * 1000),
        private=private,
    )
    try:
        async with advertise(advert, [parts.hostname or ""]):
            await asyncio.Event().wait()
    except DiscoveryError as error:
        print(f"shoal relay: {error}", file=sys.stderr)


def _is_wildcard(host: str) -> bool:
    address = _address(host)
    return host == "" or (address is not None and address.is_unspecified)


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
