"""`./shoal update`: says whether a newer version of the installed app is there, and on which page to get it.

The window runs it as a process of its own with --json, and shows its output.
"""

from __future__ import annotations

import argparse

import msgspec

from app.cli._frame import share
from app.cli._terminal import json_line, report_failure, stop_quietly
from app.common.home import home
from app.install import InstallError
from app.install.updates import asking, installed
from app.install.updates.asking import UpdateOffer
from app.install.updates.feed import Trust, trust

SUMMARY = "say whether a newer version is there"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--feed", metavar="URL|FILE", help="the notice of new versions (default: this version's own)"
    )
    parser.add_argument("--key", metavar="HEX", help="believe this public key, for releases made by oneself")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # all it does by now
    share(parser, "home", "json", "attached")


def main(args: argparse.Namespace) -> int:
    """Returns 0 if the check succeeded, 1 after printing an error."""
    if args.attached:
        stop_quietly("update", attached=True)
    with report_failure(args.json, InstallError):
        offer = asking.ask(home(args.home), _trust(args)).offer
        if args.json:
            json_line({"event": "checked", "version": installed.version(), "offer": msgspec.to_builtins(offer)})
        else:
            print("\n".join(_lines(offer)))
    return 0


def _trust(args: argparse.Namespace) -> Trust:
    """The keys and addresses of releases. Raises InstallError, or Checkout if this copy has no releases."""
    if args.key is None:
        own = trust()
        return msgspec.structs.replace(own, feeds=(args.feed,)) if args.feed else own
    if not args.feed:
        raise InstallError("A key without a list says nothing: name the list with --feed.")
    try:
        return msgspec.convert({"keys": [args.key.lower()], "feeds": [args.feed]}, Trust)
    except msgspec.ValidationError:
        raise InstallError(f"{args.key[:80]!r} is no public key: it has 64 hexadecimal digits.") from None


def _lines(offer: UpdateOffer | None) -> list[str]:
    if offer is None:
        return [f"Shoal {installed.version()} is the newest there is."]
    said = f"Shoal {offer.version} of {offer.date} is there; this is {installed.version()}."
    page = f"Download it from {offer.page}, and install it over this one." if offer.page else ""
    return [said, *(f"  {line}" for line in asking.notes_in(offer.notes, [])), *filter(None, [page])]
