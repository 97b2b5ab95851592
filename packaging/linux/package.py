"""For Linux: a Debian package, and one file for other distributions."""

from __future__ import annotations

import sys
from pathlib import Path

from frozen.bundle import WORK, BuildError, Bundle
from linux import debian, onefile, tree


def package(made: Bundle, out: Path) -> list[Path]:
    """The files for people. What cannot be made with the tools that are here is told; raises BuildError where
    not even the Debian package can."""
    out.mkdir(parents=True, exist_ok=True)
    laid_out = tree.lay_out(made, WORK / "linux")
    done = [debian.package(laid_out, made, out)]
    try:
        done.append(onefile.package(laid_out, made, out))
    except BuildError as error:
        print(f"packaging/build: {error}", file=sys.stderr)
    return done
