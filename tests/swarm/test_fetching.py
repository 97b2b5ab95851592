"""What is fetched, kept ready, taken, given back and never taken again. Relay and check are stand-ins."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from app.common.rate import Bucket
from app.learning.choosing import JudgedGroup
from app.node.record.events import NodeNote
from app.node.swarm.member import SwarmMember
from app.node.swarm.reporting import SwarmReporter
from app.sapo.groups import HUMAN_MODEL, GroupRecord, is_single_right_answer
from app.sapo.questions import Coordinates
from app.sapo.recipes import RECIPES, Recipe
from app.swarm import fetching
from app.swarm.client.receipts import ReceiptCounter
from app.swarm.client.status import ConnectionStatus, Ledger
from app.swarm.fetching import PeerFetcher
from app.swarm.intake.buffer import PeerBuffer
from app.swarm.intake.intake import IntakeResult
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire.limits import ARCHIVE_MAX_AGE_S
from app.swarm.wire.protocol import WantedQuestions

NOW_MS = 1_800_000_000_000


def checked(number: int, peer: str = "", age_s: float = 0.0) -> GroupRecord:
    group = GroupRecord(
        coordinates=Coordinates(family="gcd", level=0, seed=2**42 + number, index=0),
        completions_G=("#1", "#2"),
        finished_G=(True, True),
        model="other",
    )
    return msgspec.structs.replace(
        group.with_scores((1.0, 0.0), (1, 0)),
        id=f"{number:064x}",
        key=peer or f"{number % 3:064x}",
        author="brisk-otter-0417",
        question=f"question {number}",
        created_ms=NOW_MS - int(age_s * 1000),
    )


class Item(bytes):
    """A group on the wire; only its length is looked at."""

    group: GroupRecord
    size = 700

    @classmethod
    def of(cls, group: GroupRecord) -> Item:
        item = cls(cls.size)
        item.group = group
        return item


class Relay:
    """Stands for the client: hands out batches."""

    def __init__(self, batches: Sequence[Sequence[GroupRecord]], connected: bool = True) -> None:
        self.batches = list(batches)
        self.status = SimpleNamespace(swarm="shoal", connected=connected)
        self.now_ms = NOW_MS
        self.archive: list[Sequence[GroupRecord]] = []
        self.asked: list[tuple[int, Sequence[str] | None, int | None]] = []
        self.recalled: list[tuple[int, tuple[tuple[str, int], ...]]] = []
        self.reported: list[tuple[tuple[str, ...], str]] = []
        self.eligible: int | None = None

    async def sample(self, k: int, families: Sequence[str] | None, max_age_s: int | None) -> Any:
        self.asked.append((k, families, max_age_s))
        return self._batch(self.batches)

    async def recall(self, k: int, tasks: Sequence[WantedQuestions]) -> Any:
        self.recalled.append((k, tuple((one.family, one.level) for one in tasks)))
        return self._batch(self.archive) if tasks else None

    def _batch(self, batches: list[Sequence[GroupRecord]]) -> Any:
        if not batches:
            return None
        items = list(map(Item.of, batches.pop(0)))
        return SimpleNamespace(items=items, eligible=len(items) if self.eligible is None else self.eligible)

    def report(self, ids: Any, reason: str) -> None:
        self.reported.append((tuple(ids), reason))


def of_family(name: str, number: int) -> GroupRecord:
    one = checked(number)
    return msgspec.structs.replace(one, coordinates=msgspec.structs.replace(one.coordinates, family=name))


class Check:
    """Stands for the intake: passes everything but what it is told to refuse."""

    def __init__(self, refused: dict[str, IntakeReason] | None = None) -> None:
        self.refused = refused or {}

    def check_batch(self, items: Sequence[Item], now_ms: int, oldest_s: int | None = None) -> IntakeResult:
        self.oldest_s = oldest_s
        groups = [item.group for item in items]
        bad = [one for one in groups if one.id in self.refused]
        reports: dict[str, tuple[str, ...]] = {}
        for one in bad:
            if (complaint := self.refused[one.id].complaint) is not None:
                reports[complaint] = (*reports.get(complaint, ()), one.id)
        return IntakeResult(
            checked=tuple(one for one in groups if one not in bad),
            refused={self.refused[one.id]: 1 for one in bad},
            reports=reports,
        )


def made(
    relay: Relay,
    check: Check | None = None,
    external: int = 4,
    used: Sequence[GroupRecord] = (),
    recipe: Recipe = RECIPES["default"],
) -> PeerFetcher:
    buffer = PeerBuffer(lambda: NOW_MS)
    buffer.used = {one.coordinates for one in used}
    return PeerFetcher(
        relay,  # type: ignore[arg-type]
        lambda swarm: check or Check(),  # type: ignore[arg-type,return-value]
        buffer,
        recipe,
        external,
        ("gcd",),
    )


def settle(
    fetcher: PeerFetcher,
    round_s: float,
    judged_P: Sequence[JudgedGroup] = (),
    own_P: Sequence[GroupRecord] = (),
) -> None:
    """As a member of a swarm does after a round."""
    fetcher.buffer.round_s = round_s
    fetcher.buffer.settle_used(judged_P)
    fetcher.on_round_over(own_P)


def ready(fetcher: PeerFetcher) -> int:
    return fetcher.buffer.count_ready(fetcher._recipe)


def fetch(fetcher: PeerFetcher, until: Callable[[], bool]) -> None:
    """Runs it until something is so."""

    async def run() -> None:
        task = asyncio.create_task(fetcher.run())
        async with asyncio.timeout(120):
            while not until():
                await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())


def take(fetcher: PeerFetcher, most: int = 4) -> list[str]:
    return [one.question for one in fetcher.buffer.take_groups(RECIPES["default"], most, Random(1))]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MIN_BETWEEN_SAMPLES_S", 0.01)
    monkeypatch.setattr(fetching, "FIRST_EMPTY_WAIT_S", 0.01)


def test_what_is_missing_is_asked_for_once_and_no_more() -> None:
    relay = Relay([[checked(n) for n in range(4)]])
    fetcher = made(relay)
    fetch(fetcher, lambda: ready(fetcher) == 4)
    assert relay.asked == [(4, ("gcd",), 120)]
    assert sorted(take(fetcher)) == [f"question {n}" for n in range(4)]
    assert (fetcher.received, fetcher.accepted, ready(fetcher)) == (4, 4, 0)


def test_a_peer_whose_answers_were_kept_out_is_taken_from_less() -> None:
    good, bad = "a" * 64, "b" * 64
    recipe = msgspec.structs.replace(RECIPES["default"], by_record=True)
    batch = [checked(n, good if n % 2 else bad) for n in range(40)]
    taken = {}
    for by_record in (True, False):
        asked = msgspec.structs.replace(recipe, by_record=by_record)
        fetcher = made(Relay([batch]), external=40, recipe=asked)
        fetch(fetcher, lambda fetcher=fetcher: ready(fetcher) == 40)
        chosen = []
        for number in range(12):
            groups = fetcher.buffer.take_groups(asked, 1, Random(number))
            (out,) = fetcher.buffer._out
            chosen.append(out.key)
            right = (4, 0) if out.key == good else (0, 4)
            settle(fetcher, 5.0, [JudgedGroup(group, *right) for group in groups])
        taken[by_record] = chosen.count(bad)
    assert taken[True] <= 3 < 4 <= taken[False]


def test_what_doubted_peers_left_keeps_nobody_elses_from_being_fetched() -> None:
    good, bad = "a" * 64, "b" * 64
    recipe = msgspec.structs.replace(RECIPES["default"], by_record=True)
    relay = Relay([[checked(n, bad) for n in range(12)], [checked(n, good) for n in range(20, 24)]])
    fetcher = made(relay, external=4, recipe=recipe)
    fetch(fetcher, lambda: ready(fetcher) == 12)
    groups = fetcher.buffer.take_groups(recipe, 4, Random(1))
    settle(fetcher, 5.0, [JudgedGroup(group, 0, 4) for group in groups])
    assert (ready(fetcher), len(fetcher.buffer)) == (0, 8)
    fetch(fetcher, lambda: ready(fetcher) == 4)
    assert len(relay.asked) >= 2


def human(number: int) -> GroupRecord:
    """A person's group: one right answer."""
    one = checked(number)
    group = msgspec.structs.replace(one, completions_G=("1+1=2 #2",), finished_G=(True,), model=HUMAN_MODEL)
    return group.with_scores((1.0,), (1,))


