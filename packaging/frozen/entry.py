"""The installed app's program: `shoal`, `shoal COMMAND ...`, and `shoal -m MODULE ...` for its child processes.

The bundle contains Python and the packages of window, node and relay; Shoal's own files are beside it as plain
source. Modules and commands that compute with models run in the engine pack's Python, which reads the same
files."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

HEAVY_MODULES = {"app.node.trainer.process", "app.sapo.scoring.child", "engines.models.tokenizer_check"}
HEAVY_COMMANDS = {"bench", "chat", "curve", "doctor", "export", "lab", "puzzle", "starter", "trial"}
"""Commands that need packages which only an engine pack has."""
_PYTHONS_OWN = ("-P", "-I", "-u")


def main() -> None:
    source = Path(sys._MEIPASS) / "source"  # type: ignore[attr-defined]
    sys.path.insert(0, str(source))
    from app.install.updates.installed import terminal_command
    from engines import remedy

    os.environ[remedy.COMMAND_ENV] = terminal_command()
    if sys.platform == "win32":
        from app.desktop import windows

        windows.run_without_console(lambda: run(sys.argv[1:], source))
    else:
        run(sys.argv[1:], source)


def run(arguments: list[str], source: Path) -> None:
    """Runs the module or command and ends the process with its exit code."""
    while arguments and arguments[0] in _PYTHONS_OWN:
        arguments = arguments[1:]
    if heavy(arguments):
        hand_over(arguments, source)
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        sys.argv = [arguments[1], *arguments[2:]]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    from app.cli.__main__ import main as command

    sys.exit(command(arguments))


def heavy(arguments: list[str]) -> bool:
    """Returns whether these arguments need an engine pack.

    >>> heavy(["-m", "app.node.trainer.process"]), heavy(["-m", "app.cli", "run"]), heavy(["chat"]), heavy([])
    (True, False, True, False)
    """
    if arguments[:1] == ["-m"]:
        module, rest = arguments[1:2], arguments[2:]
        return module[0] in HEAVY_MODULES or (module == ["app.cli"] and heavy(rest)) if module else False
    return bool(arguments) and arguments[0] in HEAVY_COMMANDS


def hand_over(arguments: list[str], source: Path) -> None:
    """Replaces this process by the engine pack's Python; on Windows, which cannot replace a process, runs it
    and waits. Never returns."""
    from app.install.packs.place import no_engine_sentence, python

    found = python()
    if found is None:
        sys.exit(f"shoal: {no_engine_sentence()}")
    if arguments[:1] != ["-m"]:
        arguments = ["-m", "app.cli", *arguments]
    command = [str(found), "-P", *arguments]
    if sys.platform == "win32":
        from app.desktop.windows import leave_bundle, run_in_place

        leave_bundle(str(source.parent))
        sys.exit(run_in_place(command, {**cleaned(os.environ, source), "PYTHONUTF8": "1"}))
    os.execve(found, command, cleaned(os.environ, source))


def cleaned(environment: Mapping[str, str], source: Path) -> dict[str, str]:
    """Returns the environment for the engine pack's Python: without PyInstaller's variables, with the
    original LD_LIBRARY_PATH less clashing folders, and with `source` on the import path.

    >>> cleaned({"LD_LIBRARY_PATH": "/app", "LD_LIBRARY_PATH_ORIG": "/own", "QT_PLUGIN_PATH": "/app", "A": "b"},
    ...         Path("s"))
    {'A': 'b', 'LD_LIBRARY_PATH': '/own', 'PYTHONPATH': 's', 'PYTHONSAFEPATH': '1', 'PYTHONUTF8': '1'}
    """
    from app.common.process.surroundings import child_environment, environment_outside_app, without_clashing

    kept = environment_outside_app(environment)
    if libraries := without_clashing(kept.pop("LD_LIBRARY_PATH", "")):
        kept["LD_LIBRARY_PATH"] = libraries
    return child_environment(kept, str(source))


if __name__ == "__main__":
    main()
