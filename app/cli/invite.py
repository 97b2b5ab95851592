"""`./shoal invite`: creates invites to a relay for its operator to give to others."""

from __future__ import annotations

import argparse
import os
import re
import secrets
import sys
import time
from pathlib import Path

import msgspec

from app.cli._operator import KEY_FILE, OperatorError, read_key
from app.cli._terminal import WrongUsage
from app.common import signing
from app.common.text import bounded_integer
from app.swarm.invite.invite import InviteError, invite_from_text
from app.swarm.invite.private import ANY_KEY, mint, new_words

SUMMARY = "invite others: a link, or the six words of a private swarm"
DAYS = 7


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", nargs="?", help="the relay's invite (it prints one) or its address")
    signs = parser.add_mutually_exclusive_group()
    signs.add_argument(
        "--state", type=Path, metavar="DIR", help="the relay's folder, where its operator's key is"
    )
    signs.add_argument("--key", type=Path, metavar="FILE", help="or the key that signs, from --new-key")
    parser.add_argument(
        "--days",
        type=bounded_integer(1, 9999, "an invite holds from 1 to 9999 days"),
        default=DAYS,
        help=f"how long the invite holds ({DAYS})",
    )
    parser.add_argument("--for", dest="who", type=_key, metavar="KEY", help="the one node key that may use it")
    parser.add_argument("--swarm", help="the swarm's id, where the address does not say it")
    parser.add_argument("--new-key", type=Path, metavar="FILE", help="make a key that signs: FILE and FILE.pub")
    parser.add_argument("--new-words", action="store_true", help="make six words for a private swarm")


def main(args: argparse.Namespace) -> int:
    """Prints an invite link, a public key or six words on standard output."""
    if sum((args.new_words, args.new_key is not None, args.address is not None)) != 1:
        raise WrongUsage("Name a relay's address, or one of --new-key and --new-words.")
    if args.new_words:
        print(new_words())
        return 0
    if args.new_key is not None:
        return _new_key(args.new_key)
    key = args.state / KEY_FILE if args.state is not None else args.key
    if key is None:
        raise WrongUsage("An invite is signed: name the relay's folder with --state, or a key with --key.")
    if key.suffix == ".pub":
        raise WrongUsage(f"{key} is the public half and no key that signs: name the file beside it.")
    try:
        relay = invite_from_text(args.address)
        swarm = args.swarm or relay.swarm
        if swarm is None:
            raise WrongUsage(
                "The address does not say which swarm it is of: give the relay's invite, or --swarm."
            )
        until = int(time.time()) + args.days * 86_400
        token = mint(read_key(key), swarm, until, args.who or ANY_KEY)
        print(msgspec.structs.replace(relay, swarm=swarm, token=token).link())
    except (InviteError, OperatorError) as error:
        raise WrongUsage(str(error)) from error
    return 0


def _new_key(path: Path) -> int:
    """Writes a new key; never overwrites an existing file."""
    seed = secrets.token_bytes(signing.SEED_BYTES)
    public = signing.public_key(seed).hex()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(seed.hex() + "\n")
    path.with_name(path.name + ".pub").write_text(public + "\n", "ascii")
    print(public)
    print(
        f"{path} signs invites: keep it to yourself. The relay needs --access invite --invite-key {public}.",
        file=sys.stderr,
    )
    return 0


def _key(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError("a node's key has 64 hex digits")
    return text
