"""Standing: how far a relay trusts a key, estimated by scoring some of its groups again.

The error estimate follows BOINC's adaptive replication: it starts at 0.1, shrinks by a twentieth with every
group found honest and grows with every false claim. A new key is on probation and rarely drawn until fifty of
its groups were honest, over at least twenty hours: for an attacker with many keys, waiting a day costs more
than fifty groups. The first fifty groups are all scored again. Three false claims in a day ban the key for a
day.

Reports by other nodes never lower a standing. They raise the probability of a check, each by its reporter's
weight, and a reporter who was wrong loses trust.

A standing is an immutable value, and each event is a function from one to the next. Times are Unix seconds,
because bans and standings outlive the process and are shared between relays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from heapq import heapify, heappop, heappush
from random import Random
from typing import Literal

import msgspec

from app.relay.store.window import Clock

DAY_S = 86_400.0
ASSUMED_ERROR_SHARE = 0.1  # of a key that nothing is known of
PROBATION_GROUPS, MIN_PROBATION_S = 50, 20 * 3600.0
"""Number of honest groups that end probation, and the minimum seconds between the first and the latest of them:
less than a day, so that a node that runs every evening is known on the second."""
KEPT_S = 30 * DAY_S
"""Seconds for which a standing is kept after the key's last honest group, false claim or ban."""
PROBATION_WEIGHT, MIN_WEIGHT = 0.2, 0.05
SPOT_CHECK_SHARE = 0.05
"""Share of the groups of a known key that is scored again."""
FALSE_CLAIMS_BEFORE_BAN, BAN_S = 3, DAY_S  # false claims within a day, and the length of the ban they bring

Treatment = Literal["welcome", "shadowed", "blocked"]
"""The treatment of a key. `shadowed`: its groups are answered as accepted but given to nobody."""
Source = bytes | str
"""A key (bytes) or an address (text)."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A key's record: estimated probability that its next group makes a false claim, honest groups since it was
    new or last banned and the times of the first and latest, times of false claims within a day, accumulated
    suspicion from reports, and the time of its last ban."""

    error: float = ASSUMED_ERROR_SHARE
    honest: int = 0
    first: float = 0.0
    latest: float = 0.0
    false_claims: tuple[float, ...] = ()
    suspicion: float = 0.0
    banned: float = 0.0

    @property
    def probation(self) -> bool:
        return self.honest < PROBATION_GROUPS or self.latest - self.first < MIN_PROBATION_S

    @property
    def known(self) -> bool:
        """True if its groups are preferred to those of new keys."""
        return not self.probation and self.weight > PROBATION_WEIGHT

    @property
    def weight(self) -> float:
        """Sampling weight, 0.05 to 1: 1 - error / 0.5, on probation at most 0.2."""
        earned = 1 - self.error / 0.5
        if earned < MIN_WEIGHT:
            return MIN_WEIGHT
        return PROBATION_WEIGHT if self.probation and earned > PROBATION_WEIGHT else earned

    @property
    def check(self) -> float:
        """Probability that its next group is scored again."""
        return 1.0 if self.honest < PROBATION_GROUPS else max(SPOT_CHECK_SHARE, self.suspicion)

    @property
    def until(self) -> float:
        """Unix time after which the standing may be deleted."""
        return max(self.latest, self.banned, *self.false_claims, 0.0) + KEPT_S


def after_honest(standing: Standing, now: float) -> Standing:
    """The standing after a group was scored again and its claimed rewards were true.

    >>> round(after_honest(Standing(), 0.0).error, 3)
    0.095
    """
    return msgspec.structs.replace(
        standing,
        error=standing.error * 0.95,
        honest=standing.honest + 1,
        first=standing.first if standing.honest else now,
        latest=max(standing.latest, now) if standing.honest else now,
        suspicion=0.0,
    )


def after_false_claim(standing: Standing, now: float) -> Standing:
    """The standing after a group was scored again and its claimed rewards were false."""
    lately = tuple(at for at in standing.false_claims if now - at < DAY_S)[1 - FALSE_CLAIMS_BEFORE_BAN :]
    return msgspec.structs.replace(
        standing, error=min(1.0, standing.error + 0.1), false_claims=(*lately, now), suspicion=0.0
    )


