"""What one run does: the model's own settings (`shoal.json` beside its weights), general ones, and the flags on
top."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.node.errors import NodeError, UsageError
from app.sapo.families import FAMILIES

MODEL_SETTINGS = "shoal.json"
COMPLETIONS = 8
"""G: completions of a group, everywhere."""
_SETTINGS_BYTES = 2**16
_LARGE, _HUGE = 200 * 10**6, 2_500 * 10**6


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """`shoal.json`: where reinforcement learning of this model begins. What is missing comes from `general`.

    `families` maps each to its first level, on which the model is also probed; `rank` None lets the engine
    choose.
    """

    families: dict[str, int] | None = None
    groups: int | None = None
    max_tokens: int | None = None
    learning_rate: float | None = None
    rank: int | None = None
    probe_questions: int | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides how a run goes; written into the history. `groups` is I, `external` is J."""

    model: str
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


def read(model: Path) -> ModelSettings:
    """The model's own settings; empty ones when it has none. Raises NodeError for a file that makes no
    sense."""
    path = model / MODEL_SETTINGS
    if not path.exists():
        return ModelSettings()
    try:
        with path.open("rb") as file:
            settings = msgspec.json.decode(file.read(_SETTINGS_BYTES), type=ModelSettings)
    except (OSError, msgspec.MsgspecError) as error:
        raise NodeError(
            f"{path} cannot be read ({error}): correct it, or remove it to use general settings."
        ) from error
    if settings.families is not None:
        check_families(settings.families, f"{path} names")
    numbers = (
        settings.groups,
        settings.max_tokens,
        settings.learning_rate,
        settings.rank,
        settings.probe_questions,
    )
    if any(number is not None and number <= 0 for number in numbers):
        raise NodeError(
            f"A number in {path} is not above zero: correct it, or remove the file to use general settings."
        )
    return settings


def general(model: Path) -> ModelSettings:
    """Settings for a model that brings none, by the size of its weights.

    Rates are those of research on LoRA and small models: 2e-5 above a billion parameters, 3e-5 around half a
    billion, more for models small enough to be trained from scratch. A large model's probe is shorter: it can
    take minutes.
    """
    size = sum(path.stat().st_size for path in model.glob("*.safetensors"))
    return ModelSettings(
        families=dict.fromkeys(FAMILIES, 0),
        groups=4,
        max_tokens=256,
        learning_rate=2e-5 if size > _HUGE else 3e-5 if size > _LARGE else 5e-4,
        probe_questions=64 if size > _LARGE else 256,
    )


def merged(own: ModelSettings, fallback: ModelSettings) -> ModelSettings:
    """Every field of `own` that is set, else the fallback's."""
    chosen = {
        name: getattr(own, name) if getattr(own, name) is not None else getattr(fallback, name)
        for name in ModelSettings.__struct_fields__
    }
    return ModelSettings(**chosen)


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
