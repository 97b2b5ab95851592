"""`./shoal identity`: this computer's identity among other Shoals, and the recovery words that restore it
elsewhere.

A secret is shown only after confirmation. Recovery words are read from the terminal or standard input,
because any program here can read a command line."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from app.cli._frame import share
from app.cli._terminal import WrongUsage, confirm
from app.common.home import home
from app.node.data.home import check_format, lock_data_folder, prepare_data_folder, stamp_format
from app.swarm.identity.identity import WORDS, Identity, IdentityError
from app.swarm.identity.storage import (
    KeyStore,
    PublicIdentity,
    StoredIdentity,
    keep,
    public_identity,
    read_identity,
    unseal,
)
from engines import remedy

SUMMARY = "your name among other Shoals, and how to keep it"

DOES = {
    "show": "show the recovery words, which bring it back on any computer",
    "restore": "become the identity of recovery words, which are asked for or read from standard input",
    "new": "take a new name",
}
_MAX = 4096
"""Maximum characters read of an answer."""
_COLUMNS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    share(parser, "yes", "json", "home", "wait")
    verbs = parser.add_subparsers(dest="do", metavar="WHAT")
    for name, does in DOES.items():
        verb = verbs.add_parser(name, help=does, description=f"{does[:1].upper()}{does[1:]}.")
        share(verb, "yes", "json", "home", "wait", again=True)


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 if the user declined. Raises IdentityError, NodeError and UnansweredError."""
    if misuse := _misuse(args):
        raise WrongUsage(misuse)
    place = home(args.home)
    check_format(place)
    act: dict[str | None, Callable[[argparse.Namespace, Path], bool]] = {
        "show": _words,
        "restore": _restore,
        "new": _new,
    }
    if args.do and not act[args.do](args, place):
        print("shoal identity: Nothing was done.", file=sys.stderr)
        return 1
    if args.do != "show":
        _show(public_identity(place), args.json)
    return 0


def _misuse(args: argparse.Namespace) -> str:
    if args.json and args.do == "show":
        return f"--json tells no secret: leave it out, or leave out {args.do}."
    if args.do == "show" and not sys.stdout.isatty() and not args.yes:
        return "The recovery words would go into a file or another program: add --yes if you mean that."
    return ""


def key_location(kept: str, file: str = "") -> str:
    """Returns, for people, where a key is stored.

    >>> key_location("keyring"), key_location("plain", "/home/ada/key")
    ("in the system's keyring", 'in /home/ada/key, which only you can read')
    """
    match kept:
        case KeyStore.KEYRING:
            return "in the system's keyring"
        case KeyStore.SEALED:
            return f"in {file}, under a passphrase that Shoal no longer uses"
        case KeyStore.PLAIN:
            return f"in {file}, which only you can read"
    return "nowhere yet"


def _show(found: PublicIdentity, as_json: bool) -> None:
    if as_json:
        print(msgspec.json.encode(found).decode())
    elif not found.name:
        print(
            "You have no identity yet: Shoal makes one when it first learns with others, and "
            f"{remedy.command('identity new')} does so now."
        )
    else:
        print(found.name)
        print(f"  Key: {key_location(found.kept, found.file)}.")
        print(f"  To bring it back on any computer: {remedy.command('identity show')}")


def _words(args: argparse.Namespace, place: Path) -> bool:
    identity = _opened(place)
    warning = f"Anyone who reads the recovery words of {identity.name} can be {identity.name}."
    if not confirm(f"{warning} Show them?", args.yes):
        return False
    words = identity.words().split()
    if not sys.stdout.isatty():
        print(" ".join(words))
        return True
    rows = len(words) // _COLUMNS
    for row in range(rows):
        print("".join(f"{at + 1:>4} {words[at]:<10}" for at in range(row, len(words), rows)).rstrip())
    return True


def _restore(args: argparse.Namespace, place: Path) -> bool:
    with lock_data_folder(prepare_data_folder(place), args.wait):
        return _replace(args, place, _entered(place))


def _new(args: argparse.Namespace, place: Path) -> bool:
    with lock_data_folder(prepare_data_folder(place), args.wait):
        return _replace(args, place, Identity.new())


def _replace(args: argparse.Namespace, place: Path, identity: Identity) -> bool:
    """Makes `identity` the folder's key, asking first if the folder already has another one."""
    try:
        before = public_identity(place)
    except IdentityError:  # it is damaged, and is kept aside
        before = PublicIdentity()
    if before.name and before.public_key != identity.key.hex():
        warning = (
            f"You are {before.name} now. Other Shoals will not know {identity.name} as you, and trust has to "
            f"grow again. Only the recovery words of {before.name} bring it back: "
            f"{remedy.command('identity show')} shows them."
        )
        if not confirm(f"{warning} Become {identity.name}?", args.yes):
            return False
    stamp_format(place)
    kept = asyncio.run(keep(identity, place))
    _tell(kept)
    return True


def _opened(place: Path) -> Identity:
    """Loads the folder's identity. Raises IdentityError if there is no key, or it cannot be read now."""
    kept = asyncio.run(read_identity(place))
    _tell(kept)
    return kept.identity


def _tell(kept: StoredIdentity) -> None:
    if kept.note:
        print(kept.note, file=sys.stderr)


def _entered(place: Path) -> Identity:
    """Reads recovery words, from the terminal in one or several lines until an empty line, or from standard
    input, and returns their identity. The passphrase of a key that an earlier version sealed does as well.
    Raises IdentityError."""
    if sys.stdin.isatty():
        print(f"The {WORDS} recovery words, in order: ", end="", file=sys.stderr, flush=True)
    said = ""
    while len(said.split()) < WORDS and len(said) < _MAX:
        line = sys.stdin.readline(_MAX)
        if not line.strip() and (said or not line):
            break
        said += line
    if not said.strip():
        raise IdentityError(f"No words came in: enter the {WORDS} recovery words.")
    sealed = False
    with suppress(IdentityError):  # words bring a damaged record back
        sealed = public_identity(place).kept == KeyStore.SEALED
    if sealed and len(said.split()) != WORDS:
        return unseal(place, said.rstrip("\r\n"))
    return Identity.from_words(said)
