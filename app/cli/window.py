"""`./shoal window`: opens the desktop window, with the node as its child process."""

from __future__ import annotations

import argparse
import os
import sys

from app.cli._frame import share
from app.cli._terminal import say
from app.common.process.surroundings import FROM_STDIN, read_stdin_line
from app.install.updates.installed import restart_command
from engines import remedy

SUMMARY = "open the window"

_SECRET = "token="
"""Marks an invite that lets in anyone who reads it."""
_LONGEST = 4096
"""Maximum characters of a link. A longer one is no invite, and would not fit in a pipe."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "link",
        nargs="?",
        default="",
        metavar="LINK",
        help="an invite that somebody opened; the window asks first",
    )
    share(parser, "home")
    parser.add_argument(
        "--background", action="store_true", help="stay in the tray, as when it starts at login"
    )
    parser.add_argument(
        "--join", metavar="LINK", help="learn with others from now on, by this invite or address"
    )
    parser.add_argument(
        "--quit", action="store_true", help="ask the window that is open to save and end, as an installer does"
    )
    parser.add_argument("--theme", choices=("system", "light", "dark"), help="colours, for this time only")


def main(args: argparse.Namespace) -> int:
    from app.common.home import home
    from app.ui.shell.display import obstacle

    if args.quit:
        from app.ui.shell.single import end_other

        end_other(home(args.home))
        return 0
    if why := obstacle(os.environ, sys.platform, unseen=True):
        instead = f"{remedy.command('run')} shows the same in this terminal"
        say(f"shoal window: No window can be shown, because {why}; {instead}.", sys.stderr)
        return 1
    from app.ui.shell.start import run

    if args.join == FROM_STDIN or args.link == FROM_STDIN:
        secret = read_stdin_line()
        args.join, args.link = args.join and secret, args.link and secret
    elif sys.platform == "linux" and _hides(args.join or args.link):
        _out_of_sight(args)
    return run(home(args.home), args.theme, args.background, args.join, args.link)


def _hides(link: str) -> bool:
    return len(link) <= _LONGEST and _SECRET in link


def _out_of_sight(args: argparse.Namespace) -> None:
    """Runs the same command again with its secret link passed through a pipe: other users can read a command
    line as long as its process lives."""
    words = ["--background"] if args.background else []
    for name, value in (("--home", args.home), ("--theme", args.theme)):
        words += [name, str(value)] if value else []
    words += ["--join", FROM_STDIN] if args.join else [FROM_STDIN]
    reader, writer = os.pipe()
    os.write(writer, (args.join or args.link).encode() + b"\n")
    os.close(writer)
    os.dup2(reader, 0)
    os.close(reader)
    program = restart_command()
    os.execv(program[0], [*program, "window", *words])
