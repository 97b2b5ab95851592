"""The peer brake: stops learning from peers for a while when the learner's own success rate, or the share of
its answers that show work, falls significantly while peers' answers are mixed in.

It uses figures of own answers only, so no peer can influence it; the price is that harm is found after it is
done. Own rounds are summed in windows of WINDOW_ROUNDS, and each window is compared with an exponentially
decayed sum of the windows before it. A share has fallen if it is lower by more than MIN_FALL and by more than
FALL_ERRORS standard errors of the difference; a group counts as one observation because its answers are
correlated. Slower falls are found by the held-out curve (`app.learning.flat.has_collapsed`). Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from app.sapo.asking import shows_work
from app.sapo.groups import GroupRecord

WINDOW_ROUNDS = 5
"""Number of rounds in a window."""
FALL_ERRORS, MIN_FALL = 4.0, 0.1
"""Thresholds of a fall: standard errors, and difference of shares. Without a real change, fewer than one in
fifty runs of 200 rounds raises a false alarm (tests/learning/test_brake.py)."""
DECAY = 0.8
"""Factor on the past sums each time a window is added to them."""
ROUNDS_ALONE, MAX_DOUBLINGS = 20, 4
"""Rounds without peers after the first fall, and how many times that number may double: once for each further
fall."""

Signs = tuple[float, float]
"""Share of right answers, and share of answers that show work."""


class BrakeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Sums, over the groups of some rounds, of the two shares in `Signs` and of their squares. `groups` is
    fractional once the window has been decayed."""

    rounds: int = 0
    groups: float = 0.0
    sums: Signs = (0.0, 0.0)
    squares: Signs = (0.0, 0.0)

    def mean(self, sign: int) -> float:
        return self.sums[sign] / max(1.0, self.groups)

    def standard_error(self, sign: int) -> float:
        """Standard error of the mean, with one right and one wrong group added, so that it is never zero."""
        n = self.groups + 2.0
        share = (self.sums[sign] + 1.0) / n
        return math.sqrt(max(0.0, (self.squares[sign] + 1.0) / n - share * share) / n)


class PeerBrake(msgspec.Struct, frozen=True, kw_only=True):
    """State of the brake. `now` is the window being filled, `past` the decayed sum of those before it, `mixed`
    whether peers' answers were trained on during `now`, `alone` the number of rounds left without peers,
    `falls` how often the brake was applied, and `torn` whether the model must still be reset to its best
    checkpoint."""

    levels: dict[str, int] = {}
    now: BrakeWindow = BrakeWindow()
    past: BrakeWindow = BrakeWindow()
    mixed: bool = False
    alone: int = 0
    falls: int = 0
    torn: bool = False


def after_round(
    before: PeerBrake, own_P: Sequence[GroupRecord], levels: dict[str, int], mixed: bool
) -> PeerBrake:
    """Returns the state after a round with the own groups `own_P`. `mixed`: whether peer groups carried weight
    in it. The comparison starts again when `levels` change, because the questions differ then."""
    if before.levels != levels:
        before = with_empty_windows(before, levels)
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


def with_empty_windows(before: PeerBrake, levels: dict[str, int]) -> PeerBrake:
    """Returns the state with empty windows; a cooldown in progress continues."""
    return PeerBrake(levels=levels, alone=before.alone, falls=before.falls, torn=before.torn)


def start_cooldown(vigil: PeerBrake) -> PeerBrake:
    """Returns the state after a fall: peer groups are ignored for ROUNDS_ALONE * 2^falls rounds, at most
    ROUNDS_ALONE * 2^MAX_DOUBLINGS (20 to 320)."""
    rounds = ROUNDS_ALONE << min(vigil.falls, MAX_DOUBLINGS)
    return msgspec.structs.replace(
        vigil, alone=rounds, falls=vigil.falls + 1, torn=True, mixed=False, now=BrakeWindow()
    )


def _with(window: BrakeWindow, own_P: Sequence[GroupRecord]) -> BrakeWindow:
    signs_P = [_signs(own) for own in own_P]
    return BrakeWindow(
        rounds=window.rounds + 1,
        groups=window.groups + len(signs_P),
        sums=_added(window.sums, signs_P),
        squares=_added(window.squares, [(a * a, b * b) for a, b in signs_P]),
    )


def _signs(own: GroupRecord) -> Signs:
    texts_G = own.completions_G
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
        past.mean(sign) - now.mean(sign)
        > max(MIN_FALL, FALL_ERRORS * math.hypot(past.standard_error(sign), now.standard_error(sign)))
        for sign in (0, 1)
    )
