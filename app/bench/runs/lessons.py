"""Measures what attackers could teach through peer lessons, with and without the defences.

    ./shoal bench lessons [--archive FILE]

One row for each kind of `app.lab.false_teachers`: the share of rewritten answers among those that would be
taught, and how many honest ones. Without `--archive` the honest answers are worked lines like those the starter
was taught (`app.lab.starter`). No model takes part."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from app.bench import BenchError, Tell
from app.lab.false_teachers import KINDS, by_author, compare_defences, count_taught, deliver, make_honest_groups
from app.lab.starter.corpus import WORK
from app.sapo.questions import generate
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake import archive
from app.swarm.intake.archive import ArchiveError

SUMMARY = "what keys that lie in right answers would teach by a peer lesson, with the defences and without"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--archive", type=Path, metavar="FILE", help="honest groups, from “shoal archive export”"
    )
    parser.add_argument("--honest", type=int, default=3, help="honest keys (%(default)s)")
    parser.add_argument("--foes", type=int, default=3, help="attackers' keys (%(default)s)")
    parser.add_argument("--each", type=int, default=16, help="groups of a key and family (%(default)s)")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    if args.archive is None:
        authors = [
            make_honest_groups(number, dict.fromkeys(WORK, 1), args.each)
            for number in range(args.honest + args.foes)
        ]
    else:
        try:
            authors = by_author(archive.read(args.archive).lines, args.each)
        except (ArchiveError, OSError) as error:
            raise BenchError(str(error)) from error
    if len(authors) < args.honest + args.foes or not args.honest:
        raise BenchError(f"There are {len(authors)} authors: ask for as many with --honest and --foes.")
    honest, foes = authors[: args.honest], authors[args.honest : args.honest + args.foes]
    rows: dict[str, Any] = {}
    with Sandbox() as sandbox:
        waiting = deliver(honest, sandbox)
        plain = {(generate(one.at).text, text) for some in honest for one in some for text in one.right}
        rows["nobody"] = {
            name: msgspec.to_builtins(count_taught(waiting, plain, name == "on")) for name in ("off", "on")
        }
        for kind in KINDS:
            rows[kind] = msgspec.to_builtins(compare_defences(kind, honest, foes, sandbox, waiting))
            tell(f"{kind}: {rows[kind]}")
    return {"honest": args.honest, "foes": args.foes, "kinds": rows}


def table(figures: Mapping[str, Any]) -> list[str]:
    """Formats the figures for people, as a Markdown table."""
    beside = f"{figures['foes']} keys beside {figures['honest']} honest ones write"
    rows = [
        f"| {beside} | marked, off | marked | honest, off | honest | families |",
        "|---|---|---|---|---|---|",
    ]
    for kind, each in figures["kinds"].items():
        off, on = each["off"], each["on"]
        shares = [f"{100 * one['marked'] / max(1, one['marked'] + one['honest']):.0f} %" for one in (off, on)]
        rows.append(
            f"| {kind} | {shares[0]} | {shares[1]} | {off['honest']} | {on['honest']} | {on['families']} |"
        )
    return rows
