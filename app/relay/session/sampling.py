"""Sampling: which groups of the window one asker gets.

First a peer, uniformly, then one of its groups, uniformly: publishing a thousand groups buys no more influence
than publishing ten. A batch goes round the peers in a random order, one group from each, and comes round again
only where the caps allow it; with every turn a network may give one more. No one gets their own groups, nor a
group twice while it is remembered.

Where there are known keys of several networks, they come first, also with their second groups. All keys on
probation together get at most a quarter of what is handed out, and a batch ends short rather than hold more.
Where nearly everybody is new there is no one to prefer: then all are equal, and so are their networks. One or
two known keys are not enough for the rule: anyone who was there a day earlier must not own a young swarm.

The order is drawn lazily without repetition, and the work for one batch is bounded: in a large window a batch
takes a few dozen steps, and where only old acquaintances are left it ends short rather than search on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice
from math import ceil, inf
from random import Random

import msgspec

from app.relay.standing import PROBATION_WEIGHT
from app.relay.store.lines import Roster, Section, StoredGroup, site
from app.relay.store.turns import Draft, Families, GivenIds, PeerTurns, SampleQuery, Weight, lines_of, shuffled
from app.relay.store.window import Window
from app.swarm.wire.frames import to_frame
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import Err

ENOUGH_NETWORKS = 3
"""Number of networks with known keys from which on these come first."""
_LOOKS, _HOLDS_S, _HELD = 64, 1.0, 64
"""Known keys looked at to find them, and for how long, and for how many choices of families, that holds."""

_COUNTED = 128
"""Up to this many publishers a swarm's publishers are counted; in a larger one the family with most of them
stands for all."""
_MANY_KEYS, _MANY_ADDRESSES = 16, 8
"""From this number on an equal share is below the caps, whatever the size of the batch."""


class SampledGroups(msgspec.Struct, frozen=True, kw_only=True):
    """A sample. `window` counts the groups in the families asked for, `eligible` those of them that are not the
    asker's own, `sources` the keys that published these (in a large swarm: a lower bound)."""

    groups: list[StoredGroup]
    window: int
    eligible: int
    sources: int


