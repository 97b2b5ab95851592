"""What every backing of the store promises, tried on each: memory, a file of SQLite, a real NATS server."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from app.relay.session.shared import RelayState
from app.relay.standing import MIN_PROBATION_S, PROBATION_GROUPS, Ban, Standing
from app.relay.store.backing import Backing, CheckedGroup, Memory, StoreError, Unavailable
from app.relay.store.jetstream import JetStream, servers
from app.relay.store.queues import Bounds
from app.relay.store.sqlite import SQLite
from app.relay.store.window import Added, WindowLimits
from app.swarm.wire.limits import RELAY_FILE
from tests.relay.natsserver import Server, free_ports

SWARM = "example-swarm"
ANN, BOB = b"a" * 32, b"b" * 32
PATIENCE = 240.0


class World:
    """Where relays of one swarm run; what their backings can do differs."""

    lasts = False
    """Whether a relay that comes back has what it had."""
    shared = False
    """Whether several relays have the same."""

    def __init__(self) -> None:
        self._open: list[RelayState] = []

    def backing(self) -> Backing:
        return Memory()

    async def relay(self) -> RelayState:
        state = RelayState(bytes(32), SWARM, "1", backing=self.backing(), rng=Random(1))
        await state.open()
        self._open.append(state)
        return state

    async def restarted(self, state: RelayState) -> RelayState:
        self._open.remove(state)
        await state.close()
        return await self.relay()

    async def ended(self) -> None:
        while self._open:
            await self._open.pop().close()


class OnDisk(World):
    lasts = True

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def backing(self) -> Backing:
        return SQLite(self.folder, SWARM)


class OnNats(World):
    lasts = shared = True

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def backing(self) -> Backing:
        return JetStream(servers(self.url), SWARM)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path / "nats", *free_ports(1))
    one.start()
    yield one
    one.kill()


@pytest.fixture(params=["memory", "sqlite", "nats"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    if request.param == "nats":
        return OnNats(request.getfixturevalue("server").url)
    return OnDisk(tmp_path / "state") if request.param == "sqlite" else World()


def play(world: World, story: Callable[[World], Awaitable[None]]) -> None:
    async def whole() -> None:
        try:
            async with asyncio.timeout(2 * PATIENCE):
                await story(world)
        finally:
            await world.ended()

    asyncio.run(whole())


def group(
    n: int,
    key: bytes = ANN,
    *,
    key_seq: int | None = None,
    age_s: float = 0.0,
    size: int = 50,
    address: str = "somewhere",
) -> CheckedGroup:
    return CheckedGroup(
        id=n.to_bytes(32, "big"),
        key=key,
        key_seq=n if key_seq is None else key_seq,
        address=address,
        family="gcd",
        level=n % 3,
        arrived_ms=int((time.time() - age_s) * 1000),
        raw=b"%d" % n + b"x" * size,
    )


async def publish(state: RelayState, record: CheckedGroup) -> Added:
    added = state.store.publish(record)
    return added if isinstance(added, str) else await added


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.02)


def ids(state: RelayState) -> list[int]:
    """The window's groups, oldest first."""
    return [int.from_bytes(kept.id, "big") for kept in state.window]


def test_a_group_is_in_the_window_as_it_came_when_it_is_acknowledged(world: World) -> None:
    async def story(world: World) -> None:
        state = await world.relay()
        assert state.store.backing.ready
        record = group(1)
        assert await publish(state, record) == "accepted"
        kept = state.window.find(record.id)
        assert kept is not None
        assert (kept.raw, kept.key, kept.address, kept.family, kept.level) == (
            record.raw,
            ANN,
            "somewhere",
            "gcd",
            1,
        )
        assert state.store.sequences.check(ANN, 1) == "used"
        assert state.store.backing.stored == 1 and state.stats().stored == 1

    play(world, story)


