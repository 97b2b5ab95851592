"""The settings of one run: what the model's maker recommends (`shoal.json`), and the flags on top."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.node.record.errors import NodeError, UsageError
from app.sapo.families import FAMILIES
from engines.opening import AUTO

COMPLETIONS = 8
"""G: completions of a group, everywhere."""
_MIDDLING, _LARGE = 200 * 10**6, 600 * 10**6


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides how a run goes; written into the history. `groups` is I, `external` is J."""

    model: str
    engine: str = AUTO
    """One of engines.opening.CHOICES; which one it came to is in the history beside it."""
    families: dict[str, int]
    groups: int
    external: int
    completions: int = COMPLETIONS
    max_tokens: int
    learning_rate: float
    rank: int | None
    recipe: str
    probe_every: int
    probe_questions: int
    solo: bool
    rounds: int | None
    seed: int | None
    shuffled_rewards: bool
    public_model: str = "local"
    """What peers are told of the model: "starter", a hub's name, or "local". Never a folder."""
    rest: float = 0.0
    """Round lengths of rest after each round."""
    own_share: float = 1.0
    """Share of a round's questions that are of the owner's sets, where puzzles are in play beside them."""
    others: dict[str, int] = {}
    """Families beside `families` that peers' answers may teach to a model that names its families. The starter
    has none: answers in four foreign families taught it nothing (LOG.md)."""
    place: bool = False
    """Whether `families` are candidates, of which the model first finds those that it can begin with."""


def starting_levels(model: Path, own: Mapping[str, int]) -> dict[str, int]:
    """The families that a model starts with: its own, or all at level 0. Raises NodeError for unknown ones."""
    families = dict(own) or dict.fromkeys(FAMILIES, 0)
    check_families(families, f"shoal.json of the model {model.name} names")
    return families


def probe_size(model: Path) -> int:
    """Questions of a probe: 256, and fewer for weights (in bytes) so large that answering takes minutes."""
    size = sum(path.stat().st_size for path in model.glob("*.safetensors"))
    return 64 if size > _LARGE else 128 if size > _MIDDLING else 256


def chosen_families(text: str, known: Mapping[str, int]) -> dict[str, int]:
    """The families of `--families chain_sum,gcd`: each at the model's own first level, else at 0. Raises
    UsageError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    families = {name: known.get(name, 0) for name in names}
    try:
        check_families(families, "--families names")
    except NodeError as error:
        raise UsageError(str(error)) from error
    return families


def check_families(families: Mapping[str, int], who: str) -> None:
    """Raises NodeError for a family or level that does not exist, or when there is none."""
    if not families:
        raise NodeError(f"{who} no family: name at least one of {', '.join(sorted(FAMILIES))}.")
    for name, level in families.items():
        if name not in FAMILIES:
            raise NodeError(f"{who} {name!r}, which is no family: choose from {', '.join(sorted(FAMILIES))}.")
        if not 0 <= level < len(FAMILIES[name].levels):
            raise NodeError(
                f"{who} {name} at level {level}: it has levels 0 to {len(FAMILIES[name].levels) - 1}."
            )
