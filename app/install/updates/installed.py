"""The running installation: a checkout or another kind, its version, and how it is started. Anything that
starts Shoal later (at login, from a link) registers `program`, and is updated if that has moved."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

SOURCE = Path(__file__).resolve().parents[3]
"""Shoal's own files: the checkout, or the tree inside an installed app."""
DEBIANS = Path("/usr/bin/shoal")
ONE_FILE = "onefile"
"""Name of a file beside the program that marks an unpacked single-file build."""
_STEPS = {"a": 0, "b": 1, "rc": 2, "": 3}

Installed = Literal["checkout", "folder", "deb", "elf", "nsis", "dmg"]
"""Kind of installation; a folder is a package's content unpacked by hand, which its owner replaces."""


def form(system: str = sys.platform) -> Installed:
    """Returns how the running program was installed."""
    if not getattr(sys, "frozen", False):
        return "checkout"
    if system == "win32":
        return "nsis"
    if system == "darwin":
        return "dmg"
    here = Path(sys.executable).resolve()
    if here.with_name(ONE_FILE).exists():
        return "elf"
    return "deb" if DEBIANS.resolve() == here else "folder"


def program(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Returns the command that starts this installation, full path first; a subcommand and options can
    follow."""
    match form():
        case "checkout":
            launcher = str(SOURCE / "shoal")
            return [sys.executable, launcher] if os.name == "nt" else [launcher]
        case "elf" if Path(environment.get("SHOAL_ONEFILE") or "/nowhere").is_file():
            return [environment["SHOAL_ONEFILE"]]  # what its owner has; it unpacks itself elsewhere
        case "deb":
            return [str(DEBIANS)]  # what the package manager keeps, also when its folder gets another name
        case "nsis":
            return [str(Path(sys.executable).with_name("shoal.exe"))]  # not the one that opens a console
        case _:
            return [sys.executable]


def restart_command() -> list[str]:
    """Returns the command line that starts this installation again."""
    return [sys.executable, "-m", "app.cli"] if form() == "checkout" else program()


def terminal_command(environment: Mapping[str, str] = os.environ) -> str:
    """Returns the command that a user types in a terminal; a subcommand and options can follow."""
    match form():
        case "checkout":
            return "./shoal"
        case "deb":
            return DEBIANS.name
        case "nsis":
            own = str(Path(sys.executable).with_name("shoal-cli.exe"))
            return f'"{own}"' if " " in own else own
        case _:
            return shlex.quote(program(environment)[-1])


def removal(environment: Mapping[str, str] = os.environ) -> str:
    """Returns how to remove the program itself, as words for a sentence."""
    own = visible_path(environment)
    match form():
        case "checkout":
            return f"delete the folder {own}"
        case "deb":
            return "sudo apt purge shoal"
        case "nsis":
            return "Windows settings, Apps, Installed apps, Shoal, Uninstall"
        case "dmg":
            return f"move {own} to the Trash"
        case "folder":
            return f"delete the folder {own}"
        case _:
            return f"delete {own}"


def visible_path(environment: Mapping[str, str] = os.environ) -> str:
    """Returns the installed program's path as the user sees it: a folder, a file, or a macOS bundle."""
    own = program(environment)[-1]
    if form() == "checkout":
        return str(SOURCE)
    if form() == "folder":
        return str(Path(own).parent)
    return next((str(path) for path in Path(own).parents if path.suffix == ".app"), own)


def unpacked(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the folder into which a single-file build unpacks every version of itself on Linux
    (packaging/linux/onefile.c); None on other systems."""
    if not sys.platform.startswith("linux"):
        return None
    if (named := environment.get("SHOAL_UNPACKED", "")).startswith("/"):
        return Path(named)
    cache = environment.get("XDG_CACHE_HOME", "")
    return (Path(cache) if cache.startswith("/") else Path.home() / ".cache") / "shoal" / "app"


def version(source: Path = SOURCE) -> str:
    """Returns the version that the build wrote; in a checkout, that of the project file."""
    try:
        return (source / "VERSION").read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        pass
    try:
        return str(tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, KeyError, ValueError):
        return "0"


def version_key(version: str) -> tuple[tuple[int, ...], int, int]:
    """Returns a sort key for a version.

    >>> sorted(["0.10", "0.2.0", "0.2.0rc1", "0.2.0a2", "0.2"], key=version_key)
    ['0.2.0a2', '0.2.0rc1', '0.2.0', '0.2', '0.10']
    """
    found = re.fullmatch(r"([0-9.]+)(a|b|rc|)([0-9]*)", version)
    if found is None:
        return (), 0, 0
    numbers = [int(part) for part in found[1].split(".") if part]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), _STEPS[found[2]], int(found[3] or 0)
