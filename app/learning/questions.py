"""A node's questions for a round: its own, which follow from its identity and the round alone, and those of
the swarm's common deck, which follow from the swarm and the epoch."""

from __future__ import annotations

from random import Random

import msgspec

from app.sapo import curriculum, seeds
from app.sapo.questions import Asked, Coordinates, Maker, QuestionError

_ATTEMPTS = 200
"""Redraws of one slot. One text in eight is held out, so this many misses mean a level with almost no items."""


class Deck(msgspec.Struct, frozen=True, kw_only=True):
    """A swarm's common questions of an epoch. A round's slots below `slots` are theirs, the deck's from `first`
    on."""

    swarm: str
    epoch: int
    slots: int
    first: int = 0


def shared_slots(groups: int, share: float) -> int:
    """How many of a round's questions come from the deck.

    >>> [shared_slots(8, share) for share in (0.0, 0.3, 0.5, 1.0)], shared_slots(1, 0.5)
    ([0, 2, 4, 8], 0)
    """
    return round(groups * share)


def met(state: curriculum.Curriculum, deck: Deck, slot: int) -> tuple[str, int]:
    """Family and level of a slot of the deck: of the families that a node practises the one with the smallest
    hash, so that nodes with different families agree wherever they can (rendezvous hashing, Thaler and
    Ravishankar 1998)."""

    def place(family: str) -> int:
        return seeds.hashed("deck family", deck.swarm, deck.epoch, slot, family)

    alone = min(state.families, key=lambda progress: place(progress.family))
    return curriculum.draw(msgspec.structs.replace(state, families=(alone,)), Random(place("")))


def own_questions(
    state: curriculum.Curriculum,
    identity: bytes,
    round: int,
    count: int,
    make: Maker,
    first: int = 0,
    deck: Deck | None = None,
) -> list[Asked]:
    """`count` questions of a round, from slot `first` on; asking for more never changes the earlier ones.

    Held-out questions are passed over by their text. Raises QuestionError when a level has no others.
    """
    slots = range(first, first + count)
    common = {slot: deck.first + slot for slot in slots if deck is not None and slot < deck.slots}
    levels = {
        slot: met(state, deck, common[slot])
        if deck is not None and slot in common
        else curriculum.draw(state, Random(seeds.hashed("family", identity, round, slot)))
        for slot in slots
    }

    def seed(slot: int, attempt: int) -> int:
        if deck is None or slot not in common:
            return seeds.training_seed(identity, round, slot, attempt)
        return seeds.deck_seed(deck.swarm, deck.epoch, *levels[slot], common[slot], attempt)

    questions: dict[int, Asked] = {}
    for attempt in range(_ATTEMPTS):
        open_slots = [slot for slot in slots if slot not in questions]
        if not open_slots:
            break
        places = [
            Coordinates(
                family=levels[slot][0],
                level=levels[slot][1],
                seed=seed(slot, attempt),
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
