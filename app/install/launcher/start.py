"""Runs `.venv/bin/python -m app.cli ARGUMENTS` for `./shoal ARGUMENTS`, after set-up if needed."""

from __future__ import annotations

import os
import sys

from app.common.process.surroundings import child_environment
from app.install.launcher import pythons, stamp

SETUP_HELP = """usage: shoal setup [--engine NAME | --bench | --nats]

Makes the folder .venv beside this program and installs what Shoal needs into
it. Every other command does this by itself when it has to. Run it again to
check and repair the installation.

  --engine llamacpp   also build llama.cpp, which some minutes of the first
                      start do in the background; needs a C++ compiler
  --engine mlx        also install MLX, which Macs with Apple Silicon get
                      anyway; elsewhere it is for tests
  --bench             also install TRL, which ./shoal bench learner and round
                      measure against
  --nats              also install a nats-server, for tests of relays on
                      NATS"""

NEEDS = {
    "bench": "the benchmarks need",
    "nats": "tests of relays on NATS need",
}

BUILDING_COMMANDS = ("run", "window", "--home")
"""First arguments of starts that build llama.cpp in the background; `./shoal` alone is one of them too."""

COMPILES = (
    "Shoal builds llama.cpp in the background, once. A compiler is busy for some minutes, and then answers "
    "come faster."
)


def start(root: str, arguments: list[str]) -> int:
    """Runs one command and returns its exit code; on POSIX this process becomes the command and never returns.
    Raises SetupError if the environment cannot be made."""
    if arguments[:1] == ["setup"]:
        return _setup(root, arguments[1:])
    command = ["-m", "app.cli", *arguments]
    if arguments[:1] in (["-h"], ["--help"], ["help"]) and not stamp.ready(root, "run"):
        return pythons.hand_over(
            command, pythons.base_python(), variables(root)
        )  # help needs nothing installed
    fresh = False
    for purpose in ("run", "test") if arguments[:1] == ["test"] else ("run",):
        if not stamp.ready(root, purpose):
            _ensure(root, purpose)
            fresh = True
    if arguments[:1] == ["test"]:
        _try_optional(root)
    elif (not arguments or arguments[0].split("=")[0] in BUILDING_COMMANDS) and (
        fresh or "--solo" not in arguments
    ):
        _begin_building(root)  # alone, nothing is fetched that the set-up did not ask for anyway
    return pythons.hand_over(command, stamp.python_of(root), variables(root))


def _ensure(root: str, purpose: str, check: bool = False) -> None:
    from pathlib import (
        Path,
    )  # this and what comes with it takes ten times as long as a start that needs none of it

    from app.install.launcher.environment import Environment

    Environment(Path(root)).ensure(purpose, check)


def _begin_building(root: str, lasting: bool = False) -> None:
    if not _missing(root, "llamacpp"):
        return
    from app.install.launcher import optional, system
    from app.install.launcher.install import say

    if optional.wanted():
        if not os.path.exists(os.path.join(root, ".venv", optional.SAYS)) and not system.no_compiler():
            say(COMPILES)
        optional.begin(root, variables(root), lasting)


def _missing(root: str, name: str) -> bool:
    """Whether this copy knows an optional part that is neither installed nor put off."""
    file = stamp.PURPOSES[name][0][0]
    return (
        os.path.isfile(os.path.join(root, "packaging", "requirements", file))
        and not stamp.ready(root, name)
        and not stamp.is_put_off(root, name)
    )


def _try_optional(root: str) -> None:
    """Installs engines for tests; tests of a missing engine are skipped and say why."""
    if "SHOAL_NO_OPTIONAL" in os.environ:
        return
    for name in (name for name in stamp.OPTIONAL_ENGINES if _missing(root, name)):
        _provide(root, name, firmly=False)


def _provide(root: str, name: str, firmly: bool) -> None:
    """Installs something optional, waiting for a process that is installing it. Raises SetupError if
    `firmly`."""
    from pathlib import Path

    from app.install.launcher import optional
    from app.install.launcher.install import say

    what = NEEDS.get(name, f"the engine {name} needs")
    say(f"Installing what {what}{' (some minutes)' * (name == 'llamacpp')}.")
    try:
        optional.provide(Path(root), name, lambda: say("Another Shoal is at it; taking over what it has done."))
    except pythons.SetupError as error:
        if firmly:
            raise
        say(f"{error} The tests that need it are skipped.")


def _setup(root: str, arguments: list[str]) -> int:
    if arguments in (["-h"], ["--help"]):
        print(SETUP_HELP)
        return 0
    engine = arguments[1] if len(arguments) == 2 and arguments[0] == "--engine" else ""
    alone = {f"--{name}": name for name in NEEDS}
    extra = alone.get(arguments[0], engine) if len(arguments) == 1 else engine
    if arguments and extra not in NEEDS and engine not in ("auto", "torch", *stamp.OPTIONAL_ENGINES):
        given = " ".join(arguments)
        print(
            "shoal setup: It takes nothing, --bench, --nats, or --engine with torch, llamacpp "
            f"or mlx, not {given}; run ./shoal setup alone.",
            file=sys.stderr,
        )
        return 2
    _ensure(root, "run", check=True)
    if extra in (*stamp.OPTIONAL_ENGINES, *NEEDS):
        stamp.remove(root, extra)
        _provide(root, extra, firmly=True)
    elif not engine:
        _begin_building(root, lasting=True)
    print("Shoal is set up. ./shoal starts it, ./shoal --help shows the rest.", file=sys.stderr)
    return 0


def variables(root: str) -> dict[str, str]:
    """Returns the command's environment variables. They put the project on the import path, without
    PYTHONPATH and the current folder, where a stray torch.py would shadow the library."""
    wanted = child_environment(root=root)
    wanted.setdefault("TOKENIZERS_PARALLELISM", "false")
    return wanted
