"""Draws a round's own questions, from nothing but the curriculum, the identity and the round, and updates the
curriculum with their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from app.sapo import curriculum, seeds
from app.sapo.curriculum import Curriculum, FamilyTally
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates, QuestionError, QuestionMaker, QuestionPrompt

_ATTEMPTS = 200
"""Maximum redraws of one slot. At most one question in three is held out, so this many misses mean that the
level has almost no items."""


def own_questions(
    state: Curriculum,
    identity: bytes,
    round: int,
    count: int,
    make: QuestionMaker,
    first: int = 0,
) -> list[QuestionPrompt]:
    """Returns `count` questions of a round, from slot `first` on; a larger count never changes the earlier
    ones. Questions with held-out content are skipped. Raises QuestionError if a level has no others."""
    slots = range(first, first + count)
    levels = {
        slot: curriculum.draw(state, Random(seeds.hashed_seed("family", identity, round, slot)))
        for slot in slots
    }
    questions: dict[int, QuestionPrompt] = {}
    for attempt in range(_ATTEMPTS):
        open_slots = [slot for slot in slots if slot not in questions]
        if not open_slots:
            break
        places = [
            Coordinates(
                family=levels[slot][0],
                level=levels[slot][1],
                seed=seeds.training_seed(identity, round, slot, attempt),
                index=0,
            )
            for slot in open_slots
        ]
        for slot, question in zip(open_slots, make(places, onward=True), strict=True):
            if isinstance(question, QuestionError):
                raise question
            if not question.held_out:
                questions[slot] = question
    for slot, (family, level) in levels.items():
        if slot not in questions:
            raise QuestionError(
                f"{family} at level {level} has no question to train on: all of them are held out."
            )
    return [questions[slot] for slot in slots]


def tallies(groups: Sequence[GroupRecord], levels: Mapping[str, int]) -> dict[str, FamilyTally]:
    """Counts right answers and all answers of each family at its level in `levels`; answers at other levels are
    left out."""
    found: dict[str, FamilyTally] = {}
    for scored in groups:
        family = scored.coordinates.family
        if levels.get(family) != scored.coordinates.level:
            continue
        before = found.get(family, FamilyTally(0, 0))
        found[family] = FamilyTally(
            before.solved + sum(scored.rewards_G), before.answered + len(scored.rewards_G)
        )
    return found


def update_curriculum(state: Curriculum, own_P: Sequence[GroupRecord]) -> Curriculum:
    """Returns the curriculum updated with a round's own groups."""
    return curriculum.after_round(state, tallies(own_P, state.levels))
