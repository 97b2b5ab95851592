from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.relay.store.queues import Bounds
from app.relay.store.window import Window, WindowLimits
from tests.relay.clock import Clock


def window(clock: Clock | None = None, **changes: object) -> Window:
    settings = {"whole": Bounds(100, 10_000), "shelf": Bounds(40, 4_000), "key_percent": 100}
    return Window(WindowLimits(**{**settings, "address_percent": 100, **changes}), clock or Clock())  # type: ignore[arg-type]


def put(
    window: Window,
    n: int,
    key: str = "a",
    address: str = "x",
    family: str = "f",
    level: int = 0,
    size: int = 10,
) -> str:
    return window.add(
        id=n.to_bytes(32, "big"), key=key.encode(), address=address, family=family, level=level, raw=bytes(size)
    )


def ids(window: Window) -> list[int]:
    return [int.from_bytes(group.id, "big") for group in window]


def test_the_bytes_that_arrived_are_the_bytes_kept() -> None:
    w = window()
    raw = b'{"v": 1,  "odd":\t"spacing"}'
    w.add(id=b"1", key=b"k", address="x", family="f", level=3, raw=raw)
    (kept,) = w
    assert kept.raw is raw and (kept.family, kept.level, kept.arrived) == ("f", 3, 1000.0)
    assert w.sizes == {("f", 3): 1} and w.size == len(raw) and b"1" in w


def test_a_backfilled_group_keeps_its_age() -> None:
    clock = Clock()
    w = window(clock, age_s=100)
    for id, arrived in ((b"1", 920.0), (b"2", 950.0), (b"3", 940.0), (b"4", 5000.0)):
        w.add(id=id, key=b"k", address="x", family="f", level=0, raw=b"", arrived=arrived)
    assert [group.arrived for group in w] == [920, 950, 950, 1000]
    clock.now = 1030.0
    w.expire()
    assert [group.id for group in w] == [b"2", b"3", b"4"]


def test_it_remembers_at_least_what_it_holds() -> None:
    with pytest.raises(ValueError):
        window(remembered=99)


def test_a_family_is_there_as_long_as_one_of_its_groups() -> None:
    w = window()
    for n, (family, level) in enumerate([("f", 0), ("f", 2), ("g", 0)]):
        put(w, n, family=family, level=level)
    assert {name: section.groups for name, section in w.sections.items()} == {"f": 2, "g": 1}
    assert [queue.groups for queue in w.author(b"a").queues(["f", "h"])] == [1, 1]
    w.drop((1).to_bytes(32, "big"))
    assert w.sections["f"].groups == 1 and w.sizes == {("f", 0): 1, ("g", 0): 1}
    w.drop_key(b"a")
    assert w.sections == {} and w.authors == {} and w.sizes == {}


class Plain:
    """A window as one list, gone through from end to end for everything."""

    def __init__(self, limits: WindowLimits) -> None:
        self.limits = limits
        self.groups: list[tuple[int, str, str, tuple[str, int], int, float]] = []
        self.seen: dict[int, float] = {}

    def expire(self, now: float) -> None:
        self.groups = [group for group in self.groups if group[5] >= now - self.limits.age_s]
        remember_s = max(self.limits.age_s, self.limits.remember_s)
        self.seen = {n: at for n, at in self.seen.items() if at >= now - remember_s}

    def put(self, n: int, key: str, address: str, shelf: tuple[str, int], size: int, now: float) -> str:
        self.expire(now)
        limits = self.limits
        of_key, of_address = (
            limits.shelf.share(percent) for percent in (limits.key_percent, limits.address_percent)
        )
        if n in self.seen:
            return "duplicate"
        if size > min(of_key.bytes, of_address.bytes, limits.whole.bytes):
            return "too-large"
        self.groups.append((n, key, address, shelf, size, now))
        self.seen[n] = now
        for bounds, belongs in (
            (of_key, lambda group: group[3] == shelf and group[1] == key),
            (of_address, lambda group: group[3] == shelf and group[2] == address),
            (limits.shelf, lambda group: group[3] == shelf),
            (limits.whole, lambda group: True),
        ):
            mine = [group for group in self.groups if belongs(group)]
            while len(mine) > bounds.groups or sum(group[4] for group in mine) > bounds.bytes:
                self.groups.remove(mine.pop(0))
        while len(self.seen) > limits.remembered:
            oldest = next(iter(self.seen))
            del self.seen[oldest]
            self.groups = [group for group in self.groups if group[0] != oldest]
        return "accepted"


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32))
def test_it_holds_what_a_plain_list_would_hold(seed: int) -> None:
    rng = Random(seed)  # longer than hypothesis would draw it: full lines are what this is about
    clock = Clock()
    limits = WindowLimits(
        whole=Bounds(16, 600),
        shelf=Bounds(7, 300),
        key_percent=45,
        address_percent=60,
        age_s=40,
        remember_s=60,
        remembered=24,
    )
    w, plain = Window(limits, clock), Plain(limits)
    for _ in range(200):
        n, key, address = rng.randrange(150), rng.choice("aaabcde"), rng.choice("xxyz")
        family, level, size = rng.choice("ffg"), rng.choice((0, 0, 1)), rng.choice((rng.randrange(60), 10, 140))
        clock.now += rng.choice((0, 0, 1, 5))
        if rng.random() < 0.1:
            w.drop(n.to_bytes(32, "big"))
            plain.groups = [group for group in plain.groups if group[0] != n]
        else:
            outcome = put(w, n, key, address, family, level, size)
            assert outcome == plain.put(n, key, address, (family, level), size, clock.now)
        assert ids(w) == [group[0] for group in plain.groups]
        assert w.sizes == Counter(group[3] for group in plain.groups)
        assert w.size == sum(group[4] for group in plain.groups)
        assert set(w.peers) == {group[1].encode() for group in plain.groups}
        assert w.addresses == {group[2] for group in plain.groups}
    for key in "ab":
        assert w.drop_key(key.encode()) == sum(group[1] == key for group in plain.groups)
    assert w.drop_address("x") == sum(group[1] not in "ab" and group[2] == "x" for group in plain.groups)
