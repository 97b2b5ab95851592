"""What commands have in common: the options that several of them take, each declared once, the data folder that
a reading command opens without a network, and an answer as JSON or as a sentence."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli._terminal import json_line, say
from app.common.home import home

if TYPE_CHECKING:
    from engines.contract import Engine

OPTIONS: dict[str, dict[str, Any]] = {
    "home": {"type": Path, "metavar": "DIR", "help": "where all data lies (also: SHOAL_HOME)"},
    "model": {
        "default": "starter",
        "help": "starter, the name of a downloaded model, a folder or a .gguf file",
    },
    "engine": {"help": "what samples and learns; auto takes what suits this computer"},
    "json": {"action": "store_true", "help": "one JSON object on standard output"},
    "yes": {"action": "store_true", "help": "do not ask"},
    "attached": {"action": "store_true", "help": argparse.SUPPRESS},
    "wait": {"type": float, "default": 0.0, "help": argparse.SUPPRESS},
}
"""The shared options. --attached ends a command when its standard input closes, as a window's child; --wait
is how many seconds a node may take to leave the data folder."""


def share(parser: argparse.ArgumentParser, *names: str, again: bool = False, **helps: str) -> None:
    """Adds shared options, those in `helps` with a help text of the command's own. `again`: they also stand
    before a verb, so that the verb's copies have no default that would override."""
    for name in (*names, *helps):
        spec = dict(OPTIONS[name])
        if name == "engine":
            from engines.opening import AUTO, ENGINE_CHOICES

            spec |= {"choices": ENGINE_CHOICES, "default": AUTO}
        if name in helps:
            spec["help"] = helps[name]
        if again:
            spec["default"] = argparse.SUPPRESS
        parser.add_argument(f"--{name}", **spec)


def reading_home(args: argparse.Namespace) -> Path:
    """Returns the data folder for a command that only reads it: engines find it too (SHOAL_HOME), and from now
    on this process opens no network socket."""
    from app.node.trainer import solo

    data = home(args.home)
    os.environ["SHOAL_HOME"] = str(data)
    solo.refuse_network()
    return data


def opener(args: argparse.Namespace) -> Callable[[Path, int | None], Engine]:
    """Returns a function that opens a model's folder with an adapter's rank on the engine of --engine, or on
    the one that suits."""
    from engines import opening

    chosen = getattr(args, "engine", opening.AUTO)
    return lambda folder, rank: opening.open_engine(chosen, folder, rank=rank)


def tell(args: argparse.Namespace, sentence: str, /, **figures: object) -> None:
    """Prints an answer: `figures` as one JSON object with --json, else the sentence."""
    if args.json:
        json_line(figures)
    else:
        say(sentence)
