"""`./shoal update`: checks for a new version of the app, downloads it, and starts the system's own installer
with it.

The window runs it as a process of its own with --json, and shows its output.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.cli._terminal import JobLines, UnansweredError, confirm, json_line, report_failure, stop_quietly
from app.common.home import home
from app.common.job import Reporter
from app.common.text import in_bytes
from app.install import InstallError
from app.install.updates import asking, feed, handing, installed
from app.install.updates.asking import UpdateOffer
from app.install.updates.feed import Feed, ReleaseFile, Trust, trust
from engines import remedy

SUMMARY = "look for a new version and install it"

Tell = Callable[[object], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="only look whether there is one")
    parser.add_argument("--fetch", action="store_true", help="check and download, but install nothing")
    parser.add_argument(
        "--install", action="store_true", help="install what was downloaded before, without a network"
    )
    parser.add_argument("--yes", action="store_true", help="install without asking")
    parser.add_argument("--home", type=Path, metavar="DIR", help="the data folder (also: SHOAL_HOME)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line on standard output")
    parser.add_argument(
        "--feed", metavar="URL|FILE", help="the list of new versions (default: this version's own)"
    )
    parser.add_argument("--key", metavar="HEX", help="believe this public key, for releases made by oneself")
    parser.add_argument(
        "--program", type=Path, metavar="FILE", help="update this one-file Shoal instead of the one that runs"
    )
    parser.add_argument("--reopen", action="store_true", help=argparse.SUPPRESS)  # the window asks for it
    parser.add_argument("--attached", action="store_true", help=argparse.SUPPRESS)  # ends with its input


def main(args: argparse.Namespace) -> int:
    """Returns 0 when done or if nothing is newer, 1 after printing an error."""
    tell: Tell = json_line if args.json else _UpdateLines().show
    if args.attached:
        stop_quietly("update", attached=True)
    with report_failure(args.json, InstallError, UnansweredError):
        return _update(args, home(args.home), tell)


def _update(args: argparse.Namespace, folder: Path, tell: Tell) -> int:
    believe, form = _trust(args), _form(args.program)
    if args.install:
        found = asking.valid_stored_feed(folder, believe.keys, feed.now_utc())
        if found is None:
            raise InstallError(
                f"Nothing downloaded is still valid: run {remedy.command('update')}, which checks again."
            )
        offer = asking.offer(found, form, installed.version())
    else:
        offer = asking.ask(folder, believe, form).offer
        found = asking.valid_stored_feed(folder, believe.keys, feed.now_utc())
    tell(_checked(offer))
    if offer is None or found is None:
        handing.clear_fetched(folder)
        return 0
    if args.check:
        return 0
    file = asking.file_for(found, form)
    if offer.obstacle or file is None:
        raise InstallError(offer.obstacle)
    with asking.one_at_a_time(folder):
        return _obtain(args, folder, believe, found, file, tell)


def _obtain(
    args: argparse.Namespace, folder: Path, believe: Trust, found: Feed, file: ReleaseFile, tell: Tell
) -> int:
    if args.install:
        path = handing.fetched_file(folder, file)
        if path is None:
            raise InstallError(
                f"{file.file} wasn't downloaded yet, or is damaged: run {remedy.command('update')}."
            )
    else:
        report = Reporter(tell)
        path = handing.fetch_update(
            folder,
            found,
            file,
            believe.feeds[0],
            lambda have: report.progress(have, file.size),
            report.waiting,
        )
        tell({"event": "ready", "version": found.version, "file": str(path)})
    if args.fetch:
        return 0
    question = f"Version {found.version} lies in {path}. Install it now?"
    if not args.install and not confirm(question, args.yes):
        print("shoal update: Nothing was installed.", file=sys.stderr)
        return 1
    program = args.program or Path(installed.program()[-1])
    say = lambda sentence: tell({"event": "installing", "sentence": sentence})  # noqa: E731
    system = handing.SystemInstaller()
    if args.reopen:
        system = handing.SystemInstaller(reopen=str(program), home=str(args.home or ""))
    handed = handing.hand_over_update(path, file, program, say, system)
    tell({"event": "handed", "version": found.version, **msgspec.to_builtins(handed)})
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


def _form(program: Path | None) -> str:
    if program is None:
        return installed.form()
    if not program.is_file():
        raise InstallError(f"{program} is not there: name the file of the Shoal that is to be updated.")
    return "elf"


def _checked(offer: UpdateOffer | None) -> dict[str, object]:
    return {"event": "checked", "version": installed.version(), "offer": msgspec.to_builtins(offer)}


class _UpdateLines(JobLines):
    """Prints an update for people."""

    def show(self, event: object) -> None:
        match event:
            case {"event": "checked", "version": version, "offer": None}:
                self.say(f"Shoal {version} is the newest there is.")
            case {"event": "checked", "version": version, "offer": dict(offer)}:
                size = f", {in_bytes(offer['size'])}" if offer["size"] else ""
                self.say(f"Shoal {offer['version']} of {offer['date']} is there{size}; this is {version}.")
                self.say(*(f"  {line}" for line in asking.notes_in(offer["notes"], [])))
                self.say(*[offer["obstacle"]] * bool(offer["obstacle"]))
            case {"event": "ready", "file": file}:
                self.say(f"Downloaded and checked: {file}")
            case {"sentence": sentence}:
                self.say(str(sentence))
            case _:
                super().show(event)
