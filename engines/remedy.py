"""The commands that people are told to run: how this copy of Shoal is started, and how it is repaired.

A checkout is started with ./shoal, and its set-up repairs it. An installed app is started by what its installer
put there; its engine is a pack, which can be repaired. The application uses this through app.common.remedy."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "SHOAL_COMMAND"
"""Environment variable: the command that starts an installed app in a terminal; its program sets it for all its
processes."""
PACK_FILE = "shoal-pack.json"
"""A file that marks the Python environment of an installed app's engine pack."""


def packed() -> bool:
    """Whether this is the engine pack's Python."""
    return (Path(sys.prefix) / PACK_FILE).exists()


def installed() -> bool:
    """Whether an installed app runs, with its own Python or with that of its engine pack."""
    return bool(getattr(sys, "frozen", False)) or packed()


def name() -> str:
    """The command without this copy's location, for texts that others read too."""
    return "shoal" if installed() else "./shoal"


def command(words: str = "") -> str:
    """What to type in a terminal: "./shoal doctor" in a checkout, "shoal doctor" where that is installed."""
    own = os.environ.get(VARIABLE, "") if installed() else ""
    return f"{own or name()} {words}".rstrip()


def repair(engine: str = "", note: str = "") -> str:
    """How to repair an engine, for the middle of a sentence; `note` is added if the set-up does it."""
    if installed():
        return f"repair the engine in Shoal's window, or with {command('pack repair')}"
    return f"run {command(f'setup --engine {engine}' if engine else 'setup')}{note}"


def reinstall(note: str = "") -> str:
    """How to repair the application itself, likewise."""
    return "install Shoal again" if installed() else f"run {command('setup')}{note}"
