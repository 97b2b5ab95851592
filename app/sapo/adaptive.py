"""Adaptive mixing: how many of a round's B groups a node answers itself, and how many it takes from peers.

A node that finds little by itself gains most from asking much: its groups, and those it publishes, are rarely
informative. One that finds much can leave the answering to the swarm. With N nodes alike, each answering I of B
questions of which a share s is informative, the pool offers (N - 1) I s informative groups, and I + J = B with
J no larger than the offer gives I = B / (1 + (N - 1) s). The brake halves J when the node's own answers get
worse or all alike. Pure functions over a small frozen state; every node has its own.
"""

from __future__ import annotations

from math import sqrt

import msgspec

DECAY = 0.9
"""Of the moving mean of the informative share, per round."""
SHORT, LONG = 10, 50
"""Rounds of which the node's solved share and its entropy are means."""
ERRORS = 2.0
"""The brake goes on when the solved share lies this many standard errors below its best."""
NARROWED = 0.7
"""Or when the entropy falls to this share of its mean."""
BRAKED = 20
"""Rounds that the brake stays on."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of the node's own questions showed. They are fresh each time, so the share solved is an
    honest measure of the policy. `nats` is the mean -log prob of its own tokens."""

    asked: int
    informative: int
    answered: int
    solved: int
    nats: float | None = None


class Mixing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a node stands: the groups of a round in all, the moving informative share (None before the first
    round), the last rounds, oldest first, the best solved share so far, and rounds of braking that are left."""

    budget: int
    share: float | None = None
    rounds: tuple[Round, ...] = ()
    best: float = 0.0
    braking: int = 0


def split(mixing: Mixing, nodes: int, first: int) -> tuple[int, int]:
    """I and J of the next round among `nodes` active ones; `first` own groups while nothing is known.

    I = B / (1 + (N - 1) s), rounded, within [B / 4, B]; the brake halves J, and I takes the rest.

    >>> rare, common = Mixing(budget=8, share=0.22), Mixing(budget=8, share=0.83)
    >>> split(rare, 8, 4), split(common, 8, 4), split(Mixing(budget=8), 8, 4), split(rare, 1, 4)
    ((3, 5), (2, 6), (4, 4), (8, 0))
    >>> split(Mixing(budget=8, share=0.22, braking=3), 8, 4)
    (6, 2)
    """
    budget = mixing.budget
    if mixing.share is None:
        own = first
    else:
        own = min(budget, max(-(-budget // 4), round(budget / (1.0 + (nodes - 1) * mixing.share))))
    peer = budget - own
    if mixing.braking:
        peer //= 2
    return budget - peer, peer


def observe(mixing: Mixing, round: Round) -> Mixing:
    """The state after a round. A round without own questions only lets the brake run on.

    >>> state = observe(Mixing(budget=8), Round(asked=4, informative=1, answered=32, solved=2))
    >>> state.share, observe(state, Round(asked=4, informative=2, answered=32, solved=2)).share
    (0.25, 0.275)
    """
    left = max(0, mixing.braking - 1)
    if not round.asked:
        return msgspec.structs.replace(mixing, braking=left)
    now = round.informative / round.asked
    rounds = (*mixing.rounds, round)[-LONG:]
    solved, error = _solved(rounds[-SHORT:])
    full = len(rounds) >= SHORT
    worse = full and solved < mixing.best - ERRORS * error
    return Mixing(
        budget=mixing.budget,
        share=now if mixing.share is None else DECAY * mixing.share + (1.0 - DECAY) * now,
        rounds=rounds,
        best=max(mixing.best, solved) if full else mixing.best,
        braking=left or (BRAKED if worse or _narrowed(rounds) else 0),
    )


def _solved(rounds: tuple[Round, ...]) -> tuple[float, float]:
    """Share solved and its standard error, with half an answer added to each side so that it is never zero."""
    answered = sum(round.answered for round in rounds)
    solved = sum(round.solved for round in rounds)
    smooth = (solved + 0.5) / (answered + 1.0)
    return solved / max(1, answered), sqrt(smooth * (1.0 - smooth) / max(1, answered))


def _narrowed(rounds: tuple[Round, ...]) -> bool:
    """Whether the last rounds' entropy is far below that of all of them."""
    known = [round.nats for round in rounds if round.nats is not None]
    if len(known) < 2 * SHORT:
        return False
    recent = known[-SHORT:]
    return sum(recent) / len(recent) < NARROWED * sum(known) / len(known)
