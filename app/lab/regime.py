"""Reading a regime: the settings of a study from a file in app/lab/regimes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

FOLDER = Path(__file__).parent / "regimes"
SELDOM = "seldom"
"""The starter of a node that is equally weak in all families and seldom shows its work."""


class RegimeError(ValueError):
    """A regime that is missing or cannot be read. The message says which, why, and what would be valid."""


class Regime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A study's settings, named as the options of `./shoal lab`. What is absent has the option's default."""

    model: str = "starter"
    levels: dict[str, int]
    starters: tuple[str, ...] = ()
    """For each node the folder of the PEFT adapter over `model` that it begins with, within `--starters`."""
    models: tuple[str, ...] = ()
    """For each node the name or folder of its model; empty: `model` for all."""
    way: Literal["tagged", "brief"] = "tagged"
    nodes: int = 8
    rounds: int = 100
    group: int = 8
    learning_rate: float | None = None
    rank: int | None = None
    max_tokens: int | None = None
    probe_every: int = 10
    probe_items: int = 256
    tried: int = 64
    window: int | None = None
    attempts: int = 10


def regimes(folder: Path = FOLDER) -> list[str]:
    """Names of the regimes that come with Shoal."""
    return sorted(file.stem for file in folder.glob("*.toml"))


def read_regime(name: str, folder: Path = FOLDER) -> Regime:
    """The regime called `name`, or in the file of that path when it ends in .toml. Raises RegimeError."""
    path = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(found, Regime)
    except FileNotFoundError as error:
        known = ", ".join(regimes(folder))
        raise RegimeError(
            f"There is no regime {name!r}: choose one of {known}, or give a .toml file."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise RegimeError(f"The regime {path} cannot be read ({error}): correct the file.") from error


def read_levels(text: str) -> dict[str, int]:
    """Families and their levels as an option names them. Raises RegimeError.

    >>> read_levels("chain_sum=1, gcd=0")
    {'chain_sum': 1, 'gcd': 0}
    """
    levels = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, level = part.partition("=")
        if not level.strip().isdecimal():
            raise RegimeError(f"{part!r} is no level: write --levels family=level, for example chain_sum=1.")
        levels[name.strip()] = int(level)
    return levels


def families_of(starter: str, levels: Mapping[str, int]) -> tuple[str, ...]:
    """The families that a specialist knows: its name joins them by `+`. `seldom` knows none.
    Raises RegimeError.

    >>> families_of("gcd+lcm", {"gcd": 1, "lcm": 1, "chain_sum": 2})
    ('gcd', 'lcm')
    """
    if starter == SELDOM:
        return ()
    families = tuple(starter.split("+"))
    if not set(families) < set(levels):
        raise RegimeError(
            f"{starter!r} is no specialist of {', '.join(levels)}: join some of these families by a plus sign."
        )
    return families
