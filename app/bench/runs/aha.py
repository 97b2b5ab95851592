"""How often "a peer showed it" is claimed, and how often it is of the same records with peers' rounds permuted,
where every claim is false. Over homes of nodes that learned in a swarm (`./shoal swarm --home DIR`).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random
from typing import Any

from app.bench import BenchError, Tell
from app.node.history.aha import ahas, permuted
from app.node.history.history import FILE, read

SUMMARY = "claims of what a peer showed, against the same records with peers' rounds permuted"
SHUFFLES = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("homes", nargs="+", type=Path, metavar="DIR", help="homes, or a folder with some")
    parser.add_argument("--shuffles", type=int, default=SHUFFLES, metavar="N", help=f"({SHUFFLES})")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    """Raises BenchError where no node's rounds lie."""
    records = [
        read(file.parent).rounds for home in args.homes for file in sorted(home.glob(f"**/models/*/{FILE}"))
    ]
    if not any(records):
        raise BenchError("No node has learned there. Give a folder of `./shoal swarm --home DIR`.")
    claims = false = with_false = 0
    for number, rounds in enumerate(records):
        claims += len(ahas(rounds))
        for shuffle in range(args.shuffles):
            found = len(ahas(permuted(rounds, Random(f"{number}/{shuffle}"))))
            false, with_false = false + found, with_false + bool(found)
    shuffled = len(records) * args.shuffles
    return {
        "nodes": len(records),
        "rounds": sum(map(len, records)),
        "shown": sum(len(one.shown) for rounds in records for one in rounds),
        "claims": claims,
        "shuffles": shuffled,
        "false_claims": false,
        "false_per_run": false / args.shuffles,
        "shuffles_with_one": with_false / shuffled,
    }


def table(figures: dict[str, Any]) -> list[str]:
    return [
        "{nodes} nodes, {rounds} rounds, {shown} groups of peers learned from".format(**figures),
        "{claims} claims; with peers' rounds permuted {false_per_run:.3f} in the mean of "
        "{shuffles} records".format(**figures),
        "a permuted record has a claim in {:.2f} % (at most 5 by construction)".format(
            100 * figures["shuffles_with_one"]
        ),
    ]
