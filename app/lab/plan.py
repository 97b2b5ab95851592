"""The plan that a study fixes for all of its arms, the records of a run's rounds, and a node's answers and
training results in a round. Shapes: `_G` completions of a group, `_T` tokens."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from engines.contract import Completion, Messages

if TYPE_CHECKING:
    from app.learning.lesson import WeighedGroups


def digest(model: Path) -> str:
    """Short digest of a model folder's weights and configuration."""
    total = blake2b(digest_size=8)
    for path in sorted([*model.glob("*.safetensors"), *model.glob("config.json")]):
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                total.update(chunk)
    return total.hexdigest()


def identity(seed: int, node: int) -> bytes:
    """The bytes used in place of a node's public key: all random seeds of its run are derived from them."""
    return f"lab seed {seed} node {node}".encode()


class StudyPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a study except arm and seed. Two runs with equal plan, arm and seed give equal
    results."""

    model: str
    """The base model. Its own settings apply to all nodes unless an option overrides them."""
    weights: str
    """Digest of the model's files, since a name may later refer to another model."""
    questions: str
    """Version of the questions, as in their coordinates."""
    levels: dict[str, int]
    """Families, each with the level at which it is trained and measured. Levels are fixed: no curriculum."""
    nodes: int
    rounds: int
    group: int
    """G, completions per question."""
    learning_rate: float
    rank: int | None
    max_tokens: int
    probe_every: int
    probe_items: int
    window: int | None
    """Rounds for which a group stays in the pool after its own; None: the recipe's `max_age`, else 0."""
    attempts: int
    """Dynamic sampling: maximum number of times that a round draws questions."""
    tried: int = 64
    """Held-out questions answered eight times for pass@8, before the first round and after the last."""
    regime: str = ""
    """Name of the file in app/lab/regimes with these settings."""
    starters: tuple[str, ...] = ()
    """For each node the name of the PEFT adapter over `model` that it starts with; empty: all start with
    `model`."""
    starter_weights: tuple[str, ...] = ()
    """Digests of `starters`."""
    way: Literal["tagged", "brief"] = "tagged"
    """The prompt format, by its name in `app.sapo.asking`. Training prompts have no examples."""
    words: Literal[2] = 2
    """Version of the meaning of arms' names: 2 since `@default` is the app's whole recipe with defences;
    before, it had none."""


class LabProbe(msgspec.Struct, frozen=True, kw_only=True):
    """Results on held-out questions, one answer each at temperature 1. `_N` nodes; shares in [0, 1]."""

    pass_at_1_N: tuple[float, ...]
    families: dict[str, float]
    """Share solved per family, over all nodes."""
    finished: float
    worked: float
    pass_at_8_N: tuple[float, ...] | None = None
    """Share of a part of the questions solved at least once in eight answers."""
    nodes: dict[str, tuple[float, ...]] | None = None
    """Share solved per family, for each node."""
    marked_N: tuple[float, ...] | None = None
    """Share of answers that carry an attacker's mark."""
    marked: dict[str, float] | None = None
    """Share of answers that carry an attacker's mark per family, where it is above 0."""


