"""`./shoal window`: the desktop window, with the node as its child process."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

SUMMARY = "open the window"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", type=Path, metavar="DIR", help="where all data lies (also: SHOAL_HOME)")
    parser.add_argument(
        "--background", action="store_true", help="stay in the tray, as when it starts at login"
    )
    parser.add_argument(
        "--join", metavar="LINK", help="learn with others from now on, by this invite or address"
    )
    parser.add_argument("--theme", choices=("system", "light", "dark"), help="colours, for this time only")


def main(args: argparse.Namespace) -> int:
    from app.home import home
    from app.ui.libraries import provide

    if not has_display(os.environ, sys.platform):
        print(
            "shoal window: There is no display here, so no window can be shown; ./shoal run shows the same "
            "in this terminal.",
            file=sys.stderr,
        )
        return 1
    if complaint := provide(os.environ, sys.platform):
        print(f"shoal window: {complaint}", file=sys.stderr)
        return 1
    from app.ui.start import run

    return run(home(args.home), args.theme, args.background, args.join)


def has_display(environment: Mapping[str, str], platform: str) -> bool:
    """Whether a window can be shown at all. A Qt platform that was chosen by name is trusted.

    >>> has_display({"DISPLAY": ":0"}, "linux"), has_display({}, "linux"), has_display({}, "darwin")
    (True, False, True)
    """
    if platform in ("win32", "darwin"):
        return True
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
