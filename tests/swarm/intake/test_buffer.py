"""The buffer: each group once, nobody too much of it, nothing too old, never too large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from app.learning.choosing import JudgedGroup
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.sapo.recipes import RECIPES
from app.swarm.intake.buffer import (
    DOUBTED,
    IN_RESERVE,
    MAX_WAITING_PER_FAMILY,
    NOT_NEEDED,
    OTHER_KINDS,
    WAITING_BYTES,
    PeerBuffer,
    WaitingGroups,
    group_bytes,
)

NOW_MS = 1_800_000_000_000


def checked(
    number: int, peer: str = "ann", age_s: float = 0.0, text: str = "#1", family: str = "gcd"
) -> GroupRecord:
    group = GroupRecord(
        coordinates=Coordinates(family=family, level=0, seed=number, index=0),
        completions_G=(text, "#2"),
        finished_G=(True, True),
        model="starter",
    )
    return msgspec.structs.replace(
        group.with_scores((1.0, 0.0), (1, 0)),
        id=f"{number:064x}",
        key=peer,
        author=peer,
        question="?",
        created_ms=NOW_MS - int(age_s * 1000),
    )


def clock(now_ms: int = NOW_MS) -> Callable[[], int]:
    return lambda: now_ms


def take_all(buffer: PeerBuffer) -> list[str]:
    """Ids of everything that is ready, which is out then."""
    uniform = msgspec.structs.replace(RECIPES["faithful"], max_age=None)
    return [one.id for one in buffer.take_groups(uniform, 1000, Random(1))]


def test_each_group_is_used_once_and_gone_then() -> None:
    buffer = PeerBuffer(clock())
    for number in range(5):
        assert buffer.add(checked(number))
        assert not buffer.add(checked(number)), "it is here already"
    assert len(buffer.ages()) == 5
    groups = buffer.take_groups(RECIPES["default"], 2, Random(1))
    assert len(groups) == 2 and len(buffer) == 3
    assert buffer.settle_used([JudgedGroup(groups[0], 1, 0), JudgedGroup(groups[1], 0, 1)]) == [groups[0].id]
    assert buffer.taken == 2 and not any(map(buffer.add, groups)), "what was used comes in no more"
    assert len(take_all(buffer)) == 3 and take_all(buffer) == []


def test_what_is_given_back_is_ready_again_until_it_was_out_at_two_deaths() -> None:
    buffer = PeerBuffer(clock())
    buffer.add(checked(1))
    for blamed, left in ((False, 1), (True, 1), (False, 1), (True, 0)):
        assert take_all(buffer) == [checked(1).id]
        buffer.give_back(blamed)
        assert len(buffer) == left
    assert not buffer.add(checked(1))


def test_age_is_in_this_nodes_rounds() -> None:
    buffer = PeerBuffer(clock())
    for number, age_s in enumerate((1700, 1000, 119, 10, -100)):
        buffer.add(checked(number, age_s=age_s))

    def ages(round_s: float) -> list[int]:
        buffer.round_s = round_s
        return buffer.ages()

    assert ages(500) == [3, 2, 0, 0, 0], "a slow node finds groups"
    assert buffer.count_ready(RECIPES["default"]) == 5
    assert ages(2) == [56, 33, 3, 0, 0] == ages(0.0), "so does a fast one"
    assert buffer.count_ready(RECIPES["default"]) == 3
    buffer.now_ms = clock(NOW_MS + 200_000)
    assert len(ages(500)) == 4 == len(buffer), "half an hour is the end"


def test_a_flood_displaces_itself() -> None:
    buffer = PeerBuffer(clock(), most=20, per_peer=8)
    for number in range(4):
        buffer.add(checked(number, "bob"))
    for number in range(100, 200):
        buffer.add(checked(number, f"flood{number % 3}"))
    ids = take_all(buffer)
    assert {f"{n:064x}" for n in range(4)} <= set(ids) and len(ids) == 20
    assert f"{199:064x}" in ids and f"{100:064x}" not in ids


def test_bytes_are_bounded_too() -> None:
    buffer = PeerBuffer(clock(), most_bytes=100_000)
    for number in range(50):
        buffer.add(checked(number, text="🐟" * 4000))
    assert 1 <= len(buffer) < 10 and sum(map(group_bytes, buffer._ready.values())) <= 100_000


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.integers(-100, 3000)), max_size=60))
def test_it_always_adds_up(arrivals: list[tuple[int, str, int]]) -> None:
    buffer, used = PeerBuffer(clock(), most=12, per_peer=6), 0
    for number, peer, age_s in arrivals:
        buffer.add(checked(number, peer, age_s))
        buffer.ages()
        ready = list(buffer._ready.values())
        assert len(ready) <= 12
        assert all(sum(one.key == peer for one in ready) <= 6 for peer in "abc")
        if number % 5 == 0:
            out = buffer.take_groups(RECIPES["default"], 1, Random(number))
            if number % 10:
                used += len(out)
                buffer.settle_used()
            else:
                buffer.give_back(blamed=False)
                assert {one.id for one in out} <= set(buffer._ready)
        assert buffer.taken == used
        assert buffer._bytes == sum(map(group_bytes, buffer._ready.values()))
        assert buffer._by_author == Counter(one.key for one in buffer._ready.values())


def test_groups_of_other_families_wait_until_the_node_trains_on_them() -> None:
    buffer = PeerBuffer(clock())
    buffer.set_trained_families(["gcd"])
    assert all(buffer.add(checked(number, family="lcm", age_s=9999)) for number in range(4))
    assert not buffer.add(checked(0, family="lcm")) and buffer.add(checked(9))
    assert len(buffer.waiting_groups()) == 4 and take_all(buffer) == [checked(9).id]
    first, second, *_ = buffer.waiting_groups()
    buffer.count_taught([first.id, "displaced meanwhile"])
    assert buffer.learned_from("lcm") == [first] and buffer.learned_from("dice") == []
    assert buffer.taken == 1 and buffer.authors == {"ann": 1} and len(buffer.waiting_groups()) == 4
    buffer.count_taught([first.id, second.id])
    assert buffer.learned_from("lcm") == [second], "it thanks for each only once"
    assert buffer.times_taught == {first.id: 2, second.id: 1} and buffer.taken == 2
    buffer.set_trained_families(["gcd", "lcm"])
    assert not buffer.waiting_groups() and take_all(buffer) == [], "taught, or too old for a round"


def test_who_taught_nothing_has_a_reason() -> None:
    buffer = PeerBuffer(clock())
    buffer.set_trained_families(["gcd"])
    buffer.add(checked(0, "used"))
    assert len(take_all(buffer)) == 1
    buffer.settle_used()
    for number, (who, family) in enumerate(
        (("liar", "gcd"), ("hard", "lcm"), ("next", "gcd"), ("used", "gcd")), 1
    ):
        assert buffer.add(checked(number, who, family=family))
    for _ in range(8):
        buffer.records.record_use("liar", 0, 8)
    why = buffer.why_unused(RECIPES["default"], ["used", "liar", "hard", "next", "gone"])
    assert why == {"liar": DOUBTED, "hard": OTHER_KINDS, "next": IN_RESERVE, "gone": NOT_NEEDED}
    assert buffer.authors == {"used": 1}


def test_what_waits_outlasts_the_node_for_a_day() -> None:
    buffer = PeerBuffer(clock())
    buffer.set_trained_families(["gcd"])
    assert all(buffer.add(checked(number, family="lcm")) for number in range(3))
    first, second, third = buffer.waiting_groups()
    buffer.count_taught([first.id])
    assert buffer.learned_from("lcm") == [first]
    buffer.count_taught([second.id])
    saved = buffer.save_waiting("swarm")
    assert msgspec.json.decode(msgspec.json.encode(saved), type=WaitingGroups) == saved
    later = PeerBuffer(clock(NOW_MS + 3_600_000))
    later.set_trained_families(["gcd"])
    assert later.add(third)
    later.restore_waiting(saved)
    assert {one.id for one in later.waiting_groups()} == {first.id, second.id, third.id}
    assert later.times_taught == {first.id: 1, second.id: 1} and not later.add(second)
    assert later.learned_from("lcm") == [second], "it thanked for the first one before"
    tomorrow = PeerBuffer(clock(NOW_MS + 86_400_001))
    tomorrow.restore_waiting(saved)
    assert not tomorrow.waiting_groups() and not len(tomorrow)


def test_what_came_before_the_families_were_known_waits_where_they_are_not_practised() -> None:
    buffer = PeerBuffer(clock())
    for number, family in enumerate(("gcd", "lcm", "lcm")):
        buffer.add(checked(number, family=family))
    alone = checked(3, family="dice")
    group = msgspec.structs.replace(alone, completions_G=("#1",), finished_G=(True,), model="human")
    person = group.with_scores((1.0,), (1,))
    buffer.add(person)
    assert len(buffer) == 4
    buffer.set_trained_families(["gcd"])
    assert len(buffer) == 1
    assert [one.id for one in buffer.waiting_groups()] == [checked(n).id for n in (1, 2)], (
        "people's are not imitated"
    )


def test_a_flood_of_waiting_groups_displaces_its_own_author_and_its_own_family() -> None:
    buffer = PeerBuffer(clock())
    buffer.set_trained_families(["gcd"])
    for number in range(30):
        buffer.add(checked(number, "ann", family="lcm"))
        buffer.add(checked(1000 + number, "ann", family="dice"))
    for number in range(100, 400):
        buffer.add(checked(number, "eve", family="lcm"))
    waiting = Counter((one.key, one.coordinates.family) for one in buffer.waiting_groups())
    assert waiting == {("ann", "lcm"): 30, ("ann", "dice"): 30, ("eve", "lcm"): MAX_WAITING_PER_FAMILY // 2}
    big = "x" * 100_000
    for number in range(500, 560):
        buffer.add(checked(number, "mal", family="maze", text=big))
    left = buffer.waiting_groups()
    assert sum(map(group_bytes, left)) <= WAITING_BYTES and sum(one.key == "ann" for one in left) == 60
