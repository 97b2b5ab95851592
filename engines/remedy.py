"""The commands that users are told to run: how this copy of Shoal is started and repaired.

A checkout is started with ./shoal and repaired by its set-up. An installed app is started by the command its
installer created; its engine is a pack, which can be repaired."""

from __future__ import annotations

import os
import sys
from pathlib import Path

COMMAND_ENV = "SHOAL_COMMAND"
"""Environment variable: the terminal command that starts an installed app; set by its program for all its
processes."""
PACK_FILE = "shoal-pack.json"
"""A file that marks the Python environment of an installed app's engine pack."""


LIBRARY = __name__.startswith("shoal_swarm.")
"""Whether this is a copy in the library for other trainers (packaging/library), which pip installs."""


def packed() -> bool:
    """Returns whether this Python is that of an engine pack."""
    return (Path(sys.prefix) / PACK_FILE).exists()


def installed() -> bool:
    """Returns whether this is an installed app, running its own Python or that of its engine pack."""
    return LIBRARY or bool(getattr(sys, "frozen", False)) or packed()


def short_command() -> str:
    """Returns the command that starts Shoal, without its path on this computer, for texts that other people
    read too."""
    return "shoal" if installed() else "./shoal"


def command(words: str = "") -> str:
    """Returns a command to type in a terminal: "./shoal doctor" in a checkout, "shoal doctor" in an installed
    app."""
    own = os.environ.get(COMMAND_ENV, "") if installed() else ""
    return f"{own or short_command()} {words}".rstrip()


def repair_phrase(engine: str = "", note: str = "") -> str:
    """Returns a phrase that says how to repair an engine, for the middle of a sentence; `note` is appended if
    the set-up repairs it."""
    if LIBRARY:
        return "install shoal-swarm and its requirements again, with pip"
    if installed():
        return f"repair the engine in Shoal's window, or with {command('pack repair')}"
    return f"run {command(f'setup --engine {engine}' if engine else 'setup')}{note}"


def reinstall_phrase(note: str = "") -> str:
    """Returns a phrase that says how to repair the application itself, for the middle of a sentence; `note` as
    in `repair_phrase`."""
    return "install Shoal again" if installed() else f"run {command('setup')}{note}"
