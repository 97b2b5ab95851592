"""`./shoal result`: exports what the model learned as a signed file and a page, and verifies such files."""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli._frame import share, tell
from app.cli._terminal import TerminalLine, say
from engines import opening

if TYPE_CHECKING:
    from app.node.models.result import Result, ResultComparison, VerifiedResult

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
        description="Says who signed a result and what it says. --again plays it again, with the same seed and "
        "in a temporary data folder, and compares the measurements.",
    )
    verify.add_argument("file", type=Path, metavar="FILE")
    verify.add_argument(
        "--again", action="store_true", help="play it again and compare; takes as long as it took"
    )
    verify.add_argument(
        "--engine", choices=opening.ENGINE_CHOICES, help="play it with this one (the result's own)"
    )
    share(verify, "home", again=True, json="one JSON object a line", model=_MODEL)


def main(args: argparse.Namespace) -> int:
    """Runs the command; 1 if replaying a run gave another result. Raises NodeError and EngineError."""
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
    return _again(args, found) if args.again else 0


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

    one = found.result
    who = f"{found.name}, that is this node," if found.key == own else found.name
    lines = [
        f"The signature fits: {who} wrote this on {safe_line(one.day, 20)}, and it wasn't changed since.",
        f"  {'Key':<20}{found.key}",
        f"  {'Result':<20}{summary(one)}",
    ]
    lines += [f"  {what:<20}{value}" for what, value in _facts(one)]
    return [*lines, "A signature says who wrote it, not that it is true: --again plays it again."]


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


def _again(args: argparse.Namespace, found: VerifiedResult) -> int:
    from app.common.home import home
    from app.models.shelf import locate
    from app.node.models import result, result_making, trained

    then, data = found.result, home(args.home)
    if why := result.why_not_repeatable(then):
        raise result.ResultError(f"{why} Its signature fits all the same.")
    if then.base.name == result.LOCAL and not args.model:
        raise result.ResultError(
            "The result doesn't say where its base model is: name its folder with --model."
        )
    model = locate(args.model or then.base.name, data)
    if result_making.weights_digest(model) != then.base.sha256:
        raise result.ResultError(
            f"{model.name} has other weights here than in the result, so playing it again would say nothing: "
            "name the folder of the right ones with --model."
        )
    line = TerminalLine()
    line.say("Playing it again, in a data folder that is deleted afterwards. Ctrl-C stops.")
    with tempfile.TemporaryDirectory(prefix="shoal-again-") as place:
        new = Path(place) / "data"
        for one in then.played:
            words = result.options_to_repeat(
                one, args.model or then.base.name if model.name == "starter" else str(model), one.seed or 1
            )
            if args.engine:
                words[words.index("--engine") + 1] = args.engine
            _play(words, new, then, line)
        now = result_making.make_result(trained.newest(new, model, Path(place) / "safe"), model)
        compared = result.compare(then, now)
    figures = {name: getattr(compared, name) for name in ("agrees", "equal", "points", "apart", "allowed")}
    tell(args, "\n".join(_verdict(compared, then, now)), event="again", **figures)
    return 0 if compared.agrees else 1


def _play(words: list[str], new: Path, then: Result, line: TerminalLine) -> None:
    """Plays one stretch of rounds in a separate process. Raises ResultError if it fails."""
    from app.common.process.surroundings import child_environment, working_folder
    from app.common.text import rounded_duration
    from app.node.models.result import ResultError

    command = [sys.executable, "-m", "app.cli", "run", *words, "--json", "--home", str(new)]
    began, before = time.monotonic(), None
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=child_environment(),
            cwd=working_folder(),
        )
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                event: dict[str, Any] = json.loads(raw)
                if event.get("event") != "round":
                    continue
                at = int(event["round"])
                before = at - 1 if before is None else before
                left = (time.monotonic() - began) / (at - before) * (then.rounds - at)
                line.progress(
                    f"Round {at} of {then.rounds}, about {rounded_duration(left)} left", step=at // 10
                )
            code = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if code:
            said.seek(0)
            last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            why = last[0].removeprefix("shoal run: ") if last else f"exit code {code}"
            raise ResultError(f"It couldn't be played again: {why}")
    line.say()


def _verdict(compared: ResultComparison, then: Result, now: Result) -> list[str]:
    """Returns lines for people: the outcome of a comparison, and possible reasons for a difference."""
    many = len(compared.points)
    if compared.equal == many:
        return [f"It came out equal: all {many} measurements are the same to the last digit."]
    apart, allowed = 100 * compared.apart, 100 * compared.allowed
    last = compared.points[-1]
    figures = (
        f"{100 * last[2]:.1f} % after round {last[0]}, and the result has {100 * last[1]:.1f} %: {apart:+.1f} "
        f"points, where up to {allowed:.1f} can be the choice of puzzles alone. {compared.equal} of {many} "
        "measurements are equal."
    )
    one, other = then.played[-1], now.played[-1]
    ours, theirs = ((part.engine, part.sampler, part.dtype, part.threads) for part in (other, one))
    if one.seed is None:
        why = "It had no seed, so this was another run, with seed 1: training has luck of its own."
    elif ours != theirs:
        described = [
            "{}{} in {} on {} threads".format(a, f" with {b}" if b else "", c, d)
            for a, b, c, d in (ours, theirs)
        ]
        why = (
            f"Here it was {described[0]}, there {described[1]}. They round otherwise, and one other token "
            "changes what follows."
        )
    else:
        why = "Another processor rounds otherwise, and one other token changes what follows."
    head = "It came out again, within the intervals: " if compared.agrees else "It did not come out again: "
    return [head + figures, why]
