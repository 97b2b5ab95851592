"""Autobahn|Testsuite, sections 1 to 7 and 10, against the relay's websocket and beside it against aiohttp
alone.

The suite is a Python 2 program. It is fetched from the package index into a folder (`--suite` keeps it for the
next time), so this needs Python 2.7 with pip, and the network once. Left out are section 9 (messages larger
than the relay takes) and 12 and 13 (compression, which it does not offer).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.bench import BenchError, Tell

SUMMARY = "the relay's websocket in the Autobahn conformance suite, beside aiohttp alone (needs Python 2.7)"
SUITE = "autobahntestsuite==25.10.1"
LEFT_OUT = ("9.*", "12.*", "13.*")
_RANK = {"OK": 0, "INFORMATIONAL": 0, "NON-STRICT": 1}
_FAILED = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python2", metavar="PATH", help="a Python 2.7 with pip (default: the one found)")
    parser.add_argument(
        "--suite",
        type=Path,
        metavar="DIR",
        help="folder of the suite, filled if empty (default: a temporary one)",
    )
    parser.add_argument("--cases", default="*", metavar="PATTERN", help='for example "5.*" (default: all)')


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    python = args.python2 or _python2()
    with tempfile.TemporaryDirectory(prefix="shoal-autobahn-") as name:
        suite = (args.suite or Path(name, "suite")).absolute()
        _fetch(python, suite, tell)
        with _echo("relay") as relay, _echo("aiohttp") as alone:
            servers = [
                {"agent": agent, "url": f"ws://127.0.0.1:{port}"}
                for agent, port in (("relay", relay), ("aiohttp", alone))
            ]
            spec = Path(name, "spec.json")
            plan = {"outdir": f"{name}/reports", "servers": servers, "cases": [args.cases]}
            spec.write_text(json.dumps({**plan, "exclude-cases": LEFT_OUT, "exclude-agent-cases": {}}))
            tell("The suite is running ...")
            done = subprocess.run(
                [python, "-W", "ignore", str(suite / "bin" / "wstest"), "-m", "fuzzingclient", "-s", str(spec)],
                env={**os.environ, "PYTHONPATH": str(suite)},
                cwd=name,
                capture_output=True,
                text=True,
            )
        try:
            report = json.loads(Path(name, "reports", "index.json").read_bytes())
            ours, theirs = report["relay"], report["aiohttp"]
        except (OSError, KeyError) as error:
            words = (done.stderr or done.stdout).strip()[-300:]
            raise BenchError(f"The suite gave no report ({error}); its last words: {words}") from error
    worse = sorted((case for case in theirs if _rank(ours[case]) > _rank(theirs[case])), key=_order)
    return {
        "cases": len(ours),
        "relay": _counts(ours),
        "aiohttp": _counts(theirs),
        "relay_exceptions": _exceptions(ours),
        "aiohttp_exceptions": _exceptions(theirs),
        "worse": worse,
        "passed": not worse,
    }


def table(figures: dict[str, Any]) -> list[str]:
    lines = []
    for agent in ("relay", "aiohttp"):
        counts = ", ".join(f"{n} {name}" for name, n in figures[agent].items())
        lines.append(f"{agent:<8} {figures['cases']} cases: {counts}")
        lines += [f"         {case:<8} {how}" for case, how in figures[f"{agent}_exceptions"].items()]
    worse = ", ".join(figures["worse"])
    return [
        *lines,
        f"The relay is worse in {worse}." if worse else "The relay is nowhere worse than aiohttp alone.",
    ]


def _rank(case: dict[str, Any]) -> int:
    return max(_RANK.get(case["behavior"], _FAILED), _RANK.get(case["behaviorClose"], _FAILED))


def _counts(report: dict[str, Any]) -> dict[str, int]:
    return dict(Counter(case["behavior"] for case in report.values()).most_common())


def _exceptions(report: dict[str, Any]) -> dict[str, str]:
    return {
        case: f"{report[case]['behavior']}, close {report[case]['behaviorClose']}"
        for case in sorted(report, key=_order)
        if _rank(report[case])
    }


def _order(case: str) -> list[int]:
    return [int(part) for part in case.split(".")]


def _python2() -> str:
    """A Python 2.7 that runs: on the path, or among pyenv's."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    places = [
        shutil.which("python2.7"),
        shutil.which("python2"),
        *map(str, versions.glob("2.7*/bin/python2.7")),
    ]
    for place in filter(None, places):
        asked = [place, "-c", "import sys, pip; sys.exit(sys.version_info[:2] != (2, 7))"]
        if subprocess.run(asked, capture_output=True).returncode == 0:
            return place
    raise BenchError(
        "There is no Python 2.7 with pip here, which the Autobahn suite needs: name one with --python2."
    )


def _fetch(python: str, suite: Path, tell: Tell) -> None:
    if (suite / "zope" / "__init__.py").exists():
        return
    tell(f"Fetching {SUITE} ...")
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--target", str(suite), SUITE],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["no reason given"])[-1][:300]
        raise BenchError(
            f"The suite could not be fetched: {words}; check the network, or name a folder by --suite."
        )
    (suite / "zope" / "__init__.py").touch()  # --target leaves the namespace package without one


@contextmanager
def _echo(kind: str) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.echo", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # aiohttp says there what the suite does to it on purpose
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
