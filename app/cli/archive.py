"""`./shoal archive`: exports and imports answers as a file, for a computer that reaches no relay."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from pathlib import Path

from app.cli._frame import share, tell
from app.common.home import home
from app.common.text import safe_line
from engines import remedy

SUMMARY = "pass on what models found out as a file, and learn from such a file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    share(parser, "home", "json")
    verbs = parser.add_subparsers(dest="do", metavar="WHAT")
    out = verbs.add_parser("export", help="write this model's answers, and those its own relay has, to a file")
    out.add_argument("file", type=Path, metavar="FILE")
    out.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="what the relay with this --state folder has: a day of groups",
    )
    bring = verbs.add_parser("import", help="check such a file, and let this computer's model learn from it")
    bring.add_argument("file", type=Path, metavar="FILE")
    for verb in (out, bring, verbs.add_parser("forget", help="delete what was imported")):
        share(verb, "home", "json", again=True)


def main(args: argparse.Namespace) -> int:
    """Raises ArchiveError, IdentityError, and OSError for a file that cannot be read or written."""
    from app.node.data.home import prepare_data_folder

    place = prepare_data_folder(args.home) if args.do else home(args.home)
    if args.do == "export":
        figures, sentence = _export(args.file, args.state, place)
    elif args.do == "import":
        figures, sentence = _import(args.file, place)
    else:
        figures, sentence = _show(place) if args.do is None else _forget(place)
    tell(args, sentence, **figures)
    return 0


def _export(file: Path, state: Path | None, place: Path) -> tuple[dict[str, object], str]:
    from app.node.history import history
    from app.node.swarm.imported import own_groups
    from app.swarm.identity.storage import open_identity
    from app.swarm.intake import archive
    from app.swarm.wire.limits import RELAY_FILE

    lines: list[archive.ArchivedGroup] = []
    if state is not None:
        lines += archive.read_relay_archive(state)
    elif (newest := history.newest(place)) is not None:
        kept = asyncio.run(open_identity(place))
        lines += own_groups(newest, history.model_of(newest), kept.identity)
    for relay in sorted(place.glob("relay/*")) if state is None else ():
        if (relay / RELAY_FILE).exists():
            lines += archive.read_relay_archive(relay)
    if not lines:
        raise archive.ArchiveError(
            "There are no answers here yet: let a model learn for a few rounds first, or name a relay's folder "
            "with --state."
        )
    lines = archive.select_within_limits(lines)
    written = archive.write(file, lines)
    authors = len({line.group.pk for line in lines})
    return (
        {"file": str(file), "groups": written, "authors": authors},
        f"{_groups(written)} of {_authors(authors)} in {safe_line(str(file))}. Another Shoal learns from it: "
        f"{remedy.command('archive import FILE')}.",
    )


def _import(file: Path, place: Path) -> tuple[dict[str, object], str]:
    from app.node.swarm.imported import own_keys
    from app.sapo.groups import GroupRecord
    from app.sapo.scoring.sandbox import Sandbox
    from app.swarm.intake import archive
    from app.swarm.intake.reasons import IntakeReason

    found = archive.read(file)
    passed: list[archive.ArchivedGroup] = []
    families: set[str] = set()
    turned: Counter[IntakeReason] = Counter()
    sandbox = Sandbox()
    try:
        for line, verdict in archive.check_groups(
            found.lines, sandbox, own_keys(place), time.time_ns() // 1_000_000
        ):
            if isinstance(verdict, GroupRecord):
                passed.append(line)
                families.add(verdict.coordinates.family)
            else:
                turned[verdict] += 1
    finally:
        sandbox.close()
    refused = {str(reason): number for reason, number in sorted(turned.items())}
    why = [f"{number} refused: {reason.sentence}" for reason, number in sorted(turned.items())]
    if found.unreadable:
        refused["unreadable"] = found.unreadable
        why.append(f"{found.unreadable} lines can't be read.")
    if found.more:
        megabytes = archive.MAX_BYTES // 10**6
        why.append(f"It has more than {archive.MAX_GROUPS:,} lines or {megabytes} MB: the rest wasn't read.")
    if not passed:
        raise archive.ArchiveError(" ".join([f"Nothing in {safe_line(file.name)} can be used.", *why]))
    total = archive.keep(place, passed)
    authors = len({line.group.pk for line in passed})
    figures: dict[str, object] = {
        "groups": len(passed),
        "authors": authors,
        "families": sorted(families),
        "refused": refused,
        "kept": total,
    }
    told = (
        f"{_groups(len(passed))} of {_authors(authors)} on {len(families)} kinds of puzzles. Your model "
        "learns from them once it knows where it can begin: from results, and from work that it has checked. "
        "It never learns their words: importing a file trusts none of its authors. Nothing is sent."
    )
    return figures, " ".join([told, *why])


def _show(place: Path) -> tuple[dict[str, object], str]:
    from app.swarm.intake import archive

    if not (place / archive.FILE).exists():
        return {
            "groups": 0,
            "authors": 0,
        }, f"Nothing was imported. {remedy.command('archive import FILE')} does that."
    lines = archive.read(place / archive.FILE).lines
    by_author = Counter(line.group.pk for line in lines)
    return (
        {"groups": len(lines), "authors": len(by_author)},
        f"{_groups(len(lines))} of {_authors(len(by_author))} here; shoal archive forget deletes them.",
    )


def _forget(place: Path) -> tuple[dict[str, object], str]:
    from app.swarm.intake import archive

    (place / archive.FILE).unlink(missing_ok=True)
    return {
        "groups": 0,
        "authors": 0,
    }, "What was imported is deleted. What your model learned from it stays."


def _groups(number: int) -> str:
    return "1 puzzle with answers" if number == 1 else f"{number:,} puzzles with answers"


def _authors(number: int) -> str:
    return "1 model" if number == 1 else f"{number} models"
