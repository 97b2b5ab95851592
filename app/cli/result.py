"""`./shoal result`: exports what the model learned as a signed file and a page, and verifies such files."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli._frame import share, tell
from app.cli._terminal import say

if TYPE_CHECKING:
    from app.node.models.result import Result, VerifiedResult

SUMMARY = "a signed file of what your model learned"
FILE = Path("shoal-result.json")
_MODEL = "starter, the name of a model, or a folder (what learned last)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes a file signed with this node's key. Nothing private is in it: base model, settings, seeds, "
        "measurements, kind of computer, and the commands that repeat it. verify FILE checks such a file and "
        "says what is in it."
    )
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE", help=f"the result ({FILE})")
    parser.add_argument("--skill", metavar="NAME", help="what was learned from this table, not from puzzles")
    share(parser, "home", json="one JSON object a line")
    parser.add_argument("--model", help=_MODEL)
    verbs = parser.add_subparsers(dest="do", metavar="verify")
    verify = verbs.add_parser(
        "verify",
        help="who signed a result, and what it says",
        description="Says who signed a result, what it says, and the commands that repeat it.",
    )
    verify.add_argument("file", type=Path, metavar="FILE")
    share(verify, "home", again=True, json="one JSON object a line")


def main(args: argparse.Namespace) -> int:
    """Runs the command. Raises NodeError and EngineError."""
    return _verify(args) if args.do else _write(args)


def _write(args: argparse.Namespace) -> int:
    from app.common import files
    from app.common.home import home
    from app.models.shelf import locate
    from app.node.models import result, result_making, trained
    from app.node.models.skills import find_skill
    from app.swarm.identity.storage import open_identity

    data, to = home(args.home), args.out.expanduser().with_suffix(".json")
    _check_free(to)
    if args.skill:
        known = find_skill(data, args.skill, locate(args.model, data) if args.model else None)
        model, table = known.model, known.made
    else:
        model, table = locate(args.model or _latest(data), data), None
    with tempfile.TemporaryDirectory(prefix="shoal-result-") as place:
        mark = table.mark if table is not None else ""
        made = result_making.make_result(trained.newest(data, model, Path(place) / "safe", mark), model, table)
    signer = asyncio.run(open_identity(data))
    if signer.note:
        say(f"shoal result: {signer.note}", sys.stderr)
    content = result.sign(made, signer.identity)
    found = result.verify(content)
    try:
        files.write(to, content)
    except OSError as error:
        raise result.ResultError(files.unwritable_sentence(error, to.parent, "choose another --out")) from error
    figures = {"file": str(to), "name": found.name, "rounds": made.rounds, "pass_at_1": made.last.pass_at_1}
    tell(args, f"{found.name} signed it: {to}\n{summary(made)}", event="result", **figures)
    return 0


def _latest(data: Path) -> str:
    """Returns the model that learned last."""
    from app.node.history import history

    folder = history.newest(data)
    return (history.model_of(folder) if folder is not None else "") or "starter"


def _check_free(to: Path) -> None:
    """Checks that only an earlier result would be overwritten. Raises ResultError."""
    from app.node.models.result import ResultError, read

    try:
        if to.exists():
            read(to)
    except ResultError as error:
        raise ResultError(f"{to} is there already and no result of Shoal: choose another --out.") from error


def _verify(args: argparse.Namespace) -> int:
    from app.node.models.result import as_dict, read

    found = read(args.file)
    tell(args, "\n".join(_said(found, _own_key(args))), event="verified", **as_dict(found))
    return 0


def _own_key(args: argparse.Namespace) -> str:
    from app.common.home import home
    from app.swarm.identity.identity import IdentityError
    from app.swarm.identity.storage import public_identity

    try:
        return public_identity(home(args.home)).public_key
    except IdentityError:
        return ""


def _said(found: VerifiedResult, own: str) -> list[str]:
    from app.common.text import safe_line
    from app.node.models.result import commands_to_repeat, why_not_repeatable

    one = found.result
    who = f"{found.name}, that is this node," if found.key == own else found.name
    lines = [
        f"The signature fits: {who} wrote this on {safe_line(one.day, 20)}, and it wasn't changed since.",
        f"  {'Key':<20}{found.key}",
        f"  {'Result':<20}{summary(one)}",
    ]
    lines += [f"  {what:<20}{value}" for what, value in _facts(one)]
    lines.append("A signature says who wrote it, not that it is true.")
    if why := why_not_repeatable(one):
        return [*lines, why]
    return [*lines, "To repeat it, in a new data folder:", *(f"  {said}" for said in commands_to_repeat(one))]


def summary(one: Result) -> str:
    """Returns what was learned, in a sentence; of a skill with what one constant answer gets."""
    from app.common.text import safe_line

    now, was = round(100 * one.last.pass_at_1), round(100 * one.first.pass_at_1)
    if not one.skill:
        return f"Solves {now} of 100 new puzzles, {was} at round {one.first.round}."
    return (
        f"{safe_line(one.skill)}: right in {now} of 100 new rows, {was} at round {one.first.round}. "
        f"One constant answer gets {round(100 * one.constant)}."
    )


def _facts(one: Result) -> Iterator[tuple[str, str]]:
    """Yields pairs of a label and a line about how the result was made."""
    from app.common.text import rounded_duration, safe_line

    last, machine = one.played[-1], one.machine
    low, high = one.last.interval
    yield "Likely", f"{100 * low:.1f} to {100 * high:.1f} % (95 %, {one.last.questions} questions)"
    yield "Base model", f"{safe_line(one.base.name)}, SHA-256 {one.base.sha256}"
    yield "Seed", ", ".join("none" if seed is None else str(seed) for seed in one.seeds)
    control = "; rewards shuffled, as a control" if last.shuffled_rewards else ""
    counts = f"{last.groups} puzzles a round, {last.completions} answers each"
    yield "Recipe", f"{safe_line(last.recipe)}: {counts}, learning rate {last.learning_rate:g}{control}"
    yield "Rounds", f"{one.rounds} with {one.answers:,} answers, {rounded_duration(one.seconds)} of work"
    yield "From others", f"{one.from_peers} groups and right answers" if one.from_peers else "nothing"
    engine = (last.engine, last.sampler, last.device, last.dtype)
    yield "Engine", safe_line(", ".join(dict.fromkeys(filter(None, engine))))
    computer = f"{machine.system} {machine.processor}, {machine.cores} cores, {machine.memory_gb} GB of memory"
    yield "Computer", safe_line(computer)
    yield "Shoal", safe_line(f"{one.shoal}, puzzles {one.questions}, held-out set {one.questions_mark}")
    yield "What it learned", f"SHA-256 {one.adapter}"
