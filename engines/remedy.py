"""The commands that people are told to run when an engine's library is missing or broken.

In a checkout the set-up mends it; in an installed app the engine is a pack, which can be repaired.
app/common/remedy.py says the same for the application, of which engines know nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "SHOAL_COMMAND"
"""Environment variable: the command that starts an installed app in a terminal; its program sets it."""
PACK_FILE = "shoal-pack.json"
"""A file that marks the Python environment of an installed app's engine pack."""


def packed() -> bool:
    """Whether this is the engine pack's Python."""
    return (Path(sys.prefix) / PACK_FILE).exists()


def installed() -> bool:
    """Whether an installed app runs, with its own Python or with that of its engine pack."""
    return bool(getattr(sys, "frozen", False)) or packed()


def command(words: str) -> str:
    """What to type in a terminal: "./shoal doctor" in a checkout, "shoal doctor" where that is installed."""
    return f"{(os.environ.get(VARIABLE) or 'shoal') if installed() else './shoal'} {words}"


def repair(engine: str = "", note: str = "") -> str:
    """How to repair an engine, for the middle of a sentence; `note` is added if the set-up does it."""
    if installed():
        return f"repair the engine in Shoal's window, or with {command('pack repair')}"
    return f"run {command(f'setup --engine {engine}' if engine else 'setup')}{note}"
