"""The learner's state that carries over from round to round, apart from its adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from app.learning.brake import PeerBrake
from app.sapo import curriculum
from app.sapo.curriculum import Curriculum, FamilyTally
from app.sapo.defences import Habits
from app.sapo.forms import FormTrend
from app.sapo.groups import ScoredGroup


class LearningState(msgspec.Struct, frozen=True, kw_only=True):
    """`own_logprob`: running mean log-prob of the tokens of own completions (nats). `steps`: optimiser steps so
    far."""

    curriculum: Curriculum
    own_logprob: float | None = None
    habits: Habits | None = None
    """Statistics of own answers, with which peers' answers are compared."""
    pays: FormTrend = FormTrend()
    """Running trend of the answer form that own groups reward; peers' groups may not push another form."""
    vigil: PeerBrake = PeerBrake()
    """State of the brake that stops learning from peers when own answers get worse."""
    steps: int = 0


def fresh(levels: Mapping[str, int]) -> LearningState:
    """Returns the state before the first round, with these families at these levels. Raises QuestionError."""
    return LearningState(curriculum=curriculum.start(levels))


def tallies(groups: Sequence[ScoredGroup], levels: Mapping[str, int]) -> dict[str, FamilyTally]:
    """Counts right answers and all answers of each family at its level in `levels`; answers at other levels are
    left out."""
    found: dict[str, FamilyTally] = {}
    for scored in groups:
        family = scored.group.coordinates.family
        if levels.get(family) != scored.group.coordinates.level:
            continue
        before = found.get(family, FamilyTally(0, 0))
        found[family] = FamilyTally(
            before.solved + sum(scored.rewards_G), before.answered + len(scored.rewards_G)
        )
    return found


def climbed(state: Curriculum, own_P: Sequence[ScoredGroup]) -> Curriculum:
    """Returns the curriculum updated with a round's own groups."""
    return curriculum.observe(state, tallies(own_P, state.levels))