def should_be_banned(standing: Standing, now: float) -> bool:
    return sum(now - at < DAY_S for at in standing.false_claims) >= FALSE_CLAIMS_BEFORE_BAN


def after_ban(standing: Standing, now: float) -> Standing:
    """The standing after a ban: probation starts again, the error estimate is kept."""
    return Standing(error=standing.error, banned=now)


def merge(one: Standing, other: Standing) -> Standing:
    """Merges two relays' standings of one key. Both may have counted the same events, so nothing is added up:
    the larger count of honest groups is used and the false claims are united. If one has a later ban, it
    replaces the other.

    >>> known = Standing(error=0.05, honest=40)
    >>> [merge(known, Standing(error=0.2, false_claims=claims)).error for claims in ((), (1.0,))]
    [0.05, 0.2]
    """
    if one.banned != other.banned:
        return max(one, other, key=lambda standing: standing.banned)
    claims = sorted({*one.false_claims, *other.false_claims})
    said = [standing for standing in (one, other) if standing.honest]
    return msgspec.structs.replace(
        one,
        error=(min if one.false_claims == other.false_claims else max)(one.error, other.error),
        honest=max(one.honest, other.honest),
        first=min((standing.first for standing in said), default=0.0),
        latest=max(one.latest, other.latest),
        false_claims=tuple(claims[-FALSE_CLAIMS_BEFORE_BAN:]),
    )


def after_report(standing: Standing, reporter: Standing) -> Standing:
    """The standing after another node reported a group of this key.

    >>> new, known = Standing(), Standing(error=0.0, honest=50, latest=MIN_PROBATION_S)
    >>> after_report(known, new).check, after_report(known, known).check
    (0.2, 1.0)
    """
    return msgspec.structs.replace(standing, suspicion=min(1.0, standing.suspicion + reporter.weight))


def after_wrong_report(reporter: Standing) -> Standing:
    """The standing of a reporter whose reported group was scored again and found honest."""
    return msgspec.structs.replace(reporter, error=min(1.0, reporter.error + 0.05))


class Ban(msgspec.Struct, frozen=True, kw_only=True):
    """A ban of a key or an address until a time (Unix seconds); `by` names the operator or the relay that
    decided it."""

    until: float
    reason: str
    by: str
    shadow: bool = False


class Bans:
    """Bans that expire. At most `most` are kept; above that those that end soonest are dropped."""

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._bans: dict[Source, Ban] = {}
        self.perhaps: Collection[Source] = self._bans.keys()
        """Keys and addresses that may be banned, for a quick test; `of` says whether a ban is still in
        force."""
        self._ends: list[tuple[float, bool, Source]] = []

    def put(self, source: Source, ban: Ban) -> None:
        """Sets a ban, replacing an earlier one."""
        self._bans[source] = ban
        heappush(self._ends, _end(source, ban))
        if len(self._ends) > 2 * len(self._bans) + 16:
            self._ends = [_end(source, ban) for source, ban in self._bans.items()]
            heapify(self._ends)
        while len(self._bans) > self._most:
            self._end_next()

    def lift(self, source: Source) -> bool:
        """Removes a ban. Returns False if there was none."""
        return self._bans.pop(source, None) is not None

    def of(self, source: Source, now: float) -> Ban | None:
        """The ban of `source` that is in force at `now`, or None."""
        while self._ends and self._ends[0][0] <= now:
            self._end_next()
        return self._bans.get(source)

    def all(self, now: float) -> dict[Source, Ban]:
        return {source: ban for source, ban in self._bans.items() if ban.until > now}

    def __len__(self) -> int:
        return len(self._bans)

    def _end_next(self) -> None:
        until, _, source = heappop(self._ends)
        ban = self._bans.get(source)
        if ban is not None and ban.until == until:  # otherwise it was lifted or replaced
            del self._bans[source]


def _end(source: Source, ban: Ban) -> tuple[float, bool, Source]:
    return ban.until, isinstance(source, str), source  # bytes and str do not compare with each other