def test_an_id_and_a_number_count_once_also_while_they_are_under_way(world: World) -> None:
    async def story(world: World) -> None:
        state = await world.relay()
        same_id = [publish(state, group(1)) for _ in range(5)]
        same_number = [publish(state, group(n, key_seq=77)) for n in (2, 3, 4)]
        copied = publish(state, group(1, BOB, key_seq=9))  # the same body, signed by another
        answers = await asyncio.gather(*same_id, *same_number, copied)
        assert answers[:5] == ["accepted"] + ["duplicate"] * 4
        assert len(ids(state)) == len(set(ids(state))) == answers.count("accepted")
        assert ids(state).count(1) == 1 and answers[-1] == "duplicate"
        assert answers[5:8] == ["accepted", "duplicate", "duplicate"]
        assert await publish(state, group(1)) == "duplicate"
        assert state.store.backing.stored == 2

    play(world, story)


def test_many_at_once_are_all_there_once(world: World) -> None:
    async def story(world: World) -> None:
        state = await world.relay()
        answers = await asyncio.gather(*(publish(state, group(n, bytes([n % 20]) * 32)) for n in range(1, 501)))
        assert set(answers) == {"accepted"}
        assert sorted(ids(state)) == list(range(1, 501))
        assert state.store.backing.stored == 500

    play(world, story)


def test_too_large_is_refused_and_stored_nowhere(world: World) -> None:
    async def story(world: World) -> None:
        state = await world.relay()
        assert await publish(state, group(1, size=state.window.largest)) == "too-large"
        assert state.store.sequences.check(ANN, 1) == "new"
        again = await world.restarted(state)
        assert ids(again) == [] and again.store.backing.stored == 0

    play(world, story)


def test_a_value_is_heard_of_and_taken_away(world: World) -> None:
    async def story(world: World) -> None:
        state = await world.relay()
        await publish(state, group(1))
        await publish(state, group(2, BOB))
        ban = Ban(until=time.time() + 60, reason="a test", by="me")
        await state.ban(ANN, ban)
        await state.ban("192.0.2.0/24", ban)
        assert state.standings.verdict(ANN, "") == "blocked" and ids(state) == [2]
        await state.store.drop((2).to_bytes(32, "big"))
        assert ids(state) == []
        await state.lift(ANN)
        assert state.standings.verdict(ANN, "") == "welcome"
        again = await world.restarted(state)
        if world.lasts:
            assert again.standings.verdict(ANN, "192.0.2.0/24") == "blocked"
            assert again.standings.verdict(ANN, "") == "welcome"
            assert 2 not in ids(again)

    play(world, story)


def test_what_comes_back_after_a_restart(world: World) -> None:
    if not world.lasts:
        pytest.skip("memory forgets, as it says")

    async def story(world: World) -> None:
        state = await world.relay()
        for n in range(1, 31):
            assert await publish(state, group(n, age_s=100 - n)) == "accepted"
        before, salt = ids(state), state.store.backing.salt
        again = await world.restarted(state)
        assert ids(again) == before == list(range(1, 31))
        assert again.store.backing.salt == salt and again.blind("net") == state.blind("net")
        assert again.store.backing.stored == again.stats().stored == 30
        assert again.store.sequences.check(ANN, 30) == "used"
        kept = again.window.find((1).to_bytes(32, "big"))
        assert kept is not None and 90 < again.clock() - kept.arrived < 90 + PATIENCE
        assert await publish(again, group(7)) == "duplicate"
        assert await publish(again, group(31)) == "accepted"
        assert again.store.backing.stored == 31

    play(world, story)


def test_standing_is_kept_over_a_restart(world: World) -> None:
    async def story(world: World) -> None:
        state = await world.relay()
        known = Standing(
            error=0.01, honest=PROBATION_GROUPS, first=time.time() - MIN_PROBATION_S, latest=time.time()
        )
        state.standings.put(ANN, known)
        state.standings.record_honest(ANN)
        state.standings.false_claim(BOB)
        before = [state.standings.of(key) for key in (ANN, BOB)]
        assert before[0].known
        state = await world.restarted(state)
        after = [state.standings.of(key) for key in (ANN, BOB)]
        assert after == (before if world.lasts else [Standing(), Standing()])
        assert state.standings.known == ({ANN} if world.lasts else set())

    play(world, story)


def test_what_is_left_out_after_a_restart(world: World) -> None:
    if not world.lasts:
        pytest.skip("memory forgets, as it says")

    async def story(world: World) -> None:
        state = await world.relay()
        await publish(state, group(1, age_s=3601))
        await state.ban(BOB, Ban(until=time.time() + 0.2, reason="short", by="me"))
        await publish(state, group(2))
        await asyncio.sleep(0.3)
        again = await world.restarted(state)
        assert ids(again) == [2]
        assert not again.standings.bans.all(time.time())
        assert again.store.backing.stored == 2

    play(world, story)


