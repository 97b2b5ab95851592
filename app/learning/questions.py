"""A node's own questions for a round. They follow from its identity and the round alone."""

from __future__ import annotations

from random import Random

from app.sapo import curriculum, seeds
from app.sapo.questions import Asked, Coordinates, Maker, QuestionError

_ATTEMPTS = 200
"""Redraws of one slot. At most one content in three is held out: this many misses mean almost no items."""


def own_questions(
    state: curriculum.Curriculum, identity: bytes, round: int, count: int, make: Maker, first: int = 0
) -> list[Asked]:
    """`count` questions of a round, from slot `first` on; asking for more never changes the earlier ones.

    Held-out questions are passed over by their content. Raises QuestionError when a level has no others.
    """
    slots = range(first, first + count)
    levels = {
        slot: curriculum.draw(state, Random(seeds.hashed("family", identity, round, slot))) for slot in slots
    }
    questions: dict[int, Asked] = {}
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