def test_peoples_answers_come_on_top_and_only_to_whoever_likes_them() -> None:
    relay = Relay([[*(human(number) for number in range(9, 15)), *map(checked, range(3))]])
    fetcher = made(relay)
    fetch(fetcher, lambda: fetcher.accepted == 9)
    assert ready(fetcher) == 3, "people's keep no others from being fetched"
    fetcher.buffer._people = lambda: False
    taken = fetcher.buffer.take_groups(RECIPES["default"], 2, Random(1))
    assert [is_single_right_answer(one.rewards_G) for one in taken] == [False, False]
    settle(fetcher, 60.0)
    fetcher.buffer._people = lambda: True
    taken = fetcher.buffer.take_groups(RECIPES["default"], 2, Random(1))
    assert sorted(is_single_right_answer(one.rewards_G) for one in taken) == [False, True], (
        "one as soon as it is on"
    )


def test_groups_that_were_not_read_leave_no_record() -> None:
    fetcher = made(Relay([[checked(n) for n in range(2)]]), external=2)
    fetch(fetcher, lambda: ready(fetcher) == 2)
    groups = fetcher.buffer.take_groups(RECIPES["default"], 2, Random(1))
    settle(fetcher, 5.0, [JudgedGroup(groups[1], 1, 0)])
    assert len(fetcher.buffer.records._records) == 1


