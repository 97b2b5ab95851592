"""Sampling: selects the groups of the window that a requesting node receives.

A peer is drawn uniformly, then one of its groups uniformly: publishing a thousand groups buys no more influence
than publishing ten. A batch takes one group from each peer in random order and starts another turn only if the
caps allow it; with every turn a network may give more. No node receives its own groups, nor a group twice while
it is remembered.

If known keys come from several networks, all their groups come before those of new keys. All keys on probation
together get at most a quarter of a batch, and a batch ends short rather than exceed that. If nearly all keys
are new, keys and networks are treated equally. One or two known keys do not trigger the preference: a node that
started a day earlier must not dominate a young swarm.

The order is drawn lazily without repetition, and the work per batch is bounded: in a large window it takes a
few dozen steps, and if the node already has nearly everything the batch ends short."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice
from math import ceil, inf
from random import Random

import msgspec

from app.relay.standing import PROBATION_WEIGHT
from app.relay.store.backing import Weight
from app.relay.store.queues import Roster, Section, StoredGroup, site
from app.relay.store.turns import Draft, Families, GivenIds, PeerTurns, SampleQuery, queues_of, shuffled
from app.relay.store.window import Window
from app.swarm.wire.frames import to_frame
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import Err

ENOUGH_NETWORKS = 3
"""Minimum number of networks with known keys for these keys to come first."""
_LOOKS, _HOLDS_S, _HELD = 64, 1.0, 64
"""Maximum known keys examined to count their networks; seconds for which the result is cached; and maximum
cached results (one per choice of families)."""

_COUNTED = 128
"""Up to this number of roster entries, publishers are counted exactly; above it the family with most of them is
used as a lower bound."""
_MANY_KEYS, _MANY_ADDRESSES = 16, 8
"""With at least this many keys and more than this many addresses, an equal share is below the caps for any
batch size."""


class SampledGroups(msgspec.Struct, frozen=True, kw_only=True):
    """A sample. `window`: groups in the requested families; `eligible`: those that are not the node's own;
    `sources`: keys that published them (a lower bound in a large swarm)."""

    groups: list[StoredGroup]
    window: int
    eligible: int
    sources: int


class Caps(msgspec.Struct, frozen=True):
    """Maximum groups of one key, and of one address, in a batch of eight."""

    key: int = 1
    address: int = 2

    def of(self, k: int, keys: int, addresses: int) -> Caps:
        """Scales the caps to a batch of `k` when `keys` keys at `addresses` addresses have groups to give. The
        caps are never below an equal share: in a swarm of two, the other node may give the whole batch.

        >>> Caps().of(8, 100, 50), Caps().of(64, 100, 50), Caps().of(8, 3, 1), Caps().of(1, 100, 50)
        (Caps(key=1, address=2), Caps(key=8, address=16), Caps(key=3, address=8), Caps(key=1, address=1))
        """
        return Caps(
            min(k, max(1, self.key * k // 8, _share(k, keys))),
            min(k, max(1, self.address * k // 8, _share(k, addresses))),
        )


def _equal(key: bytes) -> float:
    return 1.0


def _share(k: int, sources: int) -> int:
    return -(-k // sources) if sources else k


class Sampler:
    """Draws batches. Remembers the last `remembered` groups given to each of the last `askers` nodes, about 5
    bytes each."""

    def __init__(
        self,
        window: Window,
        rng: Random,
        *,
        caps: Caps = Caps(),  # noqa: B008 (frozen)
        remembered: int = 2048,  # fewer than an archive has, and a newcomer gets the same groups again
        askers: int = 10_000,
    ) -> None:
        self._window = window
        self._rng = rng
        self._caps = caps
        self._remembered = remembered
        self._askers = askers
        self._given: OrderedDict[bytes, GivenIds] = OrderedDict()
        self._found_several: dict[Families, tuple[bool, float]] = {}

    def sample(self, ask: SampleQuery, weight: Weight | None = None) -> SampledGroups:
        """Draws at most `ask.k` groups. A known key of weight w is skipped with probability 1 - w, but used if
        the batch would end short; a key of weight 0 never gives. Keys on probation fill their share of a batch.
        Without `weight` all keys are equal."""
        window = self._window
        window.expire()
        own = window.authors.get(ask.key)
        sections: list[Section] | None = None
        total = len(window)
        mine = own.queue.groups if own is not None else 0
        families = None if ask.families is None else frozenset(ask.families)
        if families is not None:
            if window.sections.keys() <= families:
                families = None  # everything is eligible, which has a shorter path
            else:
                sections = [section for name in families if (section := window.sections.get(name)) is not None]
                total = sum([section.groups for section in sections])
                mine = sum([queue.groups for queue in own.queues(families)]) if own is not None else 0
        return SampledGroups(
            groups=self._draw(ask, families, sections, weight) if total > mine else [],
            window=total,
            eligible=total - mine,
            sources=self._sources(ask.key, sections),
        )

    def _draw(
        self, ask: SampleQuery, families: Families, sections: list[Section] | None, weight: Weight | None
    ) -> list[StoredGroup]:
        window, k = self._window, ask.k
        rooms: Sequence[Window | Section] = [window] if sections is None else sections
        everybody, known = [room.peers for room in rooms], [room.known for room in rooms]
        draft = Draft(ask, families, window, self.given_to(ask.key), self._rng)
        draft.narrow = sections is not None and 8 * sum([section.groups for section in sections]) < len(window)
        if weight is None or not self._several(known, families):
            self._turns(draft, everybody, weight, PROBATION_WEIGHT).fill(k)
            return draft.groups
        trusted = self._turns(draft, known, weight, 1.0)
        places = self._places(k, sum(map(len, everybody)), sum(map(len, known)))
        trusted.fill(k - places)
        if len(draft.groups) < k - places:
            places = k // 4
        places = min(places, len(draft.groups) // 3)
        if places:
            strangers = self._turns(draft, everybody, weight, PROBATION_WEIGHT, but=known)
            strangers.fill(len(draft.groups) + places)
        trusted.fill(k)
        return draft.groups

    def _turns(
        self,
        draft: Draft,
        rosters: list[Roster],
        weight: Weight | None,
        full_weight: float,
        but: Sequence[Roster] = (),
    ) -> PeerTurns:
        ask = draft.ask
        keys, addresses = self._shares(ask, draft.families, rosters)
        caps = self._caps.of(ask.k, keys, addresses)
        return PeerTurns(
            draft,
            self._peers(rosters),
            but,
            _equal if weight is None else weight,
            full_weight,
            min(caps.key, ask.per_key or caps.key),
            caps.address if addresses <= 1 else max(1, _share(ask.k, addresses) // 2),
            caps.address,
        )

    def _places(self, k: int, everybody: int, known: int) -> int:
        """Number of groups of a batch of `k` for keys on probation: in proportion to their weight, at most a
        quarter."""
        light = PROBATION_WEIGHT * (everybody - known)
        return min(k // 4, int(k * light / (light + known) + self._rng.random()))

    def _several(self, known: list[Roster], families: Families) -> bool:
        """True if there are known keys of several networks; cached for a second."""
        now = self._window.now()
        found, at = self._found_several.get(families, (False, -inf))
        if now - at >= _HOLDS_S:
            if len(self._found_several) >= _HELD:
                self._found_several.clear()
            found = len(list(islice(self._sites(known), ENOUGH_NETWORKS))) == ENOUGH_NETWORKS
            self._found_several[families] = found, now
        return found

    def _sites(self, rosters: list[Roster]) -> Iterator[str]:
        """The networks of these rosters' keys, each once."""
        seen = set()
        for roster in rosters:
            for position in islice(shuffled(len(roster), self._rng), _LOOKS):
                newest = self._window.authors[roster.at(position)].queue.newest()
                if newest is not None and (where := site(newest.address)) not in seen:
                    seen.add(where)
                    yield where

    def _peers(self, rosters: list[Roster]) -> Iterator[bytes | None]:
        """Yields every key of these rosters once, in random order, by the cheaper of two ways: all keys of the
        window, including those not in the rosters, or roster by roster, each key at its first roster. Yields
        None for a step without a key."""
        everybody = self._window.peers
        if len(rosters) == 1:
            roster = rosters[0]
        elif len(everybody) <= sum(map(len, rosters)):
            roster = everybody
        else:
            return self._peers_of(rosters)
        return map(roster.at, shuffled(len(roster), self._rng))

    def _peers_of(self, rosters: list[Roster]) -> Iterator[bytes | None]:
        for position in shuffled(sum(map(len, rosters)), self._rng):
            for nth, roster in enumerate(rosters):
                if position < len(roster):
                    key = roster.at(position)
                    for earlier in rosters[:nth]:
                        if key in earlier:
                            yield None
                            break
                    else:
                        yield key
                    break
                position -= len(roster)

    def _sources(self, asker: bytes, sections: list[Section] | None) -> int:
        """Number of other keys with groups in these sections."""
        if sections is None:
            everybody = self._window.peers
            return len(everybody) - (asker in everybody)
        rosters = [section.peers for section in sections]
        if sum(map(len, rosters)) <= _COUNTED:
            return len(set().union(*rosters) - {asker})
        return max([len(roster) - (asker in roster) for roster in rosters])

    def _shares(self, ask: SampleQuery, families: Families, rosters: list[Roster]) -> tuple[int, int]:
        """Returns (keys, addresses): how many other keys of these rosters, and how many addresses, have groups
        to give. Counted exactly if the caps depend on it, each key at the address of its newest group;
        otherwise the maximum over the families."""
        window = self._window
        if families is None:
            addresses = len(window.addresses)
        else:
            sections = [window.sections[family] for family in families if family in window.sections]
            addresses = max([len(section.addresses) for section in sections])
        sizes = [len(roster) for roster in rosters]
        most = max(sizes) - 1
        if sum(sizes) > 16 * ask.k or (most >= _MANY_KEYS and addresses > _MANY_ADDRESSES):
            return most, addresses
        keys = set[bytes]().union(*rosters) - {ask.key}
        newest = [
            newest
            for key in keys
            for queue in queues_of(window.author(key), families)
            if (newest := queue.newest()) is not None
        ]
        return len(keys), len({site(group.address) for group in newest})

    def given_to(self, asker: bytes) -> GivenIds:
        """The ids of the groups last given to this node."""
        given = self._given.get(asker)
        if given is None:
            given = self._given[asker] = GivenIds(self._remembered)
            if len(self._given) > self._askers:
                self._given.popitem(last=False)
        self._given.move_to_end(asker)
        return given


