"""Everything for Linux: a Debian package, one file for other distributions, and an AppImage where it can be made."""

from __future__ import annotations

from pathlib import Path

from frozen.bundle import WORK, Bundle

from linux import debian, tree


def package(made: Bundle, out: Path) -> list[Path]:
    """The files for people. Raises BuildError."""
    out.mkdir(parents=True, exist_ok=True)
    laid_out = tree.lay_out(made, WORK / "linux")
    return [debian.package(laid_out, made, out)]
