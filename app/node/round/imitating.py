"""Peers' right answers as supervised rows of a round, in families that the model cannot do yet
(`app.learning.imitation`): dealt, read as tokens, taken as steps between the round's own, and judged by what
they cost before they were taught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from app.learning.first_lesson import imitation_batch
from app.learning.imitation import (
    PER_STEP,
    RATE,
    FamilyAnswers,
    FamilyTaught,
    PeerAnswer,
    after_teaching,
    deal_rows,
)
from app.node.trainer.link import TrainerLink
from app.node.trainer.messages import PeerTexts
from app.sapo.asking import Way, messages
from engines.contract import Batch, EngineError, TokenSequence

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class ImitatedRows:
    """Answers of a round's supervised steps, in order, with their tokens, family and level."""

    answers: Sequence[PeerAnswer] = ()
    sequences: Sequence[TokenSequence] = ()
    places: Sequence[tuple[str, int]] = ()
    own: Sequence[TokenSequence] = ()
    """Own right answers that are rehearsed with them, spread over the steps."""

    @property
    def batches(self) -> list[Batch]:
        steps = [
            [*self.sequences[first : first + PER_STEP]] for first in range(0, len(self.sequences), PER_STEP)
        ]
        for place, sequence in enumerate(self.own if steps else ()):
            steps[place * len(steps) // len(self.own)].append(sequence)
        return [imitation_batch(step, RATE * (1 - at / len(steps))) for at, step in enumerate(steps)]

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(family for family, _ in self.places))

    @property
    def authors(self) -> dict[str, int]:
        """Number of groups taught by author's name, most first."""
        return dict(
            Counter(peer for _, peer in sorted({(one.id, one.peer) for one in self.answers})).most_common()
        )

    def after(
        self, before: Mapping[str, FamilyTaught], nats_BS: Sequence[Sequence[float]]
    ) -> dict[str, FamilyTaught]:
        """Returns what is known of each family after these steps. `nats_BS`: of the rows of each step taken, of
        which those after the answers (own ones, small talk) are ignored."""
        nats = [
            found
            for step, nats_S in enumerate(nats_BS)
            for found in nats_S[: len(self.answers) - PER_STEP * step][:PER_STEP]
        ]
        known = dict(before)
        done = [*zip(self.places, self.answers, nats, strict=False)]
        for place in dict.fromkeys(self.places[: len(nats)]):
            own = [one for one in done if one[0] == place]
            known[place[0]] = after_teaching(
                known.get(place[0]),
                place[1],
                [answer for _, answer, _ in own],
                [found for *_, found in own],
            )
        return known


NOTHING_IMITATED = ImitatedRows()


async def rows_to_imitate(
    link: TrainerLink,
    way: Way,
    max_tokens: int,
    offered: Sequence[FamilyAnswers],
    rows: int,
    before: Mapping[str, FamilyTaught],
    draws: Random,
    own: Sequence[TokenSequence] = (),
) -> ImitatedRows:
    """Returns at most `rows` answers of those `offered`, mixed, in this model's tokens; those that are too long
    for it are left out. `own`: answers that are rehearsed with them. Raises TrainerDied."""
    dealt = deal_rows(rows, offered, before, draws)
    chosen = [
        ((one.family, one.level), answer)
        for one in offered
        for answer in one.answers[: dealt.get(one.family, 0)]
    ]
    if not chosen:
        return NOTHING_IMITATED
    draws.shuffle(chosen)
    texts = [
        PeerTexts(prompt=messages(answer.question, way), completions_G=(answer.completion,), finished_G=(True,))
        for _, answer in chosen
    ]
    try:
        readings = await link.read(texts, max_tokens, logprobs=False)
    except EngineError:  # as for groups that do not fit: the round goes on without them
        return NOTHING_IMITATED
    fitting = [(*one, reading.sequences_G[0]) for one, reading in zip(chosen, readings, strict=True) if reading]
    return ImitatedRows(
        answers=[answer for _, answer, _ in fitting],
        sequences=[sequence for *_, sequence in fitting],
        places=[place for place, *_ in fitting],
        own=own,
    )


def interleaved(some: Sequence[_Item], others: Sequence[_Item]) -> list[tuple[_Item, bool]]:
    """Returns the items of both, each in its order and evenly spread; whether one is of the `others`.

    >>> "".join(item for item, _ in interleaved("ab", "123456"))
    '1a234b56'
    """
    placed = [((at + 0.5) / len(some), False, item) for at, item in enumerate(some)]
    placed += [((at + 0.5) / len(others), True, item) for at, item in enumerate(others)]
    return [(item, other) for _, other, item in sorted(placed, key=lambda one: one[:2])]
