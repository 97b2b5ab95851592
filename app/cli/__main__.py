"""`python -m app.cli COMMAND ...`, which ./shoal runs once everything is installed. Finds the command's file,
parses its arguments, runs it, and reports any exception in one sentence."""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import itertools
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from app.cli import _saying
from app.cli._terminal import WrongUsage, say
from app.common.process.streams import plain_streams
from app.common.process.surroundings import repair_folder_and_streams
from engines import remedy

EVERYDAY = (
    "run",
    "chat",
    "puzzle",
    "models",
    "export",
    "result",
    "serve",
    "invite",
    "identity",
    "data",
    "update",
    "doctor",
    "remove",
)
"""The commands that --help lists, in this order; `--help all` lists the others too."""

SOURCE = ("test", "translations")
"""Commands that work on Shoal's source; an installed app does not have them."""

ELSEWHERE = (*SOURCE, "ask", "bench", "curve", "export", "lab", "pack", "result", "starter")
"""Commands that write outside the data folder, where the user says, with the user's own file modes."""

ALONE = ("run", "--solo")
"""The command line that `./shoal` runs without a command if no window can be shown, or with options alone: a
node that keeps learning."""

FOLDER = Path(__file__).parent
"""Folder with one file per command."""


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one sentence instead of printing the usage. Options cannot be
    abbreviated: a new option must never change what an old command line means."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        what = message.strip().rstrip(".")
        words = remedy.command(f"{self.prog.removeprefix('shoal ')} --help")
        self.exit(2, f"{self.prog}: {what[:1].upper()}{what[1:]}; see {words}.\n")


def main(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code (argparse ends the process itself on wrong usage: 2)."""
    repair_folder_and_streams()
    with plain_streams():
        return _main(arguments)


def _main(arguments: list[str]) -> int:
    try:
        if arguments[:1] in (["-h"], ["--help"], ["help"]):
            say(overview(everything=arguments[1:] == ["all"]))
            return 0
        if arguments[:1] in (["-V"], ["--version"], ["version"]):
            from app.install.updates.installed import version

            print(f"Shoal {version()}")
            return 0
        words = [*arguments[0].split("=", 1), *arguments[1:]] if arguments else []
        if not words or (words[0] == "--home" and len(words) == 2):
            _saying.folder = words[1] if words else None
            return _open(*words)
        if arguments[0].startswith("--"):
            return _run(*ALONE, *arguments)
        return _run(*arguments)
    except KeyboardInterrupt:
        print("shoal: Stopped.", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has gone; say nothing more, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("SHOAL_DEBUG"):
            traceback.print_exc()
        say(f"shoal: {_saying.sentence(error)}", sys.stderr)
        return 1


def _open(*home: str) -> int:
    """Opens the window, over the data folder that `home` (--home DIR) names; if none can be shown, says why and
    runs the view in the terminal."""
    from app.ui.shell.display import obstacle

    why = obstacle(os.environ, sys.platform)
    if not why:
        try:
            importlib.import_module("PySide6.QtWidgets")
        except ImportError as error:
            why = f"Qt does not load ({' '.join(str(error).split())[:200]})"
    if not why:
        return _run("window", *home)
    here = sys.stderr.isatty()
    said = _saying.no_window(why, here)
    say(f"shoal: {said}", sys.stderr)
    return _run(*ALONE, *home, *(["--said", _saying.spoken(said)] if here else []))


def _run(name: str, *arguments: str) -> int:
    if name not in commands():
        return _unknown(name)
    command = importlib.import_module(f"app.cli.{name}")
    parser = Parser(prog=f"shoal {name}", description=_capital(command.SUMMARY) + ".")
    command.add_arguments(parser)
    if getattr(command, "PASSES_ON", False) and not {"-h", "--help"} & set(arguments[:1]):
        parsed = argparse.Namespace(rest=list(arguments))
    else:
        stray = _unknown_options(arguments, parser)
        if not stray:
            parsed, stray = parser.parse_known_args(arguments)
        if stray:
            parser.error(_stray(stray[0], parser))
    _saying.folder = getattr(parsed, "home", None)
    from app.common.home import UMASK  # --help needs nothing installed

    mask = os.umask(UMASK)
    if name in ELSEWHERE:
        os.umask(mask)
    try:
        code: int = command.main(parsed)
    except WrongUsage as error:
        say(f"shoal {name}: {error}", sys.stderr)
        code = 2
    finally:
        os.umask(mask)
    return code


def _unknown_options(arguments: Sequence[str], parser: Parser) -> list[str]:
    """Returns the options that a parser doesn't know: argparse would take the value of one for an order."""
    options = _options(parser)
    before = itertools.takewhile(lambda one: one != "--", arguments)
    return [
        one for one in before if re.fullmatch(r"--[a-z][\w-]*(=\S*)?", one) and one.split("=")[0] not in options
    ]


def _options(parser: argparse.ArgumentParser) -> set[str]:
    """Returns the options of a parser and of its orders."""
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = found.union(*map(_options, action.choices.values()))
    return found


def _stray(argument: str, parser: Parser) -> str:
    """Returns a sentence about an argument that is not understood."""
    options = sorted(_options(parser))
    near = difflib.get_close_matches(argument.split("=")[0], options, n=1)
    return f"it does not know {argument}" + (f" (did you mean {near[0]}?)" if near else "")


def _unknown(name: str) -> int:
    known = commands()
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    words = remedy.command("--help")
    print(f"shoal: There is no command {name}; {meant}{words} lists {', '.join(known)}.", file=sys.stderr)
    return 2


def _files() -> dict[str, Path]:
    """Returns the file of every command by its name. Names that begin with "_" are helper modules."""
    return {file.stem: file for file in FOLDER.glob("[!_]*.py")}


def commands() -> list[str]:
    """Returns the names of all commands that this copy of Shoal has."""
    found = set(_files())
    if remedy.installed():
        found -= set(SOURCE)
    return [name for name in EVERYDAY if name in found] + sorted(found - set(EVERYDAY))


def summary(name: str) -> str:
    """Returns a command's SUMMARY, read from its file without running it; empty if it has none."""
    tree = ast.parse(_files()[name].read_bytes())
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == "SUMMARY" for target in node.targets)
            and isinstance(node.value, ast.Constant)
        ):
            return str(node.value.value)
    return ""


def overview(everything: bool = False) -> str:
    """Returns the text of `./shoal --help`, or of `./shoal --help all`."""
    everyday = [("", "open the window; without a display, learn with a view in this terminal")]
    everyday += [(name, summary(name)) for name in commands() if name in EVERYDAY]
    lines = ["Shoal trains a small reasoning model on your computer, alone or together with others.", ""]
    lines += _rows(everyday)
    if everything:
        others = [(name, summary(name)) for name in commands() if name not in EVERYDAY]
        if not remedy.installed():
            others.append(("setup", "install what is missing and repair what is damaged"))
        lines += ["", "For operators, researchers and developers:", "", *_rows(others)]
        lines += [
            "",
            "SHOAL_HOME, or --home DIR, moves all data. SHOAL_DEBUG=1 shows where an error came from.",
        ]
    else:
        lines += ["", f"{remedy.command('COMMAND --help')} tells more about one."]
        lines += [f"{remedy.command('--help all')} also lists what operators and developers use."]
    return "\n".join(lines)


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {remedy.short_command()} {name:<{width}}  {text}".rstrip() for name, text in rows]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