def test_what_was_trained_on_before_this_start_is_not_taken_again() -> None:
    relay = Relay([[checked(1), checked(2)]])
    fetcher = made(relay, external=2, used=[checked(1)])
    fetch(fetcher, lambda: fetcher.received == 2)
    assert take(fetcher) == ["question 2"] and fetcher.refused == {"seen": 1}


def test_a_second_group_to_one_question_is_a_copy_whatever_it_says() -> None:
    first, other = checked(1, peer="a" * 64), checked(2)
    copy = msgspec.structs.replace(
        first, id="f" * 64, key="b" * 64, completions_G=("quite other words #1", "#2")
    )
    fetcher = made(Relay([[first, copy], [copy, other]]))
    fetch(fetcher, lambda: fetcher.received == 4)
    assert sorted(take(fetcher)) == ["question 1", "question 2"] and fetcher.refused == {"seen": 2}
    assert {one.key for one in fetcher.buffer._out} == {first.key, other.key}


def test_no_copy_of_own_groups_comes_back(tmp_path: Path) -> None:
    swarming = SwarmMember(
        tmp_path,
        lambda say: contextlib.nullcontext(()),  # type: ignore[arg-type,return-value]
        recipe=RECIPES["default"],
        external=2,
        families=("gcd",),
    )
    mine, other = checked(1, peer="c" * 64), checked(2)
    swarming.settle_round([mine], 5.0)
    swarming.buffer.now_ms = lambda: NOW_MS
    fetcher = PeerFetcher(
        Relay([[mine, other]]),  # type: ignore[arg-type]
        lambda swarm: Check(),  # type: ignore[arg-type,return-value]
        swarming.buffer,
        RECIPES["default"],
        2,
        ("gcd",),
    )
    fetch(fetcher, lambda: fetcher.received == 2)
    assert take(fetcher) == ["question 2"]


@pytest.mark.parametrize(("swarm", "waits"), [("one", 3), ("another", 0)])
def test_groups_that_waited_are_here_again_in_the_same_swarm(swarm: str, waits: int, tmp_path: Path) -> None:
    def member(swarm: str) -> SwarmMember:
        made = SwarmMember(tmp_path, None, recipe=RECIPES["default"], external=2, families=("gcd", "lcm"))
        made.buffer.now_ms = lambda: NOW_MS
        made.practise_families(("gcd",))
        made._sandbox = None  # type: ignore[assignment]  # nothing is checked
        made._open_intake(swarm, ())
        return made

    first = member("one")
    groups = [of_family("lcm", number) for number in range(3)]
    assert all(map(first.buffer.add, groups))
    first.count_taught([groups[0].id])
    first.thank_for_family("lcm")
    assert len(member(swarm).buffer.waiting_groups()) == waits


def telling_reporter(folder: Path) -> tuple[SwarmReporter, list[str]]:
    """A reporter, and the sentences that it says."""
    told: list[str] = []
    reporter = SwarmReporter(folder, RECIPES["default"], ReceiptCounter(folder), Ledger())
    reporter.open(
        lambda event: told.append(event.sentence) if isinstance(event, NodeNote) else None, lambda view: None
    )
    return reporter, told


