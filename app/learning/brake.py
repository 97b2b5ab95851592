"""The peer brake: learns less from peers, or for a while nothing, when the learner's own answers get worse.

It uses own answers only (the share that is right, by family and level, and the share that shows work), so no
peer can influence it; the price is that harm is found after it is done. Own rounds are collected in windows of
WINDOW_ROUNDS. A window that is certainly (`evidence.SURE`) below the faded sum of those before it by more than
FALL is a fall. Slow harm counts against one budget for the whole run: the faded sum is compared with the best
that it ever was. Certainly lower by HALVES: the share of peers' answers in the rounds halves, and doubles again
with every window that is not. Certainly lower by BUDGET: a fall. After a fall the model goes back to its best
checkpoint and learns without peers, longer each time. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from app.learning.evidence import SURE, Evidence, odds_lower
from app.sapo.asking import shows_work
from app.sapo.groups import GroupRecord

WINDOW_ROUNDS = 5
"""Number of rounds in a window."""
FALL, BUDGET, HALVES = 0.1, 0.05, 0.02
"""Falls of a share that end learning from peers: at once, and in the whole run. HALVES: one that halves
the share of peers' answers. What they miss and how often they are wrong is in LOG.md."""
FADES = 0.9
"""Factor on the past each time a window is added to it."""
MIN_BEST = 40.0
"""Minimum questions behind the best past: the best of many noisy figures would be too good."""
LEAST_SHARE = 1 / 8
"""Minimum share of the budget for peers' answers."""
ROUNDS_ALONE, MAX_DOUBLINGS = 20, 4
"""Rounds without peers after the first fall, and how many times that number may double: once for each further
fall."""
_FORM = ""


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """One share of own answers: in this window, in the faded past, and in the best past so far."""

    level: int = 0
    now: Evidence = Evidence()
    past: Evidence = Evidence()
    best: Evidence = Evidence()

    def closed(self) -> Watched:
        """The state when the window is added to the past."""
        past = self.past.faded(FADES) + self.now
        best = past if past.n >= MIN_BEST and (not self.best.n or past.mean > self.best.mean) else self.best
        return msgspec.structs.replace(self, now=Evidence(), past=past, best=best)


class PeerBrake(msgspec.Struct, frozen=True, kw_only=True):
    """State of the brake. `watched`: the share of right answers by family, and under `""` the share that shows
    work. `rounds`: those of this window, `mixed` whether peers' answers were trained on in it. `share`: of the
    budget for peers' answers. `alone`: rounds left without peers, `falls` how often there were such, and `torn`
    whether the model must still be reset to its best checkpoint."""

    watched: dict[str, Watched] = {}
    rounds: int = 0
    mixed: bool = False
    share: float = 1.0
    alone: int = 0
    falls: int = 0
    torn: bool = False


def after_round(
    before: PeerBrake, own_P: Sequence[GroupRecord], levels: Mapping[str, int], mixed: bool
) -> PeerBrake:
    """Returns the state after a round with the own groups `own_P`, of which those of other families and levels
    than `levels` are ignored. `mixed`: whether peers' answers were trained on. A family's comparison starts
    again when its level changes, because the questions differ then."""
    watched = {
        name: one
        for name, one in before.watched.items()
        if name == _FORM or (name in levels and one.level == levels[name])
    }
    own_P = [one for one in own_P if levels.get(one.coordinates.family) == one.coordinates.level]
    for name, shares in _shares(own_P).items():
        one = watched.get(name, Watched(level=levels.get(name, 0)))
        watched[name] = msgspec.structs.replace(one, now=one.now + Evidence.of(shares))
    after = msgspec.structs.replace(
        before,
        watched=watched,
        rounds=before.rounds + 1,
        mixed=before.mixed or mixed,
        alone=max(0, before.alone - 1),
    )
    return _judged(after) if after.rounds >= WINDOW_ROUNDS else after


def start_cooldown(before: PeerBrake) -> PeerBrake:
    """Returns the state after a fall: peers are ignored for ROUNDS_ALONE * 2^falls rounds, at most ROUNDS_ALONE
    * 2^MAX_DOUBLINGS (20 to 320). What was measured since the best is forgotten."""
    return msgspec.structs.replace(
        before,
        watched={
            name: msgspec.structs.replace(one, now=Evidence(), past=one.best)
            for name, one in before.watched.items()
        },
        rounds=0,
        mixed=False,
        share=max(LEAST_SHARE, before.share / 2),
        alone=ROUNDS_ALONE << min(before.falls, MAX_DOUBLINGS),
        falls=before.falls + 1,
        torn=True,
    )


def _judged(full: PeerBrake) -> PeerBrake:
    """Returns the state at the end of a window."""
    if full.mixed and not full.alone and _lower(full.watched, "now", "past", FALL):
        return start_cooldown(full)
    watched = {name: one.closed() for name, one in full.watched.items()}
    after = msgspec.structs.replace(full, watched=watched, rounds=0, mixed=False)
    if not full.mixed or full.alone:
        return after
    if _lower(watched, "past", "best", BUDGET):
        return start_cooldown(after)
    share = after.share / 2 if _lower(watched, "past", "best", HALVES) else after.share * 2
    return msgspec.structs.replace(after, share=max(LEAST_SHARE, min(1.0, share)))


def _lower(watched: Mapping[str, Watched], now: str, before: str, by: float = 0.0) -> bool:
    """Whether the families' right answers, or the form, are certainly lower by more than `by`."""
    pairs = {name: (getattr(one, now), getattr(one, before)) for name, one in watched.items()}
    form = pairs.pop(_FORM, None)
    return any(odds_lower(some, by) >= SURE for some in ([*pairs.values()], [form] if form else []))


def _shares(own_P: Sequence[GroupRecord]) -> dict[str, list[float]]:
    """Returns the share of right answers of each group, by family, and under _FORM the shares that show
    work."""
    found: dict[str, list[float]] = {}
    for own in own_P:
        g = max(1, len(own.completions_G))
        found.setdefault(own.coordinates.family, []).append(sum(own.rewards_G) / g)
        found.setdefault(_FORM, []).append(sum(map(shows_work, own.completions_G)) / g)
    return found
