"""`./shoal test [pytest arguments]`: the project's tests, as .ci/run runs them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

SUMMARY = "run the tests; arguments go to pytest, for example -m long, -k name, tests/sapo"

PASSES_ON = True
"""Arguments are pytest's, not ours."""

ROOT = Path(__file__).parents[3]

WORKERS = 2
"""Each holds a torch of its own (0.4 GB) and starts processes of its own; more than two crowd a small
machine."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rest", nargs="*", metavar="ARGUMENT", help="anything that pytest takes")


def main(args: argparse.Namespace) -> int:
    return subprocess.call(
        [sys.executable, "-m", "pytest", *distribution(args.rest, os.cpu_count() or 1), *args.rest], cwd=ROOT
    )


def distribution(arguments: list[str], cores: int) -> list[str]:
    """The options that spread the tests over processes, none when the arguments speak of that themselves or
    need the terminal. A file's tests stay together, because they share what is costly to make."""
    words = {argument.split("=")[0] for argument in arguments}
    chosen = any(argument.startswith("-n") for argument in arguments) or words & {
        "--numprocesses",
        "--dist",
        "-p",
    }
    needs_terminal = words & {"-s", "--capture", "--pdb", "--trace", "--collect-only", "--co"}
    return [] if cores < 2 or chosen or needs_terminal else ["-n", str(WORKERS), "--dist", "loadfile"]
