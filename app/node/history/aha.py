"""What this node could do only after a peer had shown it: found in the records of its rounds, or not claimed.

A claim is about one family at one level. Three things must hold, each for its own reason:

1. Failed entirely. The node's own answers at this level were all wrong, FAILED of them at least, and no peer's
   right answer at this level or above had been learned from.
2. Then one was, and the very next time the node was asked, it solved some. Success must last beyond chance:
   right answers in at least two of the first PLAYS rounds from then on, and as many as all failures before make
   unlikely (Fisher's exact test, at EVIDENCE).
3. The moment fits beyond chance. Had peers' groups come in any other order of the rounds since the node first
   tried, the first of them would seldom have come just then: the exact share of orders is `p`. The i-th family
   and level looked at must stay below CHANCE / (i (i + 1)); over however many, false claims come in CHANCE of
   records at most.

Where success came quickly, or peers showed a family before the node had failed for long, 3 cannot hold, and
nothing is claimed: whether it was the peer cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import comb
from random import Random

import msgspec

from app.node.record.records import Round

FAILED = 24
PLAYS = 4
EVIDENCE = 0.01
CHANCE = 0.05


class Aha(msgspec.Struct, frozen=True, kw_only=True):
    """`peer` showed it in round `shown`, `seconds` later round `solved` had the first right answers: `right` of
    `answered` in its first rounds, after `failed` wrong ones. `p`: see above."""

    peer: str
    family: str
    level: int
    shown: int
    solved: int
    seconds: float
    failed: int
    right: int
    answered: int
    p: float
    at: float
    """When it was certain enough."""


class _Play(msgspec.Struct, frozen=True):
    """A round in which the node was asked: its place among the rounds, and its answers."""

    place: int
    right: int
    answered: int


class _Turn(msgspec.Struct, frozen=True):
    """From all wrong to success that lasts: which play it began with, and the one it was certain with."""

    family: str
    level: int
    plays: tuple[_Play, ...]
    first: int
    certain: int

    def shown_by(self, family: str, level: int) -> bool:
        """Whether a group of this family and level shows it."""
        return family == self.family and level >= self.level


def ahas(rounds: Sequence[Round]) -> list[Aha]:
    """Everything that may be claimed of these rounds, oldest first.

    Forty rounds of all wrong answers; in the fortieth a peer shows how, and the next three are half right:

    >>> way = (("cosy-firefly-7467", "count_bits", 1),)
    >>> tries = [Round(round=n, at=10.0 * n, seconds=9.0, informative_own=0, train_solved=0.0,
    ...                families={"count_bits": (1, 4 if n > 40 else 0, 8)},
    ...                shown=way if n == 40 else ()) for n in range(1, 44)]
    >>> [(one.peer, one.shown, one.solved, one.seconds, one.failed, round(one.p, 4)) for one in ahas(tries)]
    [('cosy-firefly-7467', 40, 41, 10.0, 320, 0.0238)]

    Had it been shown ten rounds earlier, or in every round, nothing is claimed:

    >>> early = [msgspec.structs.replace(one, shown=way if one.round == 30 else ()) for one in tries]
    >>> often = [msgspec.structs.replace(one, shown=way) for one in tries]
    >>> ahas(early), ahas(often)
    ([], [])
    """
    found = []
    looked = sorted(_looked_at(rounds), key=lambda turn: (turn.plays[turn.certain].place, turn.family))
    for number, turn in enumerate(looked, 1):
        aha = _claim(rounds, turn)
        if aha is not None and aha.p <= CHANCE / (number * (number + 1)):
            found.append(aha)
    return found


def permuted(rounds: Sequence[Round], rng: Random) -> list[Round]:
    """The same records with peers' rounds permuted: whatever is claimed of them is false."""
    shown = [one.shown for one in rounds]
    rng.shuffle(shown)
    return [msgspec.structs.replace(one, shown=other) for one, other in zip(rounds, shown, strict=True)]


def _looked_at(rounds: Sequence[Round]) -> Iterator[_Turn]:
    """Families and levels that turned from all wrong to lasting success, and of which a peer showed something
    meanwhile. When it did plays no part here: otherwise their number would tell of it."""
    plays: dict[tuple[str, int], list[_Play]] = {}
    for place, one in enumerate(rounds):
        for family, (level, right, answered) in one.families.items():
            plays.setdefault((family, level), []).append(_Play(place, right, answered))
    for (family, level), every in plays.items():
        turn = _turn(family, level, every)
        if turn is None:
            continue
        tried, certain = every[0].place, every[turn.certain].place
        if not _shown(rounds[:tried], turn) and _shown(rounds[tried : certain + 1], turn):
            yield turn


def _turn(family: str, level: int, plays: Sequence[_Play]) -> _Turn | None:
    first = next((at for at, play in enumerate(plays) if play.right), 0)
    failed = sum(play.answered for play in plays[:first])
    if failed < FAILED:
        return None
    after = plays[first : first + PLAYS]
    right = list(accumulate(play.right for play in after))
    answered = list(accumulate(play.answered for play in after))
    for more in range(1, len(after)):
        lasting = sum(play.right > 0 for play in after[: more + 1]) >= 2
        if lasting and all_after(failed, answered[more], right[more]) <= EVIDENCE:
            return _Turn(family, level, tuple(plays), first, first + more)
    return None


def _claim(rounds: Sequence[Round], turn: _Turn) -> Aha | None:
    """The claim, were its `p` small enough; None where the first to show it did not just before."""
    plays, tried = turn.plays, turn.plays[0].place
    known = rounds[tried : plays[turn.certain].place + 1]
    shown = _shown(known, turn)
    before, start = plays[turn.first - 1].place - tried, plays[turn.first].place - tried
    if not before <= shown[0] < start:
        return None
    showing, solving = known[shown[0]], known[start]
    since = plays[turn.first : turn.certain + 1]
    return Aha(
        peer=next(who for who, family, level in showing.shown if turn.shown_by(family, level)),
        family=turn.family,
        level=turn.level,
        shown=showing.round,
        solved=solving.round,
        seconds=max(0.0, solving.at - showing.at),
        failed=sum(play.answered for play in plays[: turn.first]),
        right=sum(play.right for play in since),
        answered=sum(play.answered for play in since),
        p=first_within(len(known), len(shown), before, start - before),
        at=known[-1].at,
    )


def _shown(rounds: Sequence[Round], turn: _Turn) -> list[int]:
    """Places of the rounds in which a peer showed it."""
    return [
        place
        for place, one in enumerate(rounds)
        if any(turn.shown_by(family, level) for _, family, level in one.shown)
    ]


def all_after(before: int, after: int, right: int) -> float:
    """The chance that all `right` of `before + after` equally good answers lie among the last `after`: Fisher's
    exact test of none before against `right` after.

    >>> round(all_after(24, 16, 3), 4)
    0.0567
    """
    return comb(after, right) / comb(before + after, right)


def first_within(rounds: int, shown: int, before: int, width: int) -> float:
    """The chance that of `shown` rounds among `rounds`, in any order, the first is one of the `width` rounds
    that follow the first `before`.

    >>> first_within(40, 1, 39, 1), first_within(10, 10, 0, 1), round(first_within(40, 8, 20, 1), 4)
    (0.025, 1.0, 0.0007)
    """
    rest = rounds - before
    return (comb(rest, shown) - comb(rest - width, shown)) / comb(rounds, shown)
