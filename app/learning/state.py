"""The state that a learner carries from round to round, beside its adapter."""

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
    """`own_logprob` is the running mean of own completions' token log-prob (nats), `steps` counts optimiser
    steps."""

    curriculum: Curriculum
    own_logprob: float | None = None
    habits: Habits | None = None
    """What own answers are like; peers' answers are compared with it."""
    pays: FormTrend = FormTrend()
    """Which form own groups pay for; peers may not teach another one."""
    vigil: PeerBrake = PeerBrake()
    """State of the brake that stops learning from peers when own answers get worse."""
    steps: int = 0


def fresh(levels: Mapping[str, int]) -> LearningState:
    """The state before the first round, with these families at these levels. Raises QuestionError."""
    return LearningState(curriculum=curriculum.start(levels))


def tallies(groups: Sequence[ScoredGroup], levels: Mapping[str, int]) -> dict[str, FamilyTally]:
    """Right answers and all answers of each family at its level in `levels`; answers at other levels are left
    out."""
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
    """The curriculum after a round's own groups."""
    return curriculum.observe(state, tallies(own_P, state.levels))