class Standings:
    """The standings of the `keys` most recently active keys, and all bans. `clock` returns Unix seconds. A
    forgotten key is new again, so a good one returns to probation. `known`: keys with standing; `changed`: keys
    whose standing must be saved."""

    def __init__(self, clock: Clock, rng: Random, *, keys: int = 50_000, name: str = "relay") -> None:
        self._clock = clock
        self._rng = rng
        self._keys = keys
        self._name = name
        self._known: OrderedDict[bytes, Standing] = OrderedDict()
        self._weights = _Weights()
        self.known: set[bytes] = set()
        self.changed: set[bytes] = set()
        self.bans = Bans()

    def of(self, key: bytes) -> Standing:
        return self._known.get(key, _NEW)

    def pop_changed(self) -> dict[bytes, Standing | None]:
        """Returns the standings that changed since the last call, to be saved; None for keys that were
        forgotten."""
        changed, self.changed = self.changed, set()
        return {key: self._known.get(key) for key in changed}

    def draw_check(self, key: bytes) -> bool:
        """Draws whether a new group of this key is scored again, with the probability `Standing.check`."""
        return self._rng.random() < self.of(key).check

    def record_honest(self, key: bytes) -> None:
        self._set(key, after_honest(self.of(key), self._clock()))
        self.changed.add(key)

    def false_claim(self, key: bytes) -> Ban | None:
        """Records a false claim. Returns the ban it causes, already in force, or None. A longer ban already in
        force stays."""
        now = self._clock()
        standing = after_false_claim(self.of(key), now)
        self.changed.add(key)
        if not should_be_banned(standing, now):
            self._set(key, standing)
            return None
        self._set(key, after_ban(standing, now))
        ban = Ban(
            until=now + BAN_S, reason=f"{FALSE_CLAIMS_BEFORE_BAN} false reward claims in a day", by=self._name
        )
        before = self.bans.of(key, now)
        if before is not None and before.until >= ban.until:
            return before
        self.bans.put(key, ban)
        return ban

    def put(self, key: bytes, standing: Standing) -> None:
        """Adds a standing that was saved or comes from another relay. Merged with the key's present one, if
        any."""
        self._set(key, merge(self.of(key), standing) if key in self._known else standing)

    def report(self, reporter: bytes, key: bytes) -> None:
        """Records that `reporter` reported a group of `key` as bad. Ignores reports of one's own groups and by
        banned keys."""
        if reporter != key and self.bans.of(reporter, self._clock()) is None:
            self._set(key, after_report(self.of(key), self.of(reporter)))

    def record_wrong_report(self, reporter: bytes) -> None:
        self._set(reporter, after_wrong_report(self.of(reporter)))

    def verdict(self, key: bytes, address: str) -> Treatment:
        """Returns the treatment of this key from this address: a block outweighs a shadow ban."""
        perhaps = self.bans.perhaps
        if key not in perhaps and address not in perhaps:
            return "welcome"
        now = self._clock()
        found = [ban for source in (key, address) if (ban := self.bans.of(source, now)) is not None]
        if not found:
            return "welcome"
        return "shadowed" if all(ban.shadow for ban in found) else "blocked"

    def weight(self, key: bytes) -> float:
        """Sampling weight of a key: 0 if it is banned, also by a shadow ban."""
        if key in self.bans.perhaps and self.bans.of(key, self._clock()) is not None:
            return 0.0
        return self._weights[key]

    @property
    def weights(self) -> Callable[[bytes], float]:
        """A function like `weight`, to be used for one batch: faster while there are no bans."""
        return self.weight if self.bans.perhaps else self._weights.__getitem__

    def __len__(self) -> int:
        return len(self._known)

    def _set(self, key: bytes, standing: Standing) -> None:
        self._known[key] = standing
        self._known.move_to_end(key)
        self._weights[key] = standing.weight
        (self.known.add if standing.known else self.known.discard)(key)
        if len(self._known) > self._keys:
            forgotten, _ = self._known.popitem(last=False)
            del self._weights[forgotten]
            self.known.discard(forgotten)
            self.changed.add(forgotten)


class _Weights(dict[bytes, float]):
    def __missing__(self, key: bytes) -> float:
        return _NEW_WEIGHT


_NEW = Standing()
_NEW_WEIGHT = _NEW.weight
