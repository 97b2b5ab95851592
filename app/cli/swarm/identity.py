"""`./shoal identity`: who this computer is among other Shoals, and the words that bring it back elsewhere.

A secret is shown only after a yes. Recovery words come in by the terminal or standard input: what stands in a
command line can be read by every program here.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from app.common import remedy
from app.common.home import home
from app.common.process.secrets import PASSPHRASE
from app.node.data.format import check as check_format
from app.node.data.format import stamp as stamp_format
from app.node.data.home import folder, held
from app.node.record.errors import BusyError
from app.swarm.identity.identity import WORDS, Identity, IdentityError
from app.swarm.identity.storage import KeyLocation, StoredIdentity, Where, keep, key_location, read_identity

SUMMARY = "your name among other Shoals, and how to keep it"

DOES = {
    "words": "show the recovery words, which bring it back on any computer",
    "restore": "become the identity of recovery words, which are asked for or read from standard input",
    "export": "write the recovery words into a new file for your eyes only",
    "new": "take a new name",
}
_MOST = 4096
"""Characters of an answer that are read."""
_PAUSE_S = 0.1
_COLUMNS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, yes=False, json=False, home=None, wait=0.0)
    verbs = parser.add_subparsers(dest="do", metavar="WHAT")
    for name, does in DOES.items():
        verb = verbs.add_parser(name, help=does, description=f"{does[:1].upper()}{does[1:]}.")
        _add_options(verb)
        if name == "export":
            verb.add_argument("file", type=Path, metavar="FILE", help="a name that is not taken")


def _add_options(parser: argparse.ArgumentParser, **defaults: object) -> None:
    """They may stand before and behind the verb; the verb's own have no defaults, so that they undo nothing."""

    def add(name: str, **options: Any) -> None:
        parser.add_argument(f"--{name}", default=defaults.get(name, argparse.SUPPRESS), **options)

    add("yes", action="store_true", help="do not ask")
    add("json", action="store_true", help="name and place of the key as one JSON object")
    add("home", type=Path, metavar="DIR", help="the data folder (also: SHOAL_HOME)")
    add("wait", type=float, help=argparse.SUPPRESS)  # for a node that ends


def main(args: argparse.Namespace) -> int:
    """1 where the owner said no. Raises IdentityError and NodeError."""
    if misuse := _misuse(args):
        print(f"shoal identity: {misuse}", file=sys.stderr)
        return 2
    place = home(args.home)
    check_format(place)
    act: dict[str | None, Callable[[argparse.Namespace, Path], bool]] = {
        "words": _words,
        "restore": _restore,
        "export": _export,
        "new": _new,
    }
    if args.do and not act[args.do](args, place):
        print("shoal identity: Nothing was done.", file=sys.stderr)
        return 1
    if args.do not in ("words", "export"):
        _show(key_location(place), args.json)
    return 0


def _misuse(args: argparse.Namespace) -> str:
    if args.json and args.do in ("words", "export"):
        return f"--json tells no secret: leave it out, or leave out {args.do}."
    if args.do == "words" and not sys.stdout.isatty() and not args.yes:
        return "The recovery words would go into a file or another program: add --yes if you mean that."
    return ""


def told(kept: str, file: str = "") -> str:
    """Where a key is, for people.

    >>> told("keyring"), told("plain", "/home/ada/key")
    ("in the system's keyring", 'in /home/ada/key, which only you can read')
    """
    match kept:
        case Where.KEYRING:
            return "in the system's keyring"
        case Where.FILE:
            return f"in {file}, under your passphrase"
        case Where.PLAIN:
            return f"in {file}, which only you can read"
    return "nowhere yet"


def _show(found: KeyLocation, as_json: bool) -> None:
    if as_json:
        print(msgspec.json.encode(found).decode())
    elif not found.name:
        print(
            "You have no identity yet: Shoal makes one when it first learns with others, and "
            f"{remedy.command('identity new')} does so now."
        )
    else:
        print(found.name)
        print(f"  Key: {told(found.kept, found.file)}.")
        print(f"  To bring it back on any computer: {remedy.command('identity words')}")
        if found.kept == Where.PLAIN:
            print(f"  To encrypt it: set {PASSPHRASE} whenever Shoal starts.")


def _words(args: argparse.Namespace, place: Path) -> bool:
    identity = _opened(place)
    warning = f"Anyone who reads the recovery words of {identity.name} can be {identity.name}."
    if not _agreed(args, warning, "show them"):
        return False
    words = identity.words().split()
    if not sys.stdout.isatty():
        print(" ".join(words))
        return True
    rows = len(words) // _COLUMNS
    for row in range(rows):
        print("".join(f"{at + 1:>4} {words[at]:<10}" for at in range(row, len(words), rows)).rstrip())
    return True