def test_a_file_is_one_process_s_and_one_swarm_s(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        file = SQLite(tmp_path, SWARM)
        with pytest.raises(StoreError, match="in use"):
            SQLite(tmp_path, SWARM)
        await file.close()
        with pytest.raises(StoreError, match="belongs to the swarm example-swarm"):
            SQLite(tmp_path, "other-swarm")
        again = SQLite(tmp_path, SWARM)
        await again.close()
        (tmp_path / RELAY_FILE).write_bytes(b"not a database at all" * 100)
        with pytest.raises(StoreError, match="damaged"):
            SQLite(tmp_path, SWARM)
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="cannot be made"):
            SQLite(tmp_path / "file" / "folder", SWARM)

    play(World(), story)


def test_an_author_is_erased_without_going_through_the_file(tmp_path: Path) -> None:
    """Also from a file of before, which has no index of keys."""

    async def story() -> None:
        for _ in range(2):
            file = SQLite(tmp_path, SWARM)
            plan = file._db.execute("EXPLAIN QUERY PLAN DELETE FROM groups WHERE key = ?", (b"",)).fetchall()
            assert [row[-1] for row in plan] == ["SEARCH groups USING INDEX by_key (key=?)"]
            file._db.execute("DROP INDEX by_key")
            await file.close()

    asyncio.run(story())


def test_a_file_keeps_to_its_bounds(tmp_path: Path) -> None:

    few = WindowLimits(whole=Bounds(10, 5_000), shelf=Bounds(10, 5_000), remembered=20)

    async def story(world: World) -> None:
        file = SQLite(tmp_path, SWARM, limits=few)
        await file.start(lambda record: "accepted", lambda key, value: None, lambda relay, summary: None)
        await asyncio.gather(*(file.publish(group(n, bytes([n]) * 32)) for n in range(30)))
        await asyncio.gather(*(file.publish(group(n, size=990)) for n in range(100, 108)))
        await file.close()
        again, came = SQLite(tmp_path, SWARM, limits=few), []
        await again.start(
            lambda record: came.append(record) or "accepted",  # type: ignore[func-returns-value]
            lambda key, value: None,
            lambda relay, summary: None,
        )
        await again.close()
        assert [record.id[-1] for record in came] == [103, 104, 105, 106, 107] and again.stored == 38

    play(World(), story)


def test_a_disk_that_takes_nothing_is_said_and_tried_again(tmp_path: Path) -> None:

    async def story(world: World) -> None:
        state = await world.relay()
        file = state.store.backing
        assert isinstance(file, SQLite)
        await publish(state, group(1))
        file._db.execute("PRAGMA query_only=1")  # SQLite refuses every write from now on
        with pytest.raises(Unavailable):
            await publish(state, group(2))
        assert not file.ready and state.store.sequences.check(ANN, 2) == "new"
        file._db.execute("PRAGMA query_only=0")
        await until(lambda: file.ready)
        assert await publish(state, group(2)) == "accepted"
        assert ids(state) == [1, 2]

    play(OnDisk(tmp_path), story)


def test_relays_on_one_nats_have_the_same(server: Server) -> None:
    async def story(world: World) -> None:
        one, two = await world.relay(), await world.relay()
        assert one.store.backing.salt == two.store.backing.salt
        answers = await asyncio.gather(*(publish((one, two)[n % 2], group(n)) for n in range(1, 101)))
        assert set(answers) == {"accepted"}
        await until(lambda: len(one.window) == len(two.window) == 100)
        assert sorted(ids(one)) == sorted(ids(two)) == list(range(1, 101))
        assert one.store.backing.stored == two.store.backing.stored == 100
        assert two.store.sequences.check(ANN, 1) == one.store.sequences.check(ANN, 2) == "used"
        # the same group by both relays at once, and two groups with one number
        both = await asyncio.gather(publish(one, group(200)), publish(two, group(200)))
        assert sorted(both) == ["accepted", "duplicate"]
        assert isinstance(one.store.backing, JetStream)
        assert (await one.store.backing._js.stream_info(one.store.backing._stream)).state.messages == 101
        await asyncio.gather(publish(one, group(300, key_seq=300)), publish(two, group(301, key_seq=300)))
        await publish(one, group(400))
        await until(lambda: 400 in ids(two))
        assert len({300, 301} & set(ids(one))) == len({300, 301} & set(ids(two))) == 1

    play(OnNats(server.url), story)


