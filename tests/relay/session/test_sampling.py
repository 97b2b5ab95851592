from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.relay.session import sampling
from app.relay.session.sampling import Caps, Sampler
from app.relay.session.shared import RelayState
from app.relay.standing import PROBATION_WEIGHT
from app.relay.store import turns
from app.relay.store.queues import Bounds, StoredGroup
from app.relay.store.turns import SampleQuery, shuffled
from app.relay.store.window import Window, WindowLimits
from tests.relay.clock import Clock

MANY = WindowLimits(
    whole=Bounds(60_000, 1 << 30), shelf=Bounds(60_000, 1 << 30), key_percent=100, address_percent=100
)

Row = tuple[str, str, str, int]
"""Key, address, family, level."""


def made(n: int) -> bytes:
    """An id; many of them begin with the same byte."""
    return bytes([n % 7]) + n.to_bytes(31, "little")


def filled(
    rows: list[Row], clock: Clock | None = None, raw: bytes = b"{}", known: frozenset[bytes] = frozenset()
) -> Window:
    window = Window(MANY, clock or Clock(0.0), known)
    for n, (key, address, family, level) in enumerate(rows):
        put(window, n, key, address, family, level, raw)
    return window


def put(
    window: Window, n: int, key: str, address: str = "x", family: str = "f", level: int = 0, raw: bytes = b"{}"
) -> None:
    id = made(n)
    assert (
        window.add(id=id, key=key.encode(), address=address, family=family, level=level, raw=raw) == "accepted"
    )


def ask(k: int = 8, key: str = "me", **more: object) -> SampleQuery:
    return SampleQuery(**{"key": key.encode(), "k": k, "max_bytes": 1 << 20, **more})  # type: ignore[arg-type]


def peers(n: int, groups: int = 1) -> list[Row]:
    return [(f"p{i}", f"net {i}", "f", 0) for i in range(n) for _ in range(groups)]


def keys(groups: list[StoredGroup]) -> Counter[str]:
    return Counter(group.key.decode() for group in groups)


def test_publishing_a_hundred_times_as_much_gives_no_more_influence() -> None:
    rows = [*peers(20, 10), *[("loud", "net l", "f", 0)] * 1000]
    window = filled(rows)
    drawn = Counter(key for n in range(3000) for key in keys(Sampler(window, Random(n)).sample(ask(4)).groups))
    quiet = [drawn[f"p{i}"] for i in range(20)]
    # 3000 batches of 4 from 21 peers: 571 each, with a standard deviation of 22
    assert all(571 - 110 < count < 571 + 110 for count in [drawn["loud"], *quiet])


@pytest.mark.parametrize("families", [("f",), ("f", "g"), ("f", "g", "i"), None])
def test_peers_are_equal_however_many_of_the_families_they_play(
    families: tuple[str, ...] | None,
) -> None:
    rows = [
        *[("all", "a", family, level) for family in "fgh" for level in (0, 1) for _ in range(9)],
        ("one", "b", "f", 0),
        ("two", "c", "f", 1),
        *[("elsewhere", "d", "h", 0)] * (5 if families else 0),
        *[(f"crowd {n}", "e", "h", 0) for n in range(30 if families else 0)],
    ]
    window = filled(rows)
    drawn = Counter(
        key
        for n in range(3000)
        for key in keys(Sampler(window, Random(n)).sample(ask(1, families=families)).groups)
    )
    assert set(drawn) == {"all", "one", "two"}
    assert all(1000 - 150 < count < 1000 + 150 for count in drawn.values())


def test_the_groups_of_a_peer_are_equal() -> None:
    window = filled([("a", "x", family, 0) for family in "fffg"])
    drawn = Counter(Sampler(window, Random(n)).sample(ask(1)).groups[0].id for n in range(4000))
    assert len(drawn) == 4 and all(850 < count < 1150 for count in drawn.values())


def test_the_memory_is_bounded_per_asker_and_in_askers() -> None:
    window = filled(peers(1, 3))
    sampler = Sampler(window, Random(0), remembered=2, askers=2)
    first, second, third, again = (sampler.sample(ask(1)).groups[0].id for _ in range(4))
    assert len({first, second, third}) == 3 and again == first  # the only one out of memory
    sampler.sample(ask(1, key="b"))
    sampler.sample(ask(1, key="c"))
    assert len(sampler.sample(ask(3)).groups) == 3  # pushed out by two other askers


def test_the_caps_of_a_batch() -> None:
    assert Caps().of(8, 1000, 1000) == Caps(1, 2) and Caps().of(16, 1000, 1000) == Caps(2, 4)
    assert Caps().of(8, 2, 2) == Caps(4, 4) and Caps().of(8, 0, 0) == Caps(8, 8)
    crowd = [(f"sock {n}", "one net", "f", 0) for n in range(100)]
    window = filled([*crowd, *peers(10)])
    assert all(len(Sampler(window, Random(n)).sample(ask()).groups) == 8 for n in range(50))