def test_the_same_trouble_is_told_once_and_again_after_a_connection(tmp_path: Path) -> None:
    reporter, told = telling_reporter(tmp_path)
    for _ in range(2):
        reporter.explain_alone("The outbox is in use.")
    assert len(told) == 1
    reporter.linked(
        ConnectionStatus(state="connected", url="ws://a/v1/ws", relay="r", swarm="shoal", sentence="")
    )
    reporter.explain_alone("The outbox is in use.")
    assert len(told) == 2


def test_a_clock_that_is_far_off_is_told_once_and_stays_in_sight(tmp_path: Path) -> None:
    reporter, told = telling_reporter(tmp_path)
    apart = SimpleNamespace(connected=True, clock_offset_ms=-86_400_000)
    shown = [reporter._compare_clocks(apart) for _ in range(2)]  # type: ignore[arg-type]
    assert shown[0] == shown[1] and "24 h" in shown[0] and told == shown[:1]
    near = SimpleNamespace(connected=True, clock_offset_ms=2_000)
    assert reporter._compare_clocks(near) == ""  # type: ignore[arg-type]


def test_a_twin_is_told_of_once_and_stays_in_sight(tmp_path: Path) -> None:
    reporter, told = telling_reporter(tmp_path)
    for twin, words in ((True, "identity new"), (False, "That computer is asked")):
        met = reporter._meet_twin(SimpleNamespace(twin=twin))  # type: ignore[arg-type]
        assert words in met
    assert len(told) == 1 and "identity new" in told[0]
    assert reporter._meet_twin(SimpleNamespace(twin=None)) == ""  # type: ignore[arg-type]


def test_who_is_alone_asks_for_what_was_left_behind_where_it_failed() -> None:
    """What comes is hours old, and as good as new here; with somebody there the archive is left alone."""

    def own(level: int, rewards_G: tuple[int, ...]) -> GroupRecord:
        group = checked(level)
        where = msgspec.structs.replace(group.coordinates, level=level)
        return msgspec.structs.replace(group, coordinates=where).with_scores((0.0, 0.0), rewards_G)

    relay, check = Relay([[], [], [checked(9)]]), Check()
    relay.archive = [[checked(7, age_s=20_000), checked(8, age_s=80_000)]]
    fetcher = made(relay, check)
    fetch(fetcher, lambda: len(relay.asked) > 0)
    assert relay.recalled == [(4, ())], "before the first round nothing is known of where it fails"
    settle(fetcher, 5.0, (), [own(0, (1, 0)), own(1, (0, 0)), own(2, (0, 0))])
    settle(fetcher, 5.0, (), [own(2, (0, 1))])
    fetch(fetcher, lambda: fetcher.received == 2)
    assert relay.recalled[1:] == [(8, (("gcd", 1),))] and check.oldest_s == ARCHIVE_MAX_AGE_S
    assert ready(fetcher) == 2
    assert sorted(take(fetcher)) == ["question 7", "question 8"]
    fetch(fetcher, lambda: fetcher.received == 3)
    assert len(relay.recalled) == 2 and check.oldest_s is None


def test_refused_groups_are_counted_reported_and_made_up_for() -> None:
    batch = [checked(n) for n in range(4)]
    check = Check({batch[0].id: IntakeReason.FALSE_REWARDS, batch[1].id: IntakeReason.STALE})
    relay = Relay([batch, [checked(9)]])
    fetcher = made(relay, check)
    fetch(fetcher, lambda: fetcher.received == 5)
    assert fetcher.refused == {"false-rewards": 1, "stale": 1} and fetcher.accepted == 3
    assert relay.reported == [((batch[0].id,), "bad_reward")]
    assert relay.asked[1][0] == 3  # two are missing, and not everything passes


def test_offline_it_asks_nobody_and_rounds_take_what_is_there() -> None:
    relay = Relay([[checked(1)]], connected=False)
    fetcher = made(relay)

    async def run() -> None:
        task = asyncio.create_task(fetcher.run())
        await asyncio.sleep(0.05)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert relay.asked == [] and take(fetcher) == []


