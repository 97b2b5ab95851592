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
"""Whether unknown arguments are passed on, here to pytest."""

ROOT = Path(__file__).parents[2]

WORKER_BYTES = 2_500_000_000
"""Memory of a test worker: its own torch (0.4 GB), and the node, trainer or window that its test starts."""
MAX_WORKERS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rest", nargs="*", metavar="ARGUMENT", help="anything that pytest takes")


def main(args: argparse.Namespace) -> int:
    return subprocess.call(
        [sys.executable, "-m", "pytest", *distribution(args.rest, workers()), *args.rest], cwd=ROOT
    )


def workers() -> int:
    """Returns the number of test workers: three for two processors, because tests wait for a third of their
    time; fewer if memory is short. With four, tests that look for peers on the network were sometimes too
    slow."""
    fit = psutil.virtual_memory().total // WORKER_BYTES
    return int(max(1, min((os.cpu_count() or 1) * 3 // 2, fit, MAX_WORKERS)))


def distribution(arguments: list[str], count: int) -> list[str]:
    """Returns the pytest options that spread the tests over `count` processes; none if the arguments set these
    themselves or need the terminal. A file's tests stay together because they share costly fixtures; files run
    in the order of tests/conftest.py, slow ones first. A worker that crashes ends the run (tests/ending.py)."""
    words = {argument.split("=")[0] for argument in arguments}
    chosen = any(argument.startswith("-n") for argument in arguments) or words & {
        "--numprocesses",
        "--dist",
        "-p",
    }
    needs_terminal = words & {"-s", "--capture", "--pdb", "--trace", "--collect-only", "--co"}
    spread = ["-n", str(count), "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0"]
    return [] if count < 2 or chosen or needs_terminal else spread
