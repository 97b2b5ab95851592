"""The puzzle of the day: the same for everybody on that day (UTC), from the day and the ladder alone."""

from __future__ import annotations

from datetime import UTC, date, datetime

from app.chat.puzzles import Puzzle
from app.sapo import questions
from app.sapo.families import FAMILIES
from app.sapo.questions import VERSION
from app.sapo.seeds import TRAINING_SEEDS, hashed

_LEVELS = 2
"""From the easiest ones: it should take a minute, not an evening."""
_LONGEST = 120
"""Bytes of its text, so that every model can read it: no tokenizer makes more tokens than that, and the starter
has room for 128."""
_TRIES = 64


def today() -> date:
    return datetime.now(UTC).date()


def puzzle_of(day: date) -> Puzzle:
    """One in seven or so is a text of the tests; those are passed over, so that an answer may teach, and so are
    long ones. Families are those whose work a person can write down."""
    for attempt in range(_TRIES):
        number = hashed("daily", day.isoformat(), VERSION, attempt)
        names = sorted(name for name, family in FAMILIES.items() if family.work)
        family = FAMILIES[names[number % len(names)]]
        level = number // len(names) % min(_LEVELS, len(family.levels))
        made = questions.draw(family.name, level, TRAINING_SEEDS.start + hashed("daily seed", number))
        if not made.held_out and len(made.text.encode()) <= _LONGEST:
            break
    return Puzzle(question=made, unseen=False)
