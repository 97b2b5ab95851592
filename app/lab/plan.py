"""The plan that a study fixes for all of its arms, the records of a run's rounds, and a node's answers and
training results in a round. Shapes: `_G` completions of a group, `_T` tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from engines.contract import Completion, Messages

if TYPE_CHECKING:
    from app.learning.round_weights import WeighedGroups


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
    way: Literal["tagged", "brief"] = "tagged"
    """The prompt format, by its name in `app.sapo.asking`. Training prompts have no examples."""


class LabProbe(msgspec.Struct, frozen=True, kw_only=True):
    """Results on held-out questions, one answer each at temperature 1. `_N` nodes; shares in [0, 1]."""

    pass_at_1_N: tuple[float, ...]
    families: dict[str, float]
    """Share solved per family, over all nodes."""
    finished: float
    worked: float
    nodes: dict[str, tuple[float, ...]] | None = None
    """Share solved per family, for each node."""


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
    own_reward: float = 0.0
    batch_reward: float = 0.0
    finished: float = 0.0
    worked: float = 0.0
    steps: int = 0
    """Optimiser steps made, over all nodes."""
    gated_right: int = 0
    gated_wrong: int = 0
    peer_scale: float = 1.0
    seconds: float = 0.0
    """Wall time of sampling, scoring and learning, without the probe."""
    cpu_seconds: float = 0.0
    """Processor time of this process for the round, which other programs do not inflate; scoring runs in a
    child process and is not included."""
    sampling_seconds: float = 0.0
    learning_seconds: float = 0.0
    probe: LabProbe | None = None
    extra: dict[str, float] | None = None
    """How far attackers came (`app.lab.rounds.hostile`)."""


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
    """Figures of one node's training step."""

    own: int
    peer: int
    batch_reward: float
    steps: int
    weighed: WeighedGroups


def group_of(coordinates: Coordinates, completions_G: Sequence[Completion], model: str) -> GroupRecord:
    """Builds the group that is published and scored from a model's completions of one question."""
    return GroupRecord(
        coordinates=coordinates,
        completions_G=tuple(completion.text for completion in completions_G),
        finished_G=tuple(completion.finished for completion in completions_G),
        model=model,
    )
