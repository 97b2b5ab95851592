"""Builds the packages for Linux: a Debian package, and the single-file app for other distributions."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from frozen.bundle import WORK, BuildError, Bundle
from linux import onefile, tree

HERE = Path(__file__).resolve().parent
DEPENDS = (
    "python3 (>= 3.11)",
    "ca-certificates",
    "libstdc++6",
    "libegl1",
    "libgl1",
    "libxkbcommon0",
    "libfontconfig1",
    "libdbus-1-3",
    "libglib2.0-0 | libglib2.0-0t64",
    "libxcb-cursor0",
    "libxcb-icccm4",
    "libxcb-keysyms1",
    "libxcb-shape0",
    "libxcb-xkb1",
    "libxkbcommon-x11-0",
    "libxss1",
)
"""Python is for the engine pack, ca-certificates for downloading it; the libraries are needed by Qt."""
RECOMMENDS = ("libwayland-client0", "libwayland-cursor0", "libgomp1")
SCRIPTS = ("prerm",)
DESCRIPTION = """Train a small reasoning model on your own computer
 Shoal trains a small model with reinforcement learning while you are away. The
 model practises puzzles, checks its own answers and learns from them, alone or
 together with other people's models. Only answers to generated puzzles travel,
 as text: no account, no telemetry."""


def debian_package(laid_out: Path, made: Bundle, out: Path) -> Path:
    """Builds the .deb of a tree and returns its path. Raises BuildError."""
    machine = tree.output("dpkg", "--print-architecture")
    library = "libc6 (>= {}.{})".format(*tree.newest_symbol(laid_out))
    place = WORK / "deb"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(laid_out, place, symlinks=True)
    control = place / "DEBIAN"
    control.mkdir()
    for name in SCRIPTS:
        shutil.copyfile(HERE / name, control / name)
        (control / name).chmod(0o755)
    lines = [
        "Package: shoal",
        f"Version: {made.version}",
        "Section: science",
        "Priority: optional",
        f"Architecture: {machine}",
        f"Installed-Size: {tree.size(laid_out) // 1024}",
        "Maintainer: The Shoal authors <shoal@example.org>",
        f"Depends: {', '.join([library, *DEPENDS])}",
        f"Recommends: {', '.join(RECOMMENDS)}",
        f"Description: {DESCRIPTION}",
    ]
    (control / "control").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tree.settle(place, made)
    to = out / f"shoal_{made.version}_{machine}.deb"
    same = {"SOURCE_DATE_EPOCH": str(tree.epoch(made)), "DPKG_DEB_THREADS_MAX": "1"}  # on any number of cores
    tree.output("dpkg-deb", "--root-owner-group", "-Zxz", "-b", place, to, **same)
    return to


def package(made: Bundle, out: Path) -> list[Path]:
    """Builds the installers and returns their paths. Prints what cannot be built with the tools installed here;
    raises BuildError if not even the Debian package can."""
    out.mkdir(parents=True, exist_ok=True)
    laid_out = tree.lay_out(made, WORK / "linux")
    done = [debian_package(laid_out, made, out)]
    try:
        done.append(onefile.package(laid_out, made, out))
    except BuildError as error:
        print(f"packaging/build: {error}", file=sys.stderr)
    return done