def test_a_small_swarm_fills_a_batch_with_equal_shares() -> None:
    window = filled([("a", "lan", "f", 0)] * 50 + [("b", "lan", "f", 0)] * 5 + [("me", "lan", "f", 0)] * 9)
    assert keys(Sampler(window, Random(0)).sample(ask()).groups) == {"a": 4, "b": 4}
    assert keys(Sampler(window, Random(0)).sample(ask(per_key=1)).groups) == {"a": 1, "b": 1}


def test_bytes_and_age_are_respected() -> None:
    clock = Clock(0.0)
    window = filled(peers(10), clock, raw=bytes(100))
    assert len(Sampler(window, Random(0)).sample(ask(max_bytes=350)).groups) == 3
    clock.now = 60.0
    put(window, 1000, "fresh")
    put(window, 1001, "p1")
    got = Sampler(window, Random(0)).sample(ask(max_age_s=30)).groups
    assert keys(got) == {"fresh": 1, "p1": 1} and all(group.arrived == 60 for group in got)


def test_a_light_key_is_drawn_less_and_still_fills_a_short_batch() -> None:
    known = frozenset(f"p{i}".encode() for i in range(1, 20))
    window = filled(peers(20, 5), known=known)

    def weights(key: bytes) -> float:
        return {b"p0": 0.2, b"p1": 0.0, b"p3": 0.5}.get(key, 1.0)

    drawn = Counter(
        key for n in range(2000) for key in keys(Sampler(window, Random(n)).sample(ask(4), weights).groups)
    )
    assert drawn["p1"] == 0
    assert 0.1 < drawn["p0"] / drawn["p2"] < 0.3 and 0.4 < drawn["p3"] / drawn["p2"] < 0.6
    few = filled(peers(2, 5))
    assert keys(Sampler(few, Random(0)).sample(ask(4), weights).groups) == {"p0": 2}  # p1 could have given 2


def test_what_was_taken_out_is_not_given_out() -> None:
    window = filled(peers(3, 10))
    sampler = Sampler(window, Random(0))
    window.drop_key(b"p0")
    for n in range(12, 20):
        window.drop(made(n))
    assert keys(sampler.sample(ask(30)).groups) == {"p1": 2, "p2": 10}
    assert sampler.sample(ask(30)).groups == [] and Sampler(filled([]), Random(0)).sample(ask()).groups == []


def test_one_who_has_had_almost_everything_still_finds_the_rest() -> None:
    rows = [("old friend", "x", "f", 0)] * 500
    window = filled(rows)
    sampler = Sampler(window, Random(0))
    for _ in range(55):
        sampler.sample(ask())
    for n in range(500, 504):
        put(window, n, "newcomer", "y")
    assert keys(sampler.sample(ask()).groups)["newcomer"] == 4


def test_the_steps_for_a_batch_do_not_grow_with_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    def counted(n: int, rng: Random) -> object:
        nonlocal steps
        for position in shuffled(n, rng):
            steps += 1
            yield position

    for module in (sampling, turns):
        monkeypatch.setattr(module, "shuffled", counted)
    rows = [(f"p{i % 2000}", f"net {i % 900}", "fghij"[i % 5], i % 3) for i in range(50_000)]
    nearly_all = frozenset(f"p{i}".encode() for i in range(1, 2000))
    for known in (frozenset[bytes](), nearly_all):
        window = filled(rows, known=known)
        for families in (None, ("f",), ("f", "g"), ("f", "g", "h", "i")):
            sampler = Sampler(window, Random(0))
            steps = 0
            for n in range(20):
                batch = sampler.sample(ask(key=f"asker {n}", families=families), weighing(known))
                assert len(batch.groups) == 8
            assert steps / 20 < 60


def weighing(known: frozenset[bytes]) -> turns.Weight:
    return lambda key: 0.98 if key in known else PROBATION_WEIGHT


def swarm(honest: int, proven: bool, attackers: int, networks: int) -> tuple[Window, turns.Weight]:
    """Honest keys, each in a network of its own, and attackers in a few."""
    known = frozenset(f"p{i}".encode() for i in range(honest if proven else 0))
    crowd = [(f"evil {i}", f"evil net {i % networks}", "f", 0) for i in range(attackers) for _ in range(10)]
    return filled([*peers(honest, 10), *crowd], known=known), weighing(known)


def evil(groups: list[StoredGroup]) -> float:
    return sum(group.key.startswith(b"evil") for group in groups) / max(1, len(groups))


def share(honest: int, proven: bool, attackers: int, networks: int, k: int) -> float:
    """Of the attackers, in what somebody gets."""
    window, weight = swarm(honest, proven, attackers, networks)
    return evil(
        [group for n in range(300) for group in Sampler(window, Random(n)).sample(ask(k), weight).groups]
    )


