"""A node's own questions for a round. They follow from its identity and the round alone."""

from __future__ import annotations

from random import Random

from app.sapo import curriculum, seeds
from app.sapo.questions import Question, QuestionError, draw

_ATTEMPTS = 200
"""Redraws of one slot. One text in eight is held out, so this many misses mean a level with almost no items."""


def own_questions(state: curriculum.Curriculum, identity: bytes, round: int, count: int) -> list[Question]:
    """The first `count` questions of a round; asking for more never changes the earlier ones.

    Held-out questions are passed over by their text. Raises QuestionError when a level has no others.
    """
    return [_own_question(state, identity, round, slot) for slot in range(count)]


def _own_question(state: curriculum.Curriculum, identity: bytes, round: int, slot: int) -> Question:
    family, level = curriculum.draw(state, Random(seeds.hashed("family", identity, round, slot)))
    for attempt in range(_ATTEMPTS):
        question = draw(family, level, seeds.training_seed(identity, round, slot, attempt))
        if not seeds.held_out(question.text):
            return question
    raise QuestionError(f"{family} at level {level} has no question to train on: all of them are held out.")
