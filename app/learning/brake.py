"""The peer brake: where this learner's own success, or the share of its answers that show work, falls beyond
chance while peers' answers are mixed in, it learns without them for a while.

It uses figures of own answers alone, so no peer can influence it; the price is that harm is found only after it
is done. Own rounds are put together in windows of WINDOW_ROUNDS, and each is compared with what was
before it, the latest windows weighing most. It has fallen where it lies lower by more than LEAST and by SURE
standard errors of the difference, a group counting as one observation (its answers are alike). A fall too
slow for this is found by the held-out curve (`app.learning.flat.torn`). Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from app.sapo.asking import shows_work
from app.sapo.groups import ScoredGroup

WINDOW_ROUNDS = 5
"""Rounds in a window."""
SURE, LEAST = 4.0, 0.1
"""Where nothing changes but by chance, fewer than one run of 200 rounds in fifty gives a false alarm
(tests/learning/test_brake.py)."""
DECAY = 0.8
"""Share of the past sums that is kept when a window is added to them."""
ALONE, DOUBLINGS = 20, 4
"""Rounds without peers after a fall; twice as many after each further one, so often at most."""

Signs = tuple[float, float]
"""Share of right answers, and of answers with work."""


class BrakeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over groups of each share and of its square. For faded windows `groups` is not a whole number."""

    rounds: int = 0
    groups: float = 0.0
    sums: Signs = (0.0, 0.0)
    squares: Signs = (0.0, 0.0)

    def mean(self, sign: int) -> float:
        return self.sums[sign] / max(1.0, self.groups)

    def error(self, sign: int) -> float:
        """Standard error of the mean, with one right and one wrong group added, so that it is never zero."""
        n = self.groups + 2.0
        share = (self.sums[sign] + 1.0) / n
        return math.sqrt(max(0.0, (self.squares[sign] + 1.0) / n - share * share) / n)


class PeerBrake(msgspec.Struct, frozen=True, kw_only=True):
    """State of the brake. `past` sums the rounds before the window `now`, `mixed` tells whether peers' answers
    were learned from in it, `alone` is how many rounds are left without peers, `falls` how often the brake was
    applied, `torn` whether the model has still to be put back to its best checkpoint."""

    levels: dict[str, int] = {}
    now: BrakeWindow = BrakeWindow()
    past: BrakeWindow = BrakeWindow()
    mixed: bool = False
    alone: int = 0
    falls: int = 0
    torn: bool = False


def watched(before: PeerBrake, own_P: Sequence[ScoredGroup], levels: dict[str, int], mixed: bool) -> PeerBrake:
    """The state after a round with these own groups; `mixed`: with peers' groups that carried weight. When
    levels change the questions differ, so the comparison starts again."""
    if before.levels != levels:
        before = restarted(before, levels)
    after = msgspec.structs.replace(
        before,
        now=_with(before.now, own_P),
        mixed=before.mixed or mixed,
        alone=max(0, before.alone - 1),
    )
    if after.now.rounds < WINDOW_ROUNDS:
        return after
    if after.mixed and not after.alone and _fallen(after):
        return start_cooldown(after)
    return msgspec.structs.replace(after, past=_faded(after.past, after.now), now=BrakeWindow())


def restarted(before: PeerBrake, levels: dict[str, int]) -> PeerBrake:
    """The state without the windows seen so far; a cooldown in progress continues."""
    return PeerBrake(levels=levels, alone=before.alone, falls=before.falls, torn=before.torn)


def start_cooldown(vigil: PeerBrake) -> PeerBrake:
    """Ignores peer groups for ALONE * 2^falls rounds, at most ALONE * 2^DOUBLINGS (20 to 320)."""
    rounds = ALONE << min(vigil.falls, DOUBLINGS)
    return msgspec.structs.replace(
        vigil, alone=rounds, falls=vigil.falls + 1, torn=True, mixed=False, now=BrakeWindow()
    )


def _with(window: BrakeWindow, own_P: Sequence[ScoredGroup]) -> BrakeWindow:
    signs_P = [_signs(own) for own in own_P]
    return BrakeWindow(
        rounds=window.rounds + 1,
        groups=window.groups + len(signs_P),
        sums=_added(window.sums, signs_P),
        squares=_added(window.squares, [(a * a, b * b) for a, b in signs_P]),
    )


def _signs(own: ScoredGroup) -> Signs:
    texts_G = own.group.completions_G
    g = max(1, len(texts_G))
    return sum(own.rewards_G) / g, sum(map(shows_work, texts_G)) / g


def _added(sums: Signs, more: Sequence[Signs]) -> Signs:
    return sums[0] + sum(a for a, _ in more), sums[1] + sum(b for _, b in more)


def _faded(past: BrakeWindow, now: BrakeWindow) -> BrakeWindow:
    def both(old: Signs, new: Signs) -> Signs:
        return DECAY * old[0] + new[0], DECAY * old[1] + new[1]

    return BrakeWindow(
        rounds=past.rounds + now.rounds,
        groups=DECAY * past.groups + now.groups,
        sums=both(past.sums, now.sums),
        squares=both(past.squares, now.squares),
    )


def _fallen(vigil: PeerBrake) -> bool:
    past, now = vigil.past, vigil.now
    return past.rounds > 0 and any(
        past.mean(sign) - now.mean(sign) > max(LEAST, SURE * math.hypot(past.error(sign), now.error(sign)))
        for sign in (0, 1)
    )
