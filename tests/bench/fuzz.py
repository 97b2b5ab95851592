"""Spoiled messages against everything that reads them: nothing but a refusal may come out.

Two parts of `--cases` each. The readers: a relay's of clients' messages, a client's of a relay's, of items, of
the info document. The intake of a node: envelopes whose signatures mostly hold, so that what is wrong lies in
the group. A case fails when anything is raised but a refusal, when code in a message has run, or when memory
has grown; the number of the case and the seed bring it back.
"""

from __future__ import annotations

import argparse
import builtins
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import psutil

from app.bench import Tell
from app.sapo.families import FAMILIES
from app.sapo.questions import QUESTIONS_VERSION
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake.intake import Intake
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire import frames, protocol
from app.swarm.wire.body import check_age, unseal
from app.swarm.wire.limits import Quotas, Refused, RelayLimits
from tests.bench.spoiling import NOW_MS, SWARM, Spoiler, from_client, from_relay

SUMMARY = "spoiled messages against all readers and a node's intake: only refusals may come out"
MAX_GROWTH_MB = 64.0
TAKEN = "taken"
_WARM = 10
"""Memory is compared from after one case in so many on."""
_REPORTED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=100_000, help="of each part (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another one, other cases (default: %(default)s)")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="shoal-fuzz-") as folder:
        canary = Path(folder, "canary")
        parts = {
            "readers": _part(
                _readers(Spoiler(Random(args.seed), canary), Random(args.seed)), args, "readers", tell
            )
        }
        with Sandbox() as sandbox:
            parts["intake"] = _part(_intake(Spoiler(Random(args.seed), canary), sandbox), args, "intake", tell)
        ran = canary.exists() or hasattr(builtins, "PWNED")
    problems = [problem for part in parts.values() for problem in part["problems"]]
    if ran:
        problems.append("Code that stood in a message has run.")
    return {
        "cases": 2 * args.cases,
        "seed": args.seed,
        "cases_per_s": {name: part["cases_per_s"] for name, part in parts.items()},
        "counts": {name: part["counts"] for name, part in parts.items()},
        "memory_growth_mb": {name: part["growth_mb"] for name, part in parts.items()},
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MAXRSS_PER_MB, 1),
        "ran": ran,
        "problems": problems,
        "passed": not problems,
    }


def table(figures: dict[str, Any]) -> list[str]:
    lines = []
    for part, counts in figures["counts"].items():
        total = sum(sum(each.values()) for each in counts.values())
        lines.append(
            f"{part}: {total} cases, {figures['cases_per_s'][part]:.0f} a second, memory "
            f"{figures['memory_growth_mb'][part]:+.1f} MB"
        )
        for target, each in counts.items():
            lines.append(f"  {target:<12}" + ", ".join(f"{n} {reason}" for reason, n in each.items()))
    problems = figures["problems"]
    return [
        *lines,
        *problems,
        "Something came out that must not." if problems else "Nothing but refusals came out.",
    ]


Case = Callable[[], tuple[str, bytes, Callable[[bytes], str]]]
"""Makes a case: whom it is for, the message, and a reader that returns how it was refused, or TAKEN."""


def _part(case: Case, args: argparse.Namespace, name: str, tell: Tell) -> dict[str, Any]:
    counts: dict[str, Counter[str]] = {}
    problems: list[str] = []
    process, began, before = psutil.Process(), time.perf_counter(), 0
    for number in range(args.cases):
        if number == args.cases // _WARM:
            before = process.memory_info().rss
        if number and number % (args.cases // 5 or 1) == 0:
            tell(f"{name}: {number} cases ...")
        target, message, read = case()
        try:
            outcome = read(message)
        except Exception as error:
            outcome = "raised"
            if len(problems) < _REPORTED:
                problems.append(
                    f"{name}, case {number} of seed {args.seed}, {target}: {type(error).__name__}: "
                    f"{str(error)[:200]} for {message[:200]!r}"
                )
        counts.setdefault(target, Counter())[outcome] += 1
    growth = (process.memory_info().rss - before) / 2**20
    if growth > MAX_GROWTH_MB:
        problems.append(f"{name}: memory has grown by {growth:.0f} MB.")
    for target, each in counts.items():
        if not each[TAKEN] and args.cases >= 1000:
            problems.append(f"{name}: {target} took none, so what lies behind its first check was not tried.")
    return {
        "counts": {target: dict(each.most_common()) for target, each in sorted(counts.items())},
        "cases_per_s": round(args.cases / (time.perf_counter() - began), 1),
        "growth_mb": round(growth, 1),
        "problems": problems,
    }


def _readers(spoiler: Spoiler, rng: Random) -> Case:
    client, relay = from_client(), from_relay()
    information = [
        msgspec.json.encode(
            protocol.Info(
                relay="relay.example", swarm=SWARM, proto=("1.1",), software="shoal/0.1", time_ms=5,
                access="open", families=tuple(FAMILIES), versions=(QUESTIONS_VERSION,), limits=RelayLimits(),
                quotas=Quotas(),
            )
        )
    ]  # fmt: skip

    def open_envelope(raw: bytes) -> None:
        body = unseal(frames.decode_envelope(raw), SWARM)
        check_age(body.created_ms, NOW_MS)

    def pick() -> tuple[str, bytes, Callable[[bytes], str]]:
        which = rng.randrange(5)
        if which == 0:
            return "from_client", spoiler.one_of(client), _reading(frames.from_client)
        if which == 1:
            return "from_relay", spoiler.one_of(relay), _reading(_with_items)
        if which == 2:
            return "info", spoiler.one_of(information), _reading(frames.decode_info)
        return "unseal", spoiler.envelope(), _reading(open_envelope)

    return pick


def _with_items(frame: bytes) -> None:
    message = frames.decode_relay_frame(frame)
    for raw in message.items if isinstance(message, protocol.SampleReply) else ():
        try:
            frames.decode_envelope(raw)
        except Refused:
            continue


def _reading(read: Callable[[bytes], Any]) -> Callable[[bytes], str]:
    def outcome(message: bytes) -> str:
        try:
            read(message)
        except Refused as refused:
            return refused.flaw.value
        return TAKEN

    return outcome


def _intake(spoiler: Spoiler, sandbox: Sandbox) -> Case:
    intake = Intake(sandbox, SWARM, own_keys=[bytes(32)])

    def outcome(message: bytes) -> str:
        verdict = intake.check(message, NOW_MS)
        return verdict.value if isinstance(verdict, IntakeReason) else TAKEN

    return lambda: ("check", spoiler.envelope(), outcome)


_MAXRSS_PER_MB = 2**20 if sys.platform == "darwin" else 2**10