class LabRound(msgspec.Struct, frozen=True, kw_only=True):
    """One round of all nodes. Rates and counts of groups are means over nodes. Round 0 is the probe before
    training.

    `own_reward` is the mean reward of everything a node generated, before selection. `batch_reward` is the mean
    reward of what it trained on, with the chosen peer groups: the paper's measure, which selection alone can
    raise."""

    round: int
    generated: int = 0
    """Completions sampled for training, by all nodes together."""
    generated_tokens: int = 0
    informative_own: float = 0.0
    informative_peer: float = 0.0
    predicted_own: float | None = None
    predicted_peer: float | None = None
    own_reward: float = 0.0
    batch_reward: float = 0.0
    finished: float = 0.0
    worked: float = 0.0
    steps: int = 0
    """Optimiser steps made, over all nodes."""
    gated_right: int = 0
    gated_wrong: int = 0
    peer_scale: float = 1.0
    reencoded_same: float | None = None
    """Share of peer completions whose text, encoded again, gives the sender's tokens."""
    seconds: float = 0.0
    """Wall time of sampling, scoring and learning, without the probe."""
    cpu_seconds: float = 0.0
    """Processor time of this process for the round, which other programs do not inflate; scoring runs in a
    child process and is not included."""
    sampling_seconds: float = 0.0
    learning_seconds: float = 0.0
    probe: LabProbe | None = None
    active: int | None = None
    """Number of nodes that took part; rates and counts are means over them. None in older records."""
    own: float | None = None
    """Own groups sampled per node, before any redrawing."""
    own_nats: float | None = None
    """Mean of -log prob per token of own completions: an estimate of the policy's entropy."""
    peer_nats: float | None = None
    """Mean of -log prob per token of the peers' text under its reader's policy, before the step; in rounds with
    a probe."""
    extra: dict[str, float] | None = None
    """Measurements of the arm's options."""

    @property
    def taken(self) -> float:
        """Number of peers' groups that a node trained on."""
        return self.informative_peer


@dataclass(frozen=True)
class AnsweredQuestion:
    """One question answered by one node: the published group, and its tokens, which only the node knows."""

    node: int
    round: int
    scored: GroupRecord
    prompt: Messages
    completions_G: list[Completion]
    dealt_G: tuple[int, ...]
    """The rewards to train on: the verifier's, or shuffled ones in the control."""

    @property
    def training_group(self) -> GroupRecord:
        """The group with the rewards to train on."""
        return msgspec.structs.replace(self.scored, rewards_G=self.dealt_G)


@dataclass(frozen=True)
class TrainingResult:
    """Figures of one node's training step. `peer_logprob`: mean log prob per token (nats) of the peers' text
    under the learner before the step, if requested."""

    own: int
    peer: int
    batch_reward: float
    steps: int
    weighed: WeighedGroups
    peer_logprob: float | None = None


def group_of(coordinates: Coordinates, completions_G: Sequence[Completion], model: str) -> GroupRecord:
    """Builds the group that is published and scored from a model's completions of one question."""
    return GroupRecord(
        coordinates=coordinates,
        completions_G=tuple(completion.text for completion in completions_G),
        finished_G=tuple(completion.finished for completion in completions_G),
        model=model,
    )


def token_mean(logprobs: Sequence[Sequence[float]]) -> float | None:
    """Mean over all tokens; None without tokens.

    >>> token_mean([[-1.0], [-2.0, -3.0]])
    -2.0
    """
    tokens = [value for logprobs_T in logprobs for value in logprobs_T]
    return sum(tokens) / len(tokens) if tokens else None


FOLDER = Path(__file__).parent / "regimes"
SELDOM = "seldom"
"""The starter adapter of a node that is equally weak in all families and seldom shows its work."""


class RegimeError(ValueError):
    """A regime is missing or cannot be read. The message says which, why, and what would be valid."""


class StudySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A study's settings, named as the options of `./shoal lab`. Missing ones have the option's default."""

    model: str = "starter"
    levels: dict[str, int]
    starters: tuple[str, ...] = ()
    """For each node the folder of the PEFT adapter over `model` that it starts with, within `--starters`."""
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


def regimes() -> list[str]:
    """Names of the regimes that come with Shoal."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def read_regime(name: str) -> StudySettings:
    """Reads the regime called `name`, or the file at this path if it ends in .toml. Raises RegimeError."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(found, StudySettings)
    except FileNotFoundError as error:
        known = ", ".join(regimes())
        raise RegimeError(
            f"There is no regime {name!r}: choose one of {known}, or give a .toml file."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise RegimeError(f"The regime {path} cannot be read ({error}): correct the file.") from error


def read_levels(text: str) -> dict[str, int]:
    """Parses families and their levels from an option's text. Raises RegimeError.

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
    """The families that a specialist knows, parsed from its name (joined by `+`); none for `seldom`. Raises
    RegimeError.

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