class Caps(msgspec.Struct, frozen=True):
    """Maximum groups of one key, and of one address, in a batch of eight."""

    key: int = 1
    address: int = 2

    def of(self, k: int, keys: int, addresses: int) -> Caps:
        """The caps for a batch of `k` when `keys` keys at `addresses` addresses have groups to give. They grow
        with `k`, and always allow an equal share: in a swarm of two the other one gives everything.

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
    """Draws batches, and remembers the last `remembered` groups given to each of the last `askers` askers, 8
    bytes each."""

    def __init__(
        self,
        window: Window,
        rng: Random,
        *,
        caps: Caps = Caps(),  # noqa: B008 (frozen)
        remembered: int = 512,
        askers: int = 20_000,
    ) -> None:
        self._window = window
        self._rng = rng
        self._caps = caps
        self._remembered = remembered
        self._askers = askers
        self._given: OrderedDict[bytes, GivenIds] = OrderedDict()
        self._found_several: dict[Families, tuple[bool, float]] = {}

    def sample(self, ask: SampleQuery, weight: Weight | None = None) -> SampledGroups:
        """At most `ask.k` groups. A known key of weight w is skipped with probability 1 - w, but still gives if
        the others leave the batch short; a key of weight 0 never gives. Keys on probation fill their share of a
        batch. Without `weight` all are equal."""
        window = self._window
        window.expire()
        own = window.authors.get(ask.key)
        sections: list[Section] | None = None
        total = len(window)
        mine = own.line.groups if own is not None else 0
        families = None if ask.families is None else frozenset(ask.families)
        if families is not None:
            if window.sections.keys() <= families:
                families = None  # all that is here was asked for, which is found in a shorter way
            else:
                sections = [section for name in families if (section := window.sections.get(name)) is not None]
                total = sum([section.groups for section in sections])
                mine = sum([line.groups for line in own.lines(families)]) if own is not None else 0
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
        draft = Draft(ask, families, window, self.memory(ask.key), self._rng)
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
        """Places of a batch for keys on probation: what their weight gives them, at most a quarter."""
        light = PROBATION_WEIGHT * (everybody - known)
        return min(k // 4, int(k * light / (light + known) + self._rng.random()))

    def _several(self, known: list[Roster], families: Families) -> bool:
        """Whether there are known keys of several networks, as of a second ago."""
        now = self._window.now()
        found, at = self._found_several.get(families, (False, -inf))
        if now - at >= _HOLDS_S:
            if len(self._found_several) >= _HELD:
                self._found_several.clear()
            found = len(list(islice(self._sites(known), ENOUGH_NETWORKS))) == ENOUGH_NETWORKS
            self._found_several[families] = found, now
        return found

    def _sites(self, rosters: list[Roster]) -> Iterator[str]:
        """The networks of these keys, each once."""
        seen = set()
        for roster in rosters:
            for position in islice(shuffled(len(roster), self._rng), _LOOKS):
                newest = self._window.authors[roster.at(position)].line.newest()
                if newest is not None and (where := site(newest.address)) not in seen:
                    seen.add(where)
                    yield where

    def _peers(self, rosters: list[Roster]) -> Iterator[bytes | None]:
        """Every key of these rosters once, in a random order, by the cheaper of two ways: through all keys,
        including those without groups there, or roster by roster, each key at its first roster. None is yielded
        for a step that found nobody."""
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
        """Other keys with groups in these sections."""
        if sections is None:
            everybody = self._window.peers
            return len(everybody) - (asker in everybody)
        rosters = [section.peers for section in sections]
        if sum(map(len, rosters)) <= _COUNTED:
            return len(set().union(*rosters) - {asker})
        return max([len(roster) - (asker in roster) for roster in rosters])

    def _shares(self, ask: SampleQuery, families: Families, rosters: list[Roster]) -> tuple[int, int]:
        """How many other keys of these rosters and how many addresses have something to give: counted if the
        caps depend on it, each key at the address of its newest group on a shelf; with many keys the maximum of
        any family."""
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
            for line in lines_of(window.author(key), families)
            if (newest := line.newest()) is not None
        ]
        return len(keys), len({site(group.address) for group in newest})

    def memory(self, asker: bytes) -> GivenIds:
        """The ids that this asker was given."""
        given = self._given.get(asker)
        if given is None:
            given = self._given[asker] = GivenIds(self._remembered)
            if len(self._given) > self._askers:
                self._given.popitem(last=False)
        self._given.move_to_end(asker)
        return given


_LONGEST_WAIT_S = 24 * 3600.0


class BatchHeader(msgspec.Struct, tag_field="t", tag="batch", gc=False):
    """A batch without its groups: the fields in front of them."""

    rid: int
    window: int
    eligible: int
    sources: int
    age_p50_s: float | None


_encoded = msgspec.json.Encoder().encode


def batch(figures: BatchHeader, raws: list[bytes]) -> bytes:
    """`raws` are the groups' exact bytes; the list is emptied."""
    head = _encoded(figures)[:-1] + b',"items":['
    if not raws:
        return head + b"]}"
    raws[0] = head + raws[0]
    raws[-1] += b"]}"
    return b",".join(raws)


def refusal(code: Code, sentence: str, *, rid: int | None = None, wait_s: float | None = None) -> bytes:
    """`rid` is of the refused request, `wait_s` the seconds until it may be repeated."""
    return to_frame(Err(code=code, msg=sentence, rid=rid, retry_after_ms=waiting_ms(wait_s)))


def waiting_ms(wait_s: float | None) -> int | None:
    """Seconds to wait in the protocol's form: whole milliseconds, at most a day.

    >>> waiting_ms(0.0123), waiting_ms(None)
    (13, None)
    """
    return None if wait_s is None else ceil(min(wait_s, _LONGEST_WAIT_S) * 1000)