@pytest.mark.parametrize("k", [8, 24])
@pytest.mark.parametrize(("attackers", "networks"), [(20, 20), (40, 4), (100, 4), (1000, 4), (1000, 1000)])
def test_new_keys_are_at_most_a_quarter_of_a_batch_where_known_ones_give(
    attackers: int, networks: int, k: int
) -> None:
    window, weight = swarm(5, True, attackers, networks)
    for n in range(100):
        groups = Sampler(window, Random(n)).sample(ask(k), weight).groups
        assert evil(groups) <= 0.25 and len(groups) >= 3 * k // 4
    sampler = Sampler(window, Random(0))
    lengths = []
    for _ in range(30):  # all 50 honest groups are handed out after a while
        groups = sampler.sample(ask(k), weight).groups
        lengths.append(len(groups))
        assert evil(groups) <= 0.25
    assert lengths[-1] == 0 and sum(lengths) >= 50, "a short batch rather than strangers"


@pytest.mark.parametrize("k", [8, 24])
def test_where_all_are_new_networks_are_equal(k: int) -> None:
    assert share(5, False, 20, 4, k) < 0.52  # 4 of 9 networks, and the last place is mostly theirs
    assert share(5, False, 100, 4, k) < 0.52
    assert 0.75 < share(5, False, 20, 20, k) < 0.85, "nothing tells them apart"


def test_a_free_network_of_ipv6_is_one_network() -> None:
    state = RelayState(bytes(32), "s", "e")
    homes = [state.blind(f"2001:db8:7:{n:x}00::/56") for n in range(256)]
    assert len(set(homes)) == 256
    rows = [(f"evil {n}", home, "f", 0) for n, home in enumerate(homes)]
    window = filled([*peers(5, 10), *rows])
    for n in range(100):
        assert evil(Sampler(window, Random(n)).sample(ask()).groups) <= 2 / 7
    assert window.drop_address(homes[0]) == 1 and len(window.addresses) == 6


def test_two_who_were_there_a_day_earlier_do_not_own_a_young_swarm() -> None:
    known = frozenset({b"p0", b"p1"})
    window = filled(peers(10, 20), known=known)
    drawn = keys(
        [
            group
            for n in range(300)
            for group in Sampler(window, Random(n)).sample(ask(), weighing(known)).groups
        ]
    )
    assert (drawn["p0"] + drawn["p1"]) / drawn.total() < 0.25


def test_a_newcomer_is_served_at_once_and_heard_soon() -> None:
    known = frozenset(f"p{i}".encode() for i in range(20))
    window = filled([*peers(20, 100), *[("newcomer", "net n", "f", 0)] * 8], known=known)
    sampler = Sampler(window, Random(0))
    assert len(sampler.sample(ask(key="newcomer"), weighing(known)).groups) == 8
    minute = [sampler.sample(ask(key=f"p{i}"), weighing(known)).groups for i in range(20)]
    assert sum(keys(groups)["newcomer"] for groups in minute) > 0


ROWS = st.lists(
    st.tuples(st.sampled_from("abcdem"), st.sampled_from("xyz"), st.sampled_from("fg"), st.integers(0, 1)),
    max_size=80,
)
FAMILIES = st.none() | st.lists(st.sampled_from("fgh"), min_size=1, max_size=3).map(tuple)


@settings(deadline=None)
@given(ROWS, FAMILIES, st.integers(1, 16), st.integers(0, 2**32), st.none() | st.integers(1, 3))
def test_every_batch_keeps_every_rule(
    rows: list[Row], families: tuple[str, ...] | None, k: int, seed: int, per_key: int | None
) -> None:
    window = filled(rows)
    sampler = Sampler(window, Random(seed))
    wanted = [group for group in window if group.key != b"m" and (families is None or group.family in families)]
    # each key at the address of its newest group, on each shelf where not everything is asked for
    everything = families is None or {group.family for group in window} <= set(families)
    newest = {
        (group.key, None if everything else (group.family, group.level)): group.address for group in wanted
    }
    caps = Caps().of(k, len({group.key for group in wanted}), len(set(newest.values())))
    seen: set[bytes] = set()
    for _ in range(3):
        batch = sampler.sample(ask(k, key="m", families=families, per_key=per_key))
        got = [group.id for group in batch.groups]
        assert len(got) <= k and len(set(got)) == len(got) and seen.isdisjoint(got)
        assert set(got) <= {group.id for group in wanted} and batch.eligible == len(wanted)
        assert all(count <= min(caps.key, per_key or k) for count in keys(batch.groups).values())
        assert all(count <= caps.address for count in Counter(g.address for g in batch.groups).values())
        assert batch.sources == len({group.key for group in wanted})
        seen |= set(got)