def test_standing_holds_on_every_relay(server: Server) -> None:
    async def story(world: World) -> None:
        here, there = await world.relay(), await world.relay()
        known = Standing(
            error=0.01, honest=PROBATION_GROUPS - 1, first=time.time() - MIN_PROBATION_S, latest=time.time()
        )
        here.standings.put(ANN, known)
        here.standings.record_honest(ANN)
        there.standings.record_honest(ANN)
        await here.write_standings()
        await until(lambda: ANN in there.standings.known)
        there.standings.false_claim(ANN)
        await there.write_standings()
        await until(lambda: len(here.standings.of(ANN).false_claims) == 1)
        assert here.standings.of(ANN).error > 0.1

    play(OnNats(server.url), story)


def test_a_ban_holds_on_every_relay(server: Server) -> None:
    async def story(world: World) -> None:
        one, two = await world.relay(), await world.relay()
        await publish(one, group(1))
        await until(lambda: ids(two) == [1])
        await one.ban(ANN, Ban(until=time.time() + 60, reason="a test", by="me"))
        await until(lambda: two.standings.verdict(ANN, "") == "blocked" and ids(two) == [])
        await two.lift(ANN)
        await until(lambda: one.standings.verdict(ANN, "") == "welcome")

    play(OnNats(server.url), story)