def _export(args: argparse.Namespace, place: Path) -> bool:
    identity = _opened(place)
    warning = f"Anyone who reads {args.file} will be able to be {identity.name}."
    if not _agreed(args, warning, "write it"):
        return False
    try:
        descriptor = os.open(args.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise IdentityError(f"{args.file} is there already: choose another name.") from error
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(identity.words() + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        args.file.unlink(missing_ok=True)
        raise
    print(
        f"{args.file} holds the recovery words of {identity.name}. To bring it back: "
        f"{remedy.command('identity restore')} < {args.file}",
        file=sys.stderr,
    )
    return True


def _restore(args: argparse.Namespace, place: Path) -> bool:
    with _alone(args, place):
        return _replace(args, place, Identity.from_words(_entered()))


def _new(args: argparse.Namespace, place: Path) -> bool:
    with _alone(args, place):
        return _replace(args, place, Identity.new())


def _replace(args: argparse.Namespace, place: Path, identity: Identity) -> bool:
    """Makes it the folder's, after a yes where that has another one."""
    try:
        before = key_location(place)
    except IdentityError:  # it is damaged, and is kept aside
        before = KeyLocation()
    if before.name and before.public_key != identity.key.hex():
        warning = (
            f"You are {before.name} now. Other Shoals will not know {identity.name} as you, and trust has to "
            f"grow again. Only the recovery words of {before.name} bring it back: "
            f"{remedy.command('identity words')} shows them."
        )
        if not _agreed(args, warning, f"become {identity.name}"):
            return False
    stamp_format(place)
    kept = asyncio.run(keep(identity, place, passphrase=_passphrase(before, again=True)))
    _tell(kept)
    return True


def _opened(place: Path) -> Identity:
    """Raises IdentityError where there is none, or it cannot be had."""
    kept = asyncio.run(read_identity(place, passphrase=_passphrase(key_location(place))))
    _tell(kept)
    return kept.identity


def _tell(kept: StoredIdentity) -> None:
    if kept.note:
        print(kept.note, file=sys.stderr)


def _passphrase(found: KeyLocation, again: bool = False) -> str | None:
    """The passphrase of a key that has one, or that a new key gets (`again`: one that is typed is typed twice).
    Raises IdentityError."""
    if said := os.environ.get(PASSPHRASE):
        return said
    if found.kept != Where.FILE:
        return None
    if not sys.stdin.isatty():
        raise IdentityError(f"The key of {found.name} is under a passphrase: set {PASSPHRASE} to it.")
    said = getpass.getpass("Passphrase: ")
    if again and getpass.getpass("The same again: ") != said:
        raise IdentityError("These are two different passphrases: try again.")
    return said


def _entered() -> str:
    """Recovery words from the terminal, in one line or several, or from standard input. An empty line ends
    them."""
    if sys.stdin.isatty():
        print(f"The {WORDS} recovery words, in order: ", end="", file=sys.stderr, flush=True)
    said = ""
    while len(said.split()) < WORDS and len(said) < _MOST:
        line = sys.stdin.readline(_MOST)
        if not line.strip() and (said or not line):
            break
        said += line
    if not said.strip():
        raise IdentityError(f"No words came in: enter the {WORDS} recovery words.")
    return said


def _agreed(args: argparse.Namespace, warning: str, deed: str) -> bool:
    """Whether the owner says yes, in the terminal or by --yes. Raises IdentityError where no one can be
    asked."""
    if args.yes:
        return True
    if not sys.stdin.isatty():
        raise IdentityError(f"{warning} No one can answer here: add --yes if you mean it.")
    print(warning, file=sys.stderr)
    print(f"Type yes to {deed}: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline(_MOST).strip().casefold() == "yes"


@contextmanager
def _alone(args: argparse.Namespace, place: Path) -> Iterator[None]:
    """The data folder, held; a node that is ending is waited for as long as --wait says. Raises IdentityError
    while one runs."""
    deadline = time.monotonic() + args.wait
    while True:
        try:
            with held(folder(place)):
                yield
                return
        except BusyError as error:
            if time.monotonic() > deadline:
                raise IdentityError(
                    "Shoal is running under this identity: quit it and try again. Nothing was changed."
                ) from error
            time.sleep(_PAUSE_S)
