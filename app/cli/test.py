"""`./shoal test [pytest arguments]`: the project's tests, as .ci/run runs them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import psutil

SUMMARY = "run the tests; arguments go to pytest, for example -m long, -k name, tests/sapo"

PASSES_ON = True
"""Arguments are pytest's, not ours."""

ROOT = Path(__file__).parents[2]

WORKER_BYTES = 2_500_000_000
"""Memory of a worker: a torch of its own (0.4 GB), and the node, trainer or window that its test starts."""
MAX_WORKERS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rest", nargs="*", metavar="ARGUMENT", help="anything that pytest takes")


def main(args: argparse.Namespace) -> int:
    return subprocess.call(
        [sys.executable, "-m", "pytest", *distribution(args.rest, workers()), *args.rest], cwd=ROOT
    )


def workers() -> int:
    """Three for two processors, because tests wait for a third of their time; fewer where the memory does not
    suffice. With four for two, tests that look for peers on the network came too late now and then."""
    fit = psutil.virtual_memory().total // WORKER_BYTES
    return int(max(1, min((os.cpu_count() or 1) * 3 // 2, fit, MAX_WORKERS)))


def distribution(arguments: list[str], count: int) -> list[str]:
    """The options that spread the tests over `count` processes, none when the arguments speak of that
    themselves or need the terminal. A file's tests stay together, because they share what is costly to make;
    files run in the order of tests/conftest.py, the slow ones first."""
    words = {argument.split("=")[0] for argument in arguments}
    chosen = any(argument.startswith("-n") for argument in arguments) or words & {
        "--numprocesses",
        "--dist",
        "-p",
    }
    needs_terminal = words & {"-s", "--capture", "--pdb", "--trace", "--collect-only", "--co"}
    spread = ["-n", str(count), "--dist", "loadfile", "--no-loadscope-reorder"]
    return [] if count < 2 or chosen or needs_terminal else spread