def test_nothing_is_fetched_while_the_node_rests() -> None:
    relay = Relay([[checked(1)], [checked(2)]])
    fetcher = made(relay)
    fetcher.resting = True

    async def run() -> None:
        task = asyncio.create_task(fetcher.run())
        await asyncio.sleep(0.3)
        assert not relay.asked
        fetcher.resting = False
        async with asyncio.timeout(120):
            while not relay.asked:
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(run())


def test_what_is_fetched_to_imitate_is_bounded_and_comes_from_the_archive_where_nobody_is_here() -> None:
    relay = Relay([[] for _ in range(100)])
    fetcher = made(relay, external=0)
    fetcher._budget = Bucket(0.001, 150_000)  # a sample of large groups is 120,000
    fetcher.imitated = ("lcm", "dice")
    fetch(fetcher, lambda: len(relay.asked) == 4 and fetcher._budget.left(time.monotonic()) < 120_000)
    assert set(relay.asked) == {(fetching.IMITATED_GROUPS, ("lcm", "dice"), fetching.MAX_AGE_S)}
    assert relay.recalled[0][1] == (("lcm", 0), ("dice", 0), ("lcm", 1), ("dice", 1))


def test_groups_that_are_refused_do_not_cost_traffic_without_end() -> None:
    batches = [[checked(10 * n + k) for k in range(4)] for n in range(50)]
    lies = {one.id: IntakeReason.FALSE_REWARDS for some in batches for one in some}
    relay = Relay(batches)
    fetcher = made(relay, Check(lies))
    fetcher._refusable = Bucket(0.001, 10_000, owes=True)
    fetch(fetcher, lambda: fetcher._refusable.left(time.monotonic()) < 0)
    assert (len(relay.asked), fetcher.accepted) == (4, 0), "four samples of 2,800 bytes"
    before = len(relay.asked)
    fetcher.imitated = ("lcm",)
    rested = fetcher._fetch(), fetcher._fetch_to_imitate()
    assert asyncio.run(rested[0]) is None and asyncio.run(rested[1]) is None
    assert len(relay.asked) == before


def test_a_relay_that_sends_more_than_was_asked_for_is_paid_off_before_more_is_asked_for() -> None:
    relay = Relay([[of_family("lcm", n) for n in range(24)], []])
    fetcher = made(relay, external=0)
    fetcher.buffer.set_trained_families(["gcd"])
    fetcher.imitated = ("lcm",)
    fetcher._budget = Bucket(60.0, 120_000, owes=True)
    fetcher._budget.take(-1, time.monotonic())
    Item.size = 40_000
    try:
        fetch(fetcher, lambda: len(fetcher.buffer.waiting_groups()) == 24)
    finally:
        Item.size = 700
    assert len(relay.asked) == 1 and fetcher._budget.left(time.monotonic()) < -800_000


def test_what_is_too_old_for_a_sample_comes_from_the_archive() -> None:
    relay = Relay([[] for _ in range(9)])
    relay.archive = [[of_family("lcm", 1)], [of_family("lcm", 2)]]
    relay.eligible = 800  # held by the relay, and older than what a sample may be
    fetcher = made(relay, external=0)
    fetcher.buffer.set_trained_families(["gcd"])
    fetcher.imitated = ("lcm",)
    fetch(fetcher, lambda: len(fetcher.buffer.waiting_groups()) == 2)


def test_a_few_families_are_made_whole_before_others_are_asked_for() -> None:
    fetcher = made(Relay([]))
    names = ("lcm", "dice", "maze", "aiw", "bf", "caesar_cipher", "products", "gsm_symbolic", "sokoban", "rush")
    fetcher.imitated = names
    assert fetcher._short_of_groups() == names
    fetcher.buffer.set_trained_families(["gcd"])
    for at, name in enumerate(names):
        for number in range(at):
            fetcher.buffer.add(of_family(name, 100 * at + number))
    assert fetcher._short_of_groups() == names[:1:-1]


def test_a_peer_was_last_seen_at_its_newest_group_in_whatever_order_they_come() -> None:
    relay = Relay([[checked(1, "a" * 64, age_s=60.0), checked(2, "a" * 64, age_s=40_000.0)]])
    fetcher = made(relay)
    fetch(fetcher, lambda: bool(fetcher.peers))
    (peer,) = fetcher.peers.values()
    assert (peer.groups, peer.seen_at) == (2, NOW_MS / 1000 - 60)
