"""The commands that people are told to run: how this copy of Shoal is started, and how it is mended.

A checkout is started with ./shoal, and its set-up mends it. An installed app is started by what its installer
put there; its engine is a pack, which can be repaired, and all the rest comes new when it is installed again.
engines/remedy.py says the same for the engines, which know nothing of the application."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "SHOAL_COMMAND"
"""What starts an installed app in a terminal: its program tells all processes of the app."""
_MARK = "shoal-pack.json"  # app.install.packs.place.MARK


def installed() -> bool:
    """Whether an installed app runs, with its own Python or with that of its engine pack."""
    return bool(getattr(sys, "frozen", False)) or (Path(sys.prefix) / _MARK).exists()


def name() -> str:
    """For what others read too: it tells nothing of where this copy is."""
    return "shoal" if installed() else "./shoal"


def command(words: str = "") -> str:
    """What to type in a terminal: "./shoal doctor" in a checkout, "shoal doctor" where that is installed."""
    own = os.environ.get(VARIABLE, "") if installed() else ""
    return f"{own or name()} {words}".rstrip()


def repair(note: str = "") -> str:
    """What mends the engine, for the middle of a sentence; `note` follows where the set-up does it."""
    if installed():
        return f"repair the engine in Shoal's window, or with {command('pack repair')}"
    return f"run {command('setup')}{note}"


def reinstall(note: str = "") -> str:
    """What mends the application itself, likewise."""
    return "install Shoal again" if installed() else f"run {command('setup')}{note}"
