"""A day of groups: found by question and by level, within a size, of many voices, and gone when asked."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from app.relay.checking import Checker
from app.relay.session.session import Session
from app.relay.session.shared import RelayState
from app.relay.store.backing import Backing, CheckedGroup, Memory, StoreError
from app.relay.store.day import DAY_MS, HOUR_MS
from app.relay.store.jetstream import JetStream, servers
from app.relay.store.sqlite import SQLite
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.wire.body import task_of
from app.swarm.wire.frames import decode_envelope, decode_relay_frame, to_frame
from app.swarm.wire.limits import RELAY_FILE, Code
from app.swarm.wire.protocol import (
    ARCHIVE,
    AskStats,
    Erase,
    Erased,
    Err,
    FromClient,
    Hello,
    Ok,
    Pub,
    Recall,
    SampleReply,
    Stats,
    WantedQuestions,
)
from app.swarm.wire.signin import sign_in
from tests.relay.natsserver import Server, free_ports
from tests.relay.talking import key, sealed, seed

SWARM = "shoal"
LEVEL = WantedQuestions(family="gcd", level=0)


def record(who: int, number: int, *, hours: float = 0.0, address: str = "", **group: Any) -> CheckedGroup:
    """A signed group that came so many hours ago, of a network of its own unless one is named."""
    envelope = sealed(who, number, **group)
    return CheckedGroup(
        id=bytes.fromhex(envelope.id),
        key=key(who),
        key_seq=number,
        address=address or f"{who:016x}",
        family="gcd",
        level=0,
        arrived_ms=int(time.time() * 1000 - hours * HOUR_MS),
        raw=msgspec.json.encode(envelope),
    )


async def archived(folder: Path, most: int = 1 << 24) -> SQLite:
    file = SQLite(folder, SWARM, archive=most, rng=Random(7))
    await file.start(lambda record: "accepted", lambda key, value: None, lambda relay, summary: None)
    return file


def everybody(key: bytes) -> float:
    return 1.0


def play(story: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(120):
            return await story

    return asyncio.run(bounded())


def test_groups_are_found_by_their_question_and_by_their_level(tmp_path: Path) -> None:
    async def story() -> None:
        archive = await archived(tmp_path)
        one, same, other = record(1, 5), record(2, 5), record(3, 6)
        for each in (one, same, other):
            await archive.publish(each)
        task = task_of(msgspec.json.decode(one.raw, type=type(sealed(1, 1))))
        question = WantedQuestions(family="gcd", level=0, seed=task.seed, index=task.index)
        found = await archive.recall([question], 8, key(9), everybody)
        assert {old.id for old in found} == {one.id, same.id}
        assert [old.raw for old in await archive.recall([question], 8, key(1), everybody)] == [same.raw]
        assert len(await archive.recall([LEVEL], 8, key(9), everybody)) == 3
        assert not await archive.recall([WantedQuestions(family="gcd", level=1)], 8, key(9), everybody)
        assert not await archive.recall([LEVEL], 8, key(9), lambda key: 0.0)
        await archive.close()
        again = await archived(tmp_path)
        assert len(await again.recall([LEVEL], 8, key(9), everybody)) == 3
        await again.close()

    play(story())


def test_many_groups_are_not_many_voices(tmp_path: Path) -> None:
    """One key with 200 groups beside ten keys with one each, and twenty keys of one network beside those."""

    async def story() -> None:
        archive = await archived(tmp_path)
        for number in range(1, 201):
            await archive.publish(record(1, number))
        for who in range(2, 12):
            await archive.publish(record(who, 1000 + who))
        voices = Counter[bytes]()
        for _ in range(40):
            found = await archive.recall([LEVEL], 8, key(99), everybody)
            assert len(found) == 8 and len({old.key for old in found}) == 8
            voices.update(old.key for old in found)
        assert voices[key(1)] <= 40
        for who in range(20, 40):
            await archive.publish(record(who, 2000 + who, address="ab" * 8))
        for _ in range(40):
            found = await archive.recall([LEVEL], 8, key(99), everybody)
            assert sum(old.address == "ab" * 8 for old in found) <= 2
        few = await archive.recall([LEVEL], 64, key(99), everybody)
        assert len(few) > 48, "where there is nobody else, a key may give more"
        await archive.close()

    play(story())


def test_who_asks_for_what_is_not_there_costs_little(tmp_path: Path) -> None:
    """Its own groups, those of one author alone, sixty-four times the same: counted in looks at the file."""
    looks = 0

    def note(words: str) -> None:
        nonlocal looks
        looks += words.startswith("SELECT")

    async def ask(
        archive: SQLite, wanted: list[WantedQuestions], but: int, weight: float = 1.0
    ) -> tuple[int, int]:
        nonlocal looks
        looks = 0
        found = await archive.recall(wanted, 128, key(but), lambda _: weight)
        return len(found), looks

    async def story() -> None:
        archive = await archived(tmp_path)
        for number in range(1, 200):
            await archive.publish(record(1, number))
        await archive.recall([LEVEL], 1, key(9), everybody)
        archive._db.set_trace_callback(note)
        for wanted in ([LEVEL], [LEVEL] * 64):
            found, cost = await ask(archive, wanted, but=1)
            assert (found, cost < 100) == (0, True), "its own groups are not looked through"
            found, cost = await ask(archive, wanted, but=9)
            assert (found, cost < 8 * 128) == (128, True)
        elsewhere = [WantedQuestions(family="gcd", level=0, seed=seed) for seed in range(64)]
        assert (await ask(archive, elsewhere, but=9))[1] < 10 * 64
        assert (await ask(archive, [LEVEL], but=9, weight=0.0))[1] < 6 * 12 * 128
        await archive.close()

    play(story())


def test_it_stays_within_its_size_and_keeps_some_of_the_whole_day(tmp_path: Path) -> None:
    most = 1 << 20

    async def story() -> None:
        archive = await archived(tmp_path, most)
        text = "x" * 2000
        hours = [23.9 * (1 - number / 1000) for number in range(1000)]
        for start in range(0, 1000, 100):
            for number in range(start, start + 100):
                await archive.publish(record(1 + number % 20, 1 + number, hours=hours[number], wrong=text))
            await archive.recall([LEVEL], 1, key(99), everybody)
        await archive.publish(record(5, 5000, hours=DAY_MS / HOUR_MS + 0.1, wrong=text))
        kept = [old.arrived_ms for old in await archive.recall([LEVEL], 64, key(99), everybody)]
        assert archive.archived is not None and 200 < archive.archived < 500
        now_ms = time.time() * 1000
        ages = [(now_ms - arrived) / HOUR_MS for arrived in kept]
        assert max(ages) < 24 and sum(age > 8 for age in ages) >= 4
        await archive.close()

    play(story())
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 1.1 * most


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / RELAY_FILE).write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match="move it away"):
        SQLite(tmp_path, SWARM)


async def say(session: Session, message: FromClient) -> Any:
    answer = session.receive(to_frame(message))
    if answer is not None and not isinstance(answer, bytes):
        answer = await answer
    assert answer is not None
    return decode_relay_frame(answer)


async def signed_in(state: RelayState, who: int, *, old: bool = False) -> Session:
    """As a client of today, or as one that knows nothing of an archive."""
    session = Session(state, "127.0.0.1", bytes(32))
    hello = decode_relay_frame(session.hello())
    assert isinstance(hello, Hello)
    auth = sign_in(seed(who), hello, "test/1")
    assert ARCHIVE in auth.caps or state.store.backing.archived is None
    await say(session, msgspec.structs.replace(auth, caps=()) if old else auth)
    return session


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path / "nats", *free_ports(1))
    one.start()
    yield one
    one.kill()


@pytest.fixture(params=["memory", "sqlite", "nats"])
def open_backing(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Backing]:
    def file(n: int) -> SQLite:
        return SQLite(tmp_path / f"state{n}", SWARM, archive=1 << 24)

    if request.param == "nats":
        url = request.getfixturevalue("server").url
        return lambda n: JetStream(servers(url), SWARM, day=file(n))
    return file if request.param == "sqlite" else lambda n: Memory()


def test_a_key_has_its_groups_erased_everywhere(open_backing: Callable[[int], Backing], tmp_path: Path) -> None:
    secret = "the words that shall go"

    async def relay(n: int) -> RelayState:
        state = RelayState(bytes(32), SWARM, "1", backing=open_backing(n))
        await state.open()
        return state

    async def publish(session: Session, who: int, number: int, wrong: str = "#no") -> None:
        ok = await say(session, Pub.of(sealed(who, number, wrong=wrong)))
        assert isinstance(ok, Ok) and ok.code is Code.ACCEPTED, ok

    async def story() -> None:
        state = await relay(1)
        shared = state.store.backing.shared
        second = await relay(2) if shared else None
        ann, bob = await signed_in(state, 1), await signed_in(state, 2)
        for number in range(1, 6):
            await publish(ann, 1, number, secret)
        await publish(bob, 2, 1)
        while second is not None and len(second.window) < 6:
            await asyncio.sleep(0.05)
        erased = await say(ann, Erase())
        assert isinstance(erased, Erased) and erased.groups == 5
        replayed = await say(ann, Pub.of(sealed(1, 3, wrong=secret)))
        assert isinstance(replayed, Ok) and replayed.code is Code.DUPLICATE
        await publish(ann, 1, 6)
        for one in filter(None, (state, second)):
            while len(one.window) != 2:
                await asyncio.sleep(0.05)
            assert Counter(group.key for group in one.window) == {key(1): 1, key(2): 1}
            if one.store.backing.archived is not None:
                left = await one.store.recall([LEVEL], 8, key(9), everybody)
                assert Counter(old.key for old in left) == {key(1): 1, key(2): 1}
        for one in filter(None, (state, second)):
            await one.close()
        again = await relay(1)
        lasts = not isinstance(again.store.backing, Memory)
        assert Counter(group.key for group in again.window) == ({key(1): 1, key(2): 1} if lasts else {})
        await again.close()

    play(story())
    ours = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not [file for file in ours if secret.encode() in file.read_bytes()]


def test_an_erasure_that_a_relay_missed_holds_when_it_comes_back(server: Server, tmp_path: Path) -> None:
    """Its archive has the groups while another one erases them."""

    def backing(n: int) -> JetStream:
        return JetStream(servers(server.url), SWARM, day=SQLite(tmp_path / f"{n}", SWARM, archive=1 << 24))

    async def story() -> None:
        away = await archived(tmp_path / "2")
        await away.publish(record(1, 1, hours=2))
        await away.publish(record(2, 2, hours=2))
        await away.close()
        state = RelayState(bytes(32), SWARM, "1", backing=backing(1))
        await state.open()
        ann = await signed_in(state, 1)
        assert isinstance(await say(ann, Erase()), Erased)
        await state.close()
        back = RelayState(bytes(32), SWARM, "2", backing=backing(2))
        await back.open()
        await asyncio.gather(*back.store._forgetting)
        assert [old.key for old in await back.store.recall([LEVEL], 8, key(9), everybody)] == [key(2)]
        await back.close()

    play(story())


def test_a_client_recalls_what_it_was_not_given(tmp_path: Path) -> None:
    async def story() -> None:
        archive = SQLite(tmp_path, SWARM, archive=1 << 24)
        state = RelayState(bytes(32), SWARM, "1", backing=archive)
        await state.open()
        for who in range(2, 8):
            await archive.publish(record(who, who, hours=5))
        ann = await signed_in(state, 1)
        first = await say(ann, Recall(rid=4, k=4, tasks=(LEVEL,)))
        assert isinstance(first, SampleReply) and first.rid == 4 and len(first.items) == 4
        assert first.age_p50_s is not None and abs(first.age_p50_s - 5 * 3600) < 600
        given = list(first.items)
        for rid in (5, 6, 7):  # its looks are limited, so that one of six may be found only the next time
            given += (await say(ann, Recall(rid=rid, k=4, tasks=(LEVEL,)))).items
        assert len({decode_envelope(raw).id for raw in given}) == 6 == len(given)
        refused = await say(ann, Recall(rid=8, k=4, tasks=(LEVEL,)))
        assert isinstance(refused, Err) and refused.code is Code.RATE_LIMITED and refused.rid == 8
        await state.close()

    play(story())


@pytest.mark.parametrize("checks", [True, False])
def test_a_newcomer_recalls_no_false_claim(tmp_path: Path, sandbox: Sandbox, checks: bool) -> None:
    """Rewards that are swapped, of keys whose groups nobody has scored again; without checks they are given."""

    async def story() -> None:
        archive = SQLite(tmp_path, SWARM, archive=1 << 24)
        state = RelayState(bytes(32), SWARM, "1", backing=archive)
        if checks:
            state.checker = Checker(state, open_sandbox=lambda: sandbox)
        await state.open()
        for who in range(2, 8):
            await archive.publish(record(who, who, hours=5, rewards=(0, 1) if who % 2 else (1, 0)))
        ann = await signed_in(state, 1)
        given = [
            raw for rid in range(4) for raw in (await say(ann, Recall(rid=rid, k=8, tasks=(LEVEL,)))).items
        ]
        authors = {decode_envelope(raw).pk for raw in given}
        assert authors == {key(who).hex() for who in (range(2, 8, 2) if checks else range(2, 8))}
        assert all(bool(state.standings.of(key(who)).false_claims) is checks for who in (3, 5, 7))
        if checks:
            left = await state.store.recall([LEVEL], 8, key(9), everybody)
            assert len(left) == 3, "and they are gone"
        await state.close()

    play(story())


def test_who_knows_nothing_of_an_archive_is_served_as_before(tmp_path: Path) -> None:
    async def story() -> None:
        state = RelayState(bytes(32), SWARM, "1", backing=SQLite(tmp_path, SWARM, archive=1 << 24))
        await state.open()
        old = await signed_in(state, 1, old=True)
        assert isinstance(await say(old, AskStats()), Stats)
        refused = await say(old, Recall(rid=1, k=1, tasks=(LEVEL,)))
        assert isinstance(refused, Err) and refused.code is Code.UNSUPPORTED
        await state.close()
        without = RelayState(bytes(32), SWARM, "1")
        assert ARCHIVE not in without.info().caps

    play(story())
