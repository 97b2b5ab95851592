"""From `./shoal ARGUMENTS` to `.venv/bin/python -m app.cli ARGUMENTS`, with set-up before it where needed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from app.launcher import pythons
from app.launcher.environment import Environment

SETUP_HELP = """usage: shoal setup

Makes the folder .venv beside this program and installs what Shoal needs into it. Every other command does this
by itself when it has to. Run it again to check and repair the installation."""


def start(root: str, arguments: list[str]) -> int:
    """Runs one command and returns its exit code; on POSIX this process becomes the command and nothing
    returns.

    Raises SetupError when the environment cannot be made."""
    environment = Environment(Path(root))
    asks_help = bool(arguments) and arguments[0] in ("-h", "--help", "help")
    if arguments[:1] == ["setup"]:
        return _setup(environment, arguments[1:])
    if asks_help and not environment.ready("run"):  # help needs the standard library only
        return pythons.hand_over(["-m", "app.cli", *arguments], pythons.own(), variables(root))
    environment.ensure("run")
    if arguments[:1] == ["test"]:
        environment.ensure("test")
    return pythons.hand_over(["-m", "app.cli", *arguments], str(environment.python), variables(root))


def _setup(environment: Environment, arguments: list[str]) -> int:
    if arguments in (["-h"], ["--help"]):
        print(SETUP_HELP)
        return 0
    if arguments:
        print(
            f"shoal setup: it takes no arguments, and got {' '.join(arguments)}; run ./shoal setup alone.",
            file=sys.stderr,
        )
        return 2
    began = time.monotonic()
    environment.ensure("run", check=True)
    took = time.monotonic() - began
    print(f"Shoal is set up ({took:.0f} s). ./shoal starts it, ./shoal --help shows the rest.", file=sys.stderr)
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
