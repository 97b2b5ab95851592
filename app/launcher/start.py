"""From `./shoal ARGUMENTS` to `.venv/bin/python -m app.cli ARGUMENTS`, with set-up before it where needed."""

from __future__ import annotations

import os
import sys

from app.launcher import pythons, stamp

SETUP_HELP = """usage: shoal setup

Makes the folder .venv beside this program and installs what Shoal needs into it. Every other command does this
by itself when it has to. Run it again to check and repair the installation."""


def start(root: str, arguments: list[str]) -> int:
    """Runs one command and returns its exit code; on POSIX this process becomes the command and nothing
    returns. Raises SetupError when the environment cannot be made."""
    if arguments[:1] == ["setup"]:
        return _setup(root, arguments[1:])
    command = ["-m", "app.cli", *arguments]
    if arguments[:1] in (["-h"], ["--help"], ["help"]) and not stamp.ready(root, "run"):
        return pythons.hand_over(command, pythons.own(), variables(root))  # help needs nothing installed
    for purpose in ("run", "test") if arguments[:1] == ["test"] else ("run",):
        if not stamp.ready(root, purpose):
            _ensure(root, purpose)
    return pythons.hand_over(command, stamp.python_of(root), variables(root))


def _ensure(root: str, purpose: str, check: bool = False) -> None:
    from pathlib import (
        Path,
    )  # this and what comes with it takes ten times as long as a start that needs none of it

    from app.launcher.environment import Environment

    Environment(Path(root)).ensure(purpose, check)


def _setup(root: str, arguments: list[str]) -> int:
    if arguments in (["-h"], ["--help"]):
        print(SETUP_HELP)
        return 0
    if arguments:
        given = " ".join(arguments)
        print(f"shoal setup: It takes no arguments, and got {given}; run ./shoal setup alone.", file=sys.stderr)
        return 2
    _ensure(root, "run", check=True)
    print("Shoal is set up. ./shoal starts it, ./shoal --help shows the rest.", file=sys.stderr)
    return 0


def variables(root: str) -> dict[str, str]:
    """The environment of the command: the project is importable from any folder, and the folder the owner
    stands in is not (a stray torch.py there would be taken for the library)."""
    wanted = dict(os.environ)
    wanted.pop("PYTHONHOME", None)
    wanted["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    wanted["PYTHONSAFEPATH"] = "1"
    wanted["PYTHONUTF8"] = "1"
    # Spinning worker threads made a busy machine five times slower; this must be set before torch is loaded.
    wanted.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    wanted.setdefault("TOKENIZERS_PARALLELISM", "false")
    return wanted
