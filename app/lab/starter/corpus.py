"""The starter's corpus: questions at its levels, answered by guess or by work, some of it wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from app.lab.starter.work import WORK, Stuck, worked
from app.sapo.questions import Coordinates, QuestionError, generate
from app.sapo.seeds import PROBE_SEEDS, TRAINING_SEEDS

CORPUS_SEEDS = (PROBE_SEEDS.stop, TRAINING_SEEDS.start)


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """The data mix. Shares are probabilities; `level_shares[k]` is that of level k."""

    worked_share: float = 0.2
    """How often an answer is worked out; the rest are guesses."""
    slip: float = 0.03
    """Chance that a step of the work comes out wrong."""
    wrong_guess: float = 0.6
    """How often a guess is replaced by a wrong one."""
    level_shares: tuple[float, ...] = (0.35, 0.55, 0.1)
    max_characters: int = 60
    """Longer lines of work are not used."""


class CorpusExample(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the corpus: a question's text and what the starter is taught to continue with."""

    family: str
    question: str
    completion: str


def examples(mix: Mix, seed: int, families: Sequence[str] = tuple(sorted(WORK))) -> Iterator[CorpusExample]:
    """An endless shuffled stream, families uniformly. Held-out questions never appear."""
    rng = Random(seed)
    while True:
        family = rng.choice(families)
        (level,) = rng.choices(range(len(mix.level_shares)), weights=mix.level_shares)
        try:
            question = generate(
                Coordinates(family=family, level=level, seed=rng.randrange(*CORPUS_SEEDS), index=0)
            )
            if question.held_out:
                continue
            if rng.random() < mix.worked_share:
                completion = worked(family, question.entry, rng, mix.slip)
            else:
                completion = guess(family, question.entry, rng, mix.wrong_guess)
        except (Stuck, QuestionError):
            continue
        if len(completion) <= mix.max_characters:
            yield CorpusExample(family=family, question=question.text, completion=completion)


def guess(family: str, entry: Mapping[str, Any], rng: Random, wrong: float) -> str:
    """A direct answer, `#-4`; with probability `wrong` a plausible other one."""
    answer = str(entry["answer"])
    if rng.random() < wrong:
        answer = _spoil(answer, rng)
    return f"#{answer}"


def _spoil(answer: str, rng: Random) -> str:
    """An answer of the right kind that is not the right one: another digit, or two letters exchanged."""
    places = [place for place, character in enumerate(answer) if character.isdigit()]
    if places:
        place = rng.choice(places)
        digit = rng.choice([d for d in "0123456789" if d != answer[place]])
        return answer[:place] + digit + answer[place + 1 :]
    place = rng.randrange(max(1, len(answer) - 1))
    return answer[:place] + answer[place : place + 2][::-1] + answer[place + 2 :]
