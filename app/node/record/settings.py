"""The settings of one run: the model's recommended ones (`shoal.json`), overridden by command-line flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.node.record.errors import NodeError, UsageError
from app.sapo.families import FAMILIES
from engines.opening import AUTO

COMPLETIONS = 8
"""G: completions per group, the same everywhere."""
_MIDDLING, _LARGE = 200 * 10**6, 600 * 10**6


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that determines a run; stored in the history. `groups` is I, `external` is J."""

    model: str
    engine: str = AUTO
    """One of engines.opening.ENGINE_CHOICES; the engine actually used is in the history too."""
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
    """The model's name told to peers: "starter", a hub's name, or "local". Never a folder."""
    rest: float = 0.0
    """Rest after each round, as a multiple of the round's length."""
    others: dict[str, int] = {}
    """Families besides `families` that peers' answers may teach to a model that names its own. Empty for the
    starter: answers in four more families taught it nothing (LOG.md)."""
    place: bool = False
    """Whether `families` are only candidates, among which a placement finds those that the model can begin
    with."""


def starting_levels(model: Path, own: Mapping[str, int]) -> dict[str, int]:
    """Returns the families that a model starts with: its own, or all at level 0. Raises NodeError for unknown
    ones."""
    families = dict(own) or dict.fromkeys(FAMILIES, 0)
    check_families(families, f"shoal.json of the model {model.name} names")
    return families


def probe_size(model: Path) -> int:
    """Returns the number of questions of a probe: 256, or fewer for models so large that answering takes
    minutes."""
    size = sum(path.stat().st_size for path in model.glob("*.safetensors"))
    return 64 if size > _LARGE else 128 if size > _MIDDLING else 256


def chosen_families(text: str, known: Mapping[str, int]) -> dict[str, int]:
    """Parses `--families chain_sum,gcd`: each family at the model's own starting level, else at 0. Raises
    UsageError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    families = {name: known.get(name, 0) for name in names}
    try:
        check_families(families, "--families names")
    except NodeError as error:
        raise UsageError(str(error)) from error
    return families


def check_families(families: Mapping[str, int], who: str) -> None:
    """Raises NodeError for a family or level that does not exist, or if there is no family."""
    if not families:
        raise NodeError(f"{who} no family: name at least one of {', '.join(sorted(FAMILIES))}.")
    for name, level in families.items():
        if name not in FAMILIES:
            raise NodeError(f"{who} {name!r}, which is no family: choose from {', '.join(sorted(FAMILIES))}.")
        if not 0 <= level < len(FAMILIES[name].levels):
            raise NodeError(
                f"{who} {name} at level {level}: it has levels 0 to {len(FAMILIES[name].levels) - 1}."
            )