_LONGEST_WAIT_S = 24 * 3600.0  # a client takes no longer wait


class BatchHeader(msgspec.Struct, tag_field="t", tag="batch", gc=False):
    """The fields of a batch that precede its groups."""

    rid: int
    window: int
    eligible: int
    sources: int
    age_p50_s: float | None


_encoded = msgspec.json.Encoder().encode


def batch(figures: BatchHeader, raws: list[bytes]) -> bytes:
    """Encodes a batch. `raws` are the groups' exact bytes; the list is modified."""
    head = _encoded(figures)[:-1] + b',"items":['
    if not raws:
        return head + b"]}"
    raws[0] = head + raws[0]
    raws[-1] += b"]}"
    return b",".join(raws)


def refusal(code: Code, sentence: str, *, rid: int | None = None, wait_s: float | None = None) -> bytes:
    """Encodes an error frame. `rid`: id of the refused request; `wait_s`: seconds until it may be repeated."""
    return to_frame(Err(code=code, msg=sentence, rid=rid, retry_after_ms=waiting_ms(wait_s)))


def waiting_ms(wait_s: float | None) -> int | None:
    """Converts seconds to wait to the protocol's whole milliseconds, at most a day.

    >>> waiting_ms(0.0123), waiting_ms(None)
    (13, None)
    """
    return None if wait_s is None else ceil(min(wait_s, _LONGEST_WAIT_S) * 1000)