def test_every_relay_knows_how_many_are_here(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.relay.presence.SUMMARY_EVERY_S", 0.1)
    monkeypatch.setattr("app.relay.presence.RELAY_GONE_S", 1.0)

    async def story(world: World) -> None:
        one, two = await world.relay(), await world.relay()
        for n, state in enumerate((one, one, two, two)):
            state.presence.arrive(n, (ANN, BOB, b"c" * 32, b"d" * 32)[n])
        await until(lambda: all((state.stats().peers, state.stats().relays) == (4, 2) for state in (one, two)))
        await world.restarted(two)
        await until(lambda: (one.stats().peers, one.stats().relays) == (2, 2))

    play(OnNats(server.url), story)


def test_a_relay_waits_for_nats_and_is_not_ready_before_everything_is_there(server: Server) -> None:
    async def story(world: World) -> None:
        first = await world.relay()
        for n in range(1, 201):
            await publish(first, group(n, bytes([n]) * 32))
        await world.ended()
        server.kill()
        state = RelayState(bytes(32), SWARM, "2", backing=world.backing())
        opening = asyncio.create_task(state.open())
        await asyncio.sleep(1.0)
        assert not opening.done() and not state.store.backing.ready
        await asyncio.to_thread(server.start)
        await opening
        assert state.store.backing.ready and len(state.window) == 200
        await state.close()

    play(OnNats(server.url), story)


def test_a_nats_that_is_killed_is_said_and_found_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.relay.store.jetstream.TRYING_S", 1.0)

    async def story(world: World) -> None:
        one, two = await world.relay(), await world.relay()
        assert await publish(one, group(1)) == "accepted"
        server.kill()
        with pytest.raises(Unavailable) as error:
            await publish(one, group(2))
        assert error.value.retry_after_s > 0 and one.store.sequences.check(ANN, 2) == "new"
        await until(lambda: not one.store.backing.ready)
        assert ids(one) == [1]  # it still gives out what it has
        await asyncio.to_thread(server.start)
        await until(lambda: one.store.backing.ready and two.store.backing.ready)
        assert await publish(one, group(2)) == "accepted"
        await until(lambda: sorted(ids(two)) == [1, 2])

    play(OnNats(server.url), story)


def test_a_short_restart_of_nats_is_bridged(server: Server) -> None:
    async def story(world: World) -> None:
        state = await world.relay()
        server.kill()
        publishing = [asyncio.create_task(publish(state, group(n))) for n in range(1, 6)]
        await asyncio.sleep(0.5)
        await asyncio.to_thread(server.start)
        assert await asyncio.gather(*publishing) == ["accepted"] * 5
        await until(lambda: state.store.backing.ready)
        assert sorted(ids(state)) == [1, 2, 3, 4, 5] and state.store.backing.stored == 5

    play(OnNats(server.url), story)


def test_a_mirror_whose_consumer_has_disappeared_begins_anew(server: Server) -> None:
    async def story(world: World) -> None:
        one, two = await world.relay(), await world.relay()
        backing = two.store.backing
        assert isinstance(backing, JetStream)
        await publish(one, group(1))
        await until(lambda: ids(two) == [1])
        js = backing._js
        for consumer in await js.consumers_info(backing._stream):
            await js.delete_consumer(backing._stream, consumer.name)
        for n in range(2, 30):
            await publish(one, group(n))
        await until(lambda: backing.mirror_lag_messages > 0)
        await until(lambda: len(two.window) == 29 and backing.mirror_lag_messages == 0)
        assert backing.mirror_resets > 0
        assert sorted(ids(two)) == list(range(1, 30))

    play(OnNats(server.url), story)


def test_a_busy_mirror_is_left_alone_and_a_stream_that_was_removed_is_made_again(server: Server) -> None:
    async def story(world: World) -> None:
        one, two = await world.relay(), await world.relay()
        backing = one.store.backing
        assert isinstance(backing, JetStream) and isinstance(two.store.backing, JetStream)
        done = 0
        ending = time.monotonic() + 2.2  # the watchdog asks every second
        while time.monotonic() < ending:
            burst = (group(done + n, bytes([n]) * 32, address=f"{n}") for n in range(1, 33))
            await asyncio.gather(*(publish(one, each) for each in burst))
            done += 32
        await until(lambda: len(two.window) == len(one.window) == done)
        assert backing.mirror_resets == two.store.backing.mirror_resets == 0
        await until(lambda: two.store.backing.mirror_lag_messages == backing.mirror_lag_messages == 0)
        assert one.store.waited == done and 0 < one.store.waited_s < done * PATIENCE
        await backing._js.delete_stream(backing._stream)
        new, added = group(100_000), None
        async with asyncio.timeout(PATIENCE):
            while added != "accepted":
                try:
                    added = await publish(one, new)
                except Unavailable:
                    await asyncio.sleep(0.2)
        await until(lambda: two.window.knows(new.id))

    play(OnNats(server.url), story)


def test_values_whose_time_is_over_leave_nats(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.relay.store.jetstream.PRUNE_EVERY_S", 0.1)

    async def story(world: World) -> None:
        state = await world.relay()
        backing = state.store.backing
        assert isinstance(backing, JetStream)
        for n in range(5):
            await backing.kv_put(f"drop.{n:064x}", b"", time.time() + 0.1)
        stream = f"KV_{backing._bucket}"
        async with asyncio.timeout(PATIENCE):
            while (await backing._js.stream_info(stream)).state.messages > 1:  # the salt stays
                await asyncio.sleep(0.05)
        again = await world.relay()  # what was removed is not waited for
        assert again.store.backing.ready

    play(OnNats(server.url), story)


@pytest.mark.parametrize(
    "where", ["nats://", "http://a", "nats://a:", "nats://a:x", "nats://a,,b", "nats:a", "x"]
)
def test_an_address_of_nats_that_is_none(where: str) -> None:
    with pytest.raises(ValueError):
        servers(where)
    assert servers("tls://u:p@a,[::1]:9") == ("tls://u:p@a:4222", "tls://[::1]:9")


@pytest.mark.long
def test_a_nats_that_hangs_is_noticed(server: Server) -> None:
    """It neither answers nor closes the connection, as when its machine has lost the network."""

    async def story(world: World) -> None:
        state = await world.relay()
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable):
                await publish(state, group(1))
            await until(lambda: not state.store.backing.ready)
        finally:
            server.process.send_signal(signal.SIGCONT)
        await until(lambda: state.store.backing.ready)
        assert await publish(state, group(1)) in ("accepted", "duplicate")
        await until(lambda: ids(state) == [1])

    play(OnNats(server.url), story)
