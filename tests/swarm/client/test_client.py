"""A client against real relay processes: nothing is lost, whatever happens to the way between them."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
import trustme
from aiohttp import ClientConnectionResetError, ClientWebSocketResponse, WSMessage, web

from app.relay.standing import MIN_PROBATION_S, PROBATION_GROUPS, Standing
from app.relay.store.sqlite import SQLite
from app.swarm.client import connection
from app.swarm.client.client import Client
from app.swarm.client.outbox import Outbox
from app.swarm.client.places import KnownRelays
from app.swarm.invite.invite import Invite
from app.swarm.wire.body import unseal
from app.swarm.wire.frames import decode_envelope
from app.swarm.wire.limits import Code, Quotas
from app.swarm.wire.protocol import SOCKET_PATH, Bye, Err, Ok, Pub, Report, WantedQuestions
from tests.swarm.relays import (
    ANN,
    BOB,
    IMPOSTOR,
    PATIENCE_S,
    Relay,
    Tunnels,
    Visitor,
    Wire,
    greeting,
    group,
    lying_relay,
    running,
    until,
)

if sys.platform == "win32":
    pytest.skip("kills processes hard", allow_module_level=True)

FRIEND = greeting().relay
NOBODY = "ws://127.0.0.1:1/v1/ws"


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    one = Relay("--state", str(tmp_path / "relay"))
    one.start()
    try:
        yield one
    finally:
        one.kill()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def trust(state: Path, key: bytes) -> None:
    """Gives a key all the standing there is, in the journal of a relay that doesn't run: of a new one, groups
    are passed over by chance."""
    journal = SQLite(state, "shoal")
    await journal.start(lambda *_: None, lambda *_: None, lambda *_: None)
    now = time.time()
    known = Standing(error=0.0, honest=PROBATION_GROUPS, first=now - 2 * MIN_PROBATION_S, latest=now)
    await journal.kv_put(f"standing.{key.hex()}", msgspec.json.encode(known), known.until)
    await journal.close()


def test_a_node_recalls_a_question_and_its_author_takes_the_answers_back(relay: Relay, tmp_path: Path) -> None:
    relay.kill()
    asyncio.run(trust(tmp_path / "relay", ANN.key))
    relay.start()

    async def story() -> None:
        async with running(tmp_path, [relay.url]) as (ann, _), running(tmp_path, [relay.url], BOB) as (bob, _):
            for n in range(3):
                assert ann.publish(group(n), (1, 0))
            await until(lambda: ann.status.acknowledged == 3 and bob.status.connected)
            where = group(1).coordinates
            question = WantedQuestions(
                family=where.family, level=where.level, seed=where.seed, index=where.index
            )
            found = await bob.recall(8, [question])
            assert found is not None and found.window == 3
            recalled = [unseal(decode_envelope(raw), "shoal").task.coordinates() for raw in found.items]
            assert recalled == [where]
            assert await ann.erase() == 3 and await bob.erase() == 0
            level = WantedQuestions(family=where.family, level=where.level)
            left = await bob.recall(8, [level])
            assert left is not None and not left.items
            sampled = await bob.sample(8)
            assert sampled is not None and not sampled.items and not sampled.eligible

    asyncio.run(story())


def test_two_nodes_find_each_others_groups(relay: Relay, tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            running(tmp_path, [relay.url]) as (ann, links),
            running(tmp_path, [relay.url], BOB) as (bob, _),
        ):
            assert ann.publish(group(), (1, 0)) and ann.status.held == 1 and not ann.status.connected
            await until(lambda: ann.status.acknowledged == 1 and bob.status.connected)
            assert ann.publish(group(1, "x" * 3000), (1, 0))
            assert not ann.publish(group(2), (1, 1)), "rewards that are all equal teach nothing"
            await until(lambda: ann.status.acknowledged == 2)
            batch = await bob.sample(8, ["gcd"], max_age_s=60)
            assert batch is not None and len(batch.items) == 2
            envelopes = [decode_envelope(one) for one in batch.items]
            assert {one.enc for one in envelopes} == {"zlib", "plain"}, "long text travels compressed"
            assert {unseal(one, "shoal").completions[0][:4] for one in envelopes} == {"so i", "xxxx"}
            assert await bob.sample(8, ["lcm"]) is not None
            await until(lambda: bob.status.peers == 2)
            status = ann.status
            assert (status.created, status.waiting, status.swarm, status.relay) == (2, 0, "shoal", relay.relay)
            assert abs(status.clock_offset_ms) < 5000 and status.next_try_s is None
            assert [link.state for link in links] == ["connected"]
        known = KnownRelays(tmp_path / f"{ANN.name}.json")
        assert known.last() is not None and known.get(relay.url) == known.last()[1]

    asyncio.run(story())


def test_both_are_told_of_a_copied_data_folder_and_one_is_asked_to_change(relay: Relay, tmp_path: Path) -> None:
    """Two outboxes with one key and one next number, and other groups in each."""

    async def story() -> None:
        async with running(tmp_path / "here", [relay.url]) as (here, _):
            here.publish(group(), (1, 0))
            await until(lambda: here.status.acknowledged == 1)
        shutil.copytree(tmp_path / "here", tmp_path / "copy")
        async with (
            running(tmp_path / "here", [relay.url]) as (here, _),
            running(tmp_path / "copy", [relay.url]) as (copy, _),
        ):
            await until(lambda: here.status.connected and copy.status.connected)
            assert here.status.twin is copy.status.twin is None
            for n in range(1, 7):
                here.publish(group(n), (1, 0))
                await until(lambda n=n: here.status.acknowledged == 1 + n)
                copy.publish(group(n + 100), (1, 0))
            await until(lambda: copy.status.twin is not None and here.status.twin is not None)
            assert (here.status.twin, copy.status.twin) == (False, True)
            assert "new identity" in here.status.sentence, "what a client of before shows"

    asyncio.run(story())


@pytest.mark.long
def test_a_slow_line_carries_batches_and_is_not_cut(relay: Relay, tmp_path: Path) -> None:
    """At 8 kB/s, where 320 kB take 40 s."""

    async def story() -> None:
        wire = Wire(relay.port)
        wire.bytes_per_s = 8000
        async with wire.open() as slow, running(tmp_path, [relay.url]) as (ann, _):
            long = "".join(map(chr, Random(1).choices(range(0x100, 0x2000), k=4000)))  # hardly compressible
            for n in range(40):
                ann.publish(group(n, long), (1, 0))
            await until(lambda: ann.status.acknowledged == 40)
            async with running(tmp_path, [slow], BOB) as (bob, links):
                await until(lambda: bob.status.connected)
                began, came = time.monotonic(), 0
                while time.monotonic() - began < 50:  # the relay gave the line up after 45 s
                    batch = await bob.sample(64)
                    came += 0 if batch is None else sum(map(len, batch.items))
                    await asyncio.sleep(0.1)
            assert came > 100_000 and [link.state for link in links] == ["connected"]

    asyncio.run(story())


def test_offline_first_then_nothing_is_lost(relay: Relay, tmp_path: Path) -> None:
    relay.kill()

    async def story() -> None:
        # It has been here before, so its groups are sealed at once and would outlive this process.
        KnownRelays(tmp_path / f"{ANN.name}.json").remember(relay.url, relay.relay, "shoal")
        async with running(tmp_path, [relay.url]) as (ann, links):
            for number in range(40):
                assert ann.publish(group(number), (1, 0))
            assert (ann.status.waiting, ann.status.held) == (40, 0)
            assert await ann.sample(8) is None
            await until(lambda: links)
            assert links[0].state == "refused" and "No relay is running at" in links[0].sentence
            assert ann.status.next_try_s is not None
        relay.start()
        async with running(tmp_path, [relay.url]) as (ann, _):
            await until(lambda: ann.status.acknowledged == 40, "all arrive after a restart of the node")
            assert ann.status.created == 40
            await until(lambda: ann.status.stored is not None)

    asyncio.run(story())


def test_a_transport_that_closes_under_a_ping_ends_a_connection_and_nothing_else(
    relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After minutes of sleep aiohttp answers a ping that was waiting, on a transport that is closing."""
    receive, broken = ClientWebSocketResponse.receive, []

    async def breaks_once(socket: ClientWebSocketResponse, *args: float | None) -> WSMessage:
        if not broken and ann_is_in:
            broken.append(socket)
            raise ClientConnectionResetError("Cannot write to closing transport")
        return await receive(socket, *args)

    monkeypatch.setattr(ClientWebSocketResponse, "receive", breaks_once)
    ann_is_in: list[bool] = []

    async def story() -> None:
        async with running(tmp_path, [relay.url]) as (ann, told):
            await until(lambda: ann.status.connected)
            ann_is_in.append(True)
            assert ann.publish(group(0), (1, 0))  # its answer is what is received next
            # Closing the broken connection takes turns of the loop: until then the status is of before.
            await until(lambda: broken and "lost" in [link.state for link in told])
            await until(lambda: ann.status.connected and ann.status.acknowledged == 1)
            assert [link.state for link in told].count("lost") == 1

    asyncio.run(story())


def test_of_two_addresses_the_living_one_is_found(relay: Relay, tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, [NOBODY, relay.url]) as (ann, _):
            await until(lambda: ann.status.connected)
            assert ann.status.url == relay.url

    asyncio.run(story())


@pytest.mark.parametrize("how", ["cut", "hanging"])
def test_a_partition_heals_without_a_restart(
    relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(connection, "HEARTBEAT_S", 1.0)
    monkeypatch.setattr(connection, "OPEN_S", 2.0)

    async def story() -> None:
        wire = Wire(relay.port)
        async with wire.open() as url, running(tmp_path, [url]) as (ann, links):
            ann.publish(group(0), (1, 0))
            await until(lambda: ann.status.acknowledged == 1)
            if how == "cut":
                wire.cut = True
                wire.break_off()
            else:
                wire.through.clear()
            for number in range(1, 25):
                ann.publish(group(number), (1, 0))
            await until(lambda: not ann.status.connected, "a half-open link is noticed")
            assert await ann.sample(4) is None
            met = wire.met
            await until(lambda: wire.met > met, "it tries again")
            wire.cut = False
            wire.through.set()
            await until(lambda: ann.status.acknowledged == 25)
            assert ann.status.created == 25 and links[-1].state == "connected"

    asyncio.run(story())


def test_over_tls_with_the_right_certificate_only(tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def honest(visitor: Visitor) -> None:
        await visitor.welcome()
        await visitor.ws.receive()
        await asyncio.sleep(PATIENCE_S)

    async def story() -> None:
        async with lying_relay(honest, context) as url:
            async with running(tmp_path, [url], tls=trusting) as (ann, _):
                await until(lambda: ann.status.connected)
            async with running(tmp_path, [url]) as (ann, links):
                await until(lambda: links)
                assert "certificate" in links[0].sentence and not ann.status.connected

    asyncio.run(story())


def test_through_the_systems_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def honest(visitor: Visitor) -> None:
        await visitor.welcome()
        await asyncio.sleep(PATIENCE_S)

    async def story() -> None:
        tunnels = Tunnels()
        async with lying_relay(honest, context) as url, tunnels.open() as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy)
            async with running(tmp_path, [url], tls=trusting) as (ann, _):
                await until(lambda: ann.status.connected)
            place = url.removeprefix("wss://").removesuffix(SOCKET_PATH)
            assert tunnels.asked == [f"CONNECT {place} HTTP/1.1"] and tunnels.agents == {"User-Agent: shoal"}
            tunnels.refuse = True
            async with running(tmp_path, [url], tls=trusting) as (ann, links):
                await until(lambda: links)
                assert "proxy doesn't let" in links[0].sentence
            monkeypatch.setenv("NO_PROXY", "localhost")
            async with running(tmp_path, [url], tls=trusting) as (ann, _):
                await until(lambda: ann.status.connected)
            assert connection.proxy_for("ws://relay.example/v1/ws") is None, "plain ws is the local network's"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("proxy", "says"),
    [
        ("socks5://127.0.0.1:9050", "SOCKS proxy (socks5://127.0.0.1:9050)"),
        ("http://me:secret@:3128", "isn't one"),
        ("ftp://proxy", "isn't one"),
        ("proxy:port", "isn't one"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(
    proxy: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(connection.ConnectionEnded) as caught:
        connection.proxy_for("wss://relay.example/v1/ws")
    assert says in str(caught.value) and "secret" not in str(caught.value)
    assert connection.proxy_for("ws://relay.example/v1/ws") is None


def test_a_local_address_does_not_go_through_the_proxy_and_says_so_where_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")

    async def story() -> None:
        with pytest.raises(connection.ConnectionEnded, match="proxy isn't used for ws://"):
            await connection.connect(NOBODY)

    asyncio.run(story())


def test_another_relay_at_a_known_address_gets_no_signature(tmp_path: Path) -> None:
    heard: list[object] = []
    another = greeting(IMPOSTOR).relay

    async def impostor(visitor: Visitor) -> None:
        await visitor.say(greeting(IMPOSTOR))
        heard.append(await visitor.ws.receive())

    async def story() -> None:
        async with lying_relay(impostor) as url:
            KnownRelays(tmp_path / f"{ANN.name}.json").remember(url, FRIEND, "shoal")
            async with running(tmp_path, [url]) as (ann, links):
                await until(lambda: links and heard)
                assert f"now the relay {another}, not {FRIEND}" in links[0].sentence
                assert "relays.json" in links[0].sentence
                assert not ann.status.connected
            invite = Invite(url=url, swarm="shoal", relay=another)
            async with running(tmp_path, [invite]) as (ann, links):
                await until(lambda: len(heard) > 1)
            other = Invite(url=url, swarm="another-swarm", relay=another, token="secret")
            async with running(tmp_path / "other", [other]) as (ann, links):
                await until(lambda: links)
                assert "serves the swarm shoal" in links[0].sentence
        assert "auth" not in str(heard[0]) and "auth" in str(heard[1]) and "auth" not in str(heard[2:])

    asyncio.run(story())


def test_goodbye_and_quotas_are_waited_for_as_long_as_told(tmp_path: Path) -> None:
    visits: list[float] = []
    tries: list[float] = []

    async def strict(visitor: Visitor) -> None:
        visits.append(time.monotonic())
        await visitor.welcome()
        if len(visits) == 1:
            await visitor.say(Bye(reason="Back soon.\x1b[2J", reconnect_after_ms=1500))
            return
        while True:
            message = await visitor.hear()
            if isinstance(message, Pub):
                tries.append(time.monotonic())
                code = Code.RATE_LIMITED if len(tries) == 1 else Code.ACCEPTED
                wait = 1200 if len(tries) == 1 else None
                await visitor.say(Ok(id=message.id, code=code, retry_after_ms=wait, time_ms=1))

    async def story() -> None:
        async with lying_relay(strict) as url, running(tmp_path, [url]) as (ann, links):
            await until(lambda: len(visits) == 2)
            assert visits[1] - visits[0] >= 1.5
            assert links[1].state == "lost" and links[1].sentence == "The relay says goodbye: Back soon.·[2J"
            ann.publish(group(), (1, 0))
            await until(lambda: ann.status.acknowledged == 1)
            assert len(tries) == 2 and tries[1] - tries[0] >= 1.2

    asyncio.run(story())


def test_never_more_is_under_way_than_the_relay_allows(tmp_path: Path) -> None:
    open_: set[str] = set()
    most = 0

    async def slow(visitor: Visitor) -> None:
        nonlocal most
        await visitor.welcome(Quotas(publish_per_min=6000, publish_burst=6000))

        async def answer(pub: Pub) -> None:
            await asyncio.sleep(0.1)
            open_.discard(pub.id)
            await visitor.say(Ok(id=pub.id, code=Code.ACCEPTED, time_ms=1))

        answers: set[asyncio.Task[None]] = set()
        while True:
            message = await visitor.hear()
            if isinstance(message, Pub):
                open_.add(message.id)
                most = max(most, len(open_))
                answers.add(asyncio.create_task(answer(message)))

    async def story() -> None:
        async with lying_relay(slow) as url, running(tmp_path, [url]) as (ann, _):
            for number in range(64):
                ann.publish(group(number), (1, 0))
            await until(lambda: ann.status.acknowledged == 64)
        assert most == 16

    asyncio.run(story())


HOSTILE = {
    "oversize": b'{"t":"notice","msg":"' + b"x" * 540_000 + b'"}',
    "not json": b"{",
    "not utf-8": b'{"t":"notice","msg":"\xff"}',
    "deep": b"[" * 30_000,
    "unknown type": b'{"t":"dance","x":1}',
    "unknown field": b'{"t":"notice","msg":"hello","more":{"a":[1,2,3]}}',
    "a second hello": b'{"t":"hello"}',
    "wrong types": b'{"t":"batch","rid":"1","items":7}',
    "unasked batch": b'{"t":"batch","rid":99,"items":[],"window":0,"eligible":0,"sources":0,"age_p50_s":null}',
    "unasked ok": b'{"t":"ok","id":"' + b"0" * 64 + b'","code":"accepted","time_ms":9007199254740991}',
    "huge clock": b'{"t":"ok","id":"' + b"0" * 64 + b'","code":"accepted","time_ms":99999999999999999999}',
    "other code": b'{"t":"ok","id":"' + b"0" * 64 + b'","code":"own-goal","time_ms":1}',
    "empty": b"",
}

HARMLESS = {"unknown type", "unknown field"}
"""A newer relay may say these."""


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_frames_leave_the_client_standing(tmp_path: Path, what: str) -> None:
    visits = 0

    async def hostile(visitor: Visitor) -> None:
        nonlocal visits
        visits += 1
        if visits == 1:
            await visitor.say(HOSTILE[what])
        await visitor.welcome()
        if visits == 2:
            for _ in range(40):
                await visitor.say(HOSTILE[what])
        while True:
            message = await visitor.hear()
            if isinstance(message, Pub):
                await visitor.say(Ok(id=message.id, code=Code.ACCEPTED, time_ms=1))

    async def story() -> None:
        async with (  # one meets it before its sign-in, the other behind it
            lying_relay(hostile) as url,
            running(tmp_path, [url]) as (ann, _),
            running(tmp_path, [url], BOB) as (bob, _),
        ):
            assert ann.publish(group(), (1, 0)) and bob.publish(group(1), (1, 0))
            await until(lambda: ann.status.acknowledged == bob.status.acknowledged == 1)
        assert (visits == 2) == (what in HARMLESS), "what is no relay's is left and tried again"

    asyncio.run(story())


def test_a_batch_with_bad_items_and_refused_samples(tmp_path: Path) -> None:
    samples = 0

    async def careless(visitor: Visitor) -> None:
        nonlocal samples
        await visitor.welcome()
        while True:
            message = await visitor.hear()
            rid = getattr(message, "rid", None)
            if rid is None:
                continue
            samples += 1
            if samples == 1:
                figures = f'"rid":{rid},"window":3,"eligible":3,"sources":1,"age_p50_s":1.5'
                await visitor.say(f'{{"t":"batch",{figures},"items":[7,{{"id":1}},null,"x"]}}'.encode())
            elif samples == 2:
                await visitor.say(Err(code=Code.RATE_LIMITED, msg="Later.", rid=rid, retry_after_ms=800))
            elif samples == 3:
                return

    async def story() -> None:
        async with lying_relay(careless) as url, running(tmp_path, [url]) as (ann, _):
            await until(lambda: ann.status.connected)
            batch = await ann.sample(4)
            assert batch is not None and len(batch.items) == 4
            assert await ann.sample(4) is None and "Later." in ann.status.sentence
            assert await ann.sample(4) is None and samples == 2, "not asked for again before it is time"
            ann._samples._allowance._tokens = 5.0
            await asyncio.sleep(0.9)
            assert await ann.sample(4) is None and samples == 3, "a connection that ends ends the waiting"

    asyncio.run(story())


def test_a_relay_that_floods_is_left(tmp_path: Path) -> None:
    sent = 0

    async def flooding(visitor: Visitor) -> None:
        nonlocal sent
        await visitor.welcome()
        while True:
            await visitor.say(b'{"t":"dance","x":"' + b"x" * 60_000 + b'"}')
            sent += 1

    async def story() -> None:
        async with lying_relay(flooding) as url, running(tmp_path, [url]) as (_, links):
            await until(lambda: len(links) > 1)
            assert "far more than anybody asked for" in links[1].sentence and links[1].retry_s >= 60
            assert sent < 3000

    asyncio.run(story())


def test_reports_are_sent_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Report] = []

    async def listening(visitor: Visitor) -> None:
        await visitor.welcome()
        while True:
            message = await visitor.hear()
            if isinstance(message, Report):
                reports.append(message)

    monkeypatch.setattr("app.swarm.client.receipts.REPORT_EVERY_S", 0.1)

    async def story() -> None:
        async with lying_relay(listening) as url, running(tmp_path, [url]) as (ann, _):
            ann.report(["0" * 64, "1" * 64, "0" * 64], "bad_reward")
            ann.report([f"{n:064x}" for n in range(400)], "unsafe")
            await until(lambda: sum(len(one.ids) for one in reports) >= 256)
            assert all(len(one.ids) <= 64 for one in reports), "no more than a message holds, and no more kept"

    asyncio.run(story())


def test_work_is_done_beside_the_loop_and_once_a_day(tmp_path: Path) -> None:
    nonces: list[str | None] = []

    async def busy(visitor: Visitor) -> None:
        await visitor.say(greeting(pow_bits=18))
        nonces.append((await visitor.hear()).pow)
        await visitor.say(Bye(reason="again", reconnect_after_ms=0))

    async def story() -> None:
        async with lying_relay(busy) as url, running(tmp_path, [url]):
            longest = 0.0
            while len(nonces) < 2:
                before = time.monotonic()
                await asyncio.sleep(0.01)
                longest = max(longest, time.monotonic() - before)
        assert nonces[0] and nonces[0] == nonces[1]

    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))

    async def greedy(visitor: Visitor) -> None:
        await visitor.say(greeting(pow_bits=60))
        await visitor.ws.receive()

    async def refusing() -> None:
        async with lying_relay(greedy) as url, running(tmp_path, [url]) as (_, links):
            await until(lambda: links)
            assert "more work (60 bits)" in links[0].sentence

    asyncio.run(refusing())


def test_stopping_never_waits_for_work(tmp_path: Path) -> None:
    async def busy(visitor: Visitor) -> None:
        await visitor.say(greeting(pow_bits=28))
        await visitor.ws.receive()

    async def story() -> None:
        async with lying_relay(busy) as url, running(tmp_path, [url]):
            await until(working)
        await until(lambda: not working(), "the search is given up")

    def working() -> bool:
        return any(thread.name == "proof of work" for thread in threading.enumerate())

    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


def accepting(heard: list[str]) -> Callable[[Visitor], Awaitable[None]]:
    async def honest(visitor: Visitor) -> None:
        await visitor.welcome()
        while True:
            message = await visitor.hear()
            if isinstance(message, Pub):
                heard.append(message.id)
                await visitor.say(Ok(id=message.id, code=Code.ACCEPTED, time_ms=1))

    return honest


def test_groups_of_a_swarm_that_was_left_trouble_no_relay(tmp_path: Path) -> None:
    heard: list[str] = []

    async def story() -> None:
        async with running(tmp_path, [Invite(url=NOBODY, swarm="old-swarm")]) as (ann, _):
            ann.publish(group(), (1, 0))
            assert ann.status.waiting == 1
        async with lying_relay(accepting(heard)) as url, running(tmp_path, [url]) as (ann, _):
            ann.publish(group(1), (1, 0))
            await until(lambda: ann.status.waiting == 0 and ann.status.acknowledged == 1)
            assert ann.status.refused == 1 and len(heard) == 1

    asyncio.run(story())


def test_a_relay_of_another_version_is_told_in_a_sentence_and_the_groups_wait(tmp_path: Path) -> None:
    async def other(visitor: Visitor) -> None:
        await visitor.welcome()
        while True:
            message = await visitor.hear()
            if isinstance(message, Pub):
                said = "This relay speaks questions of version 0.1.25/1."
                await visitor.say(Ok(id=message.id, code=Code.UNSUPPORTED, msg=said, time_ms=1))

    async def story() -> None:
        async with lying_relay(other) as url, running(tmp_path, [url]) as (ann, links):
            ann.publish(group(1), (1, 0))
            await until(lambda: len(links) == 2)
            assert [link.state for link in links] == ["connected", "connected"]
            assert "is of another version of Shoal" in ann.status.sentence
            assert "update the older of the two" in ann.status.sentence
            assert ann.status.sentence.endswith("This relay speaks questions of version 0.1.25/1.")
            assert ann.status.waiting == 1 and ann.status.connected

    asyncio.run(story())


@pytest.mark.parametrize("status", [301, 307])
def test_a_relay_that_sends_elsewhere_is_not_followed(tmp_path: Path, status: int) -> None:
    heads: list[str] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    async def story() -> None:
        private = await asyncio.start_server(elsewhere, "127.0.0.1", 0)
        target = f"http://127.0.0.1:{private.sockets[0].getsockname()[1]}/api/delete?all=1"
        asked: list[str] = []

        async def send_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(f"HTTP/1.1 {status} Go\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode())
            writer.close()

        relay = await asyncio.start_server(send_on, "127.0.0.1", 0)
        url = f"ws://127.0.0.1:{relay.sockets[0].getsockname()[1]}/v1/ws"
        async with private, relay, running(tmp_path, [url]) as (_, links):
            await until(lambda: links)
            assert links[0].state == "refused" and "isn't followed" in links[0].sentence
            await until(lambda: len(asked) > 1, "it is asked again")
        assert not heads, "nobody else was asked"
        agents = [line for line in asked[0].splitlines() if line.lower().startswith("user-agent:")]
        assert agents == ["User-Agent: shoal"], "nothing about this computer's software"

    asyncio.run(story())


def test_an_address_that_is_none_is_said_at_once(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox.db")
    for url, words in (
        ("http://relay.example", "begins with ws://"),
        ("ws://", "no host"),
        ("nonsense", "port"),
    ):
        with pytest.raises(ValueError, match=words):
            Client([url], ANN, outbox, memory=tmp_path / "relays.json")
    with pytest.raises(ValueError, match="address of a relay"):
        Client([], ANN, outbox, memory=tmp_path / "relays.json")


def test_what_is_no_relay_is_told_in_a_sentence(tmp_path: Path) -> None:
    async def story() -> None:
        answers = {
            "/busy/v1/ws": web.Response(status=503, headers={"Retry-After": "40"}),
            "/page/v1/ws": web.Response(text="hi"),
        }

        async def serve(request: web.Request) -> web.Response:
            return answers[request.path]

        runner = web.AppRunner(application := web.Application(), shutdown_timeout=1.0)
        application.add_routes([web.get(path, serve) for path in answers])
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        base = f"ws://127.0.0.1:{runner.addresses[0][1]}"
        for url, words, least in (
            (f"{base}/busy/v1/ws", "lets no one in", 40),
            (f"{base}/page/v1/ws", "There is no relay", 0),
            ("ws://nobody.invalid/v1/ws", "no computer called nobody.invalid", 0),
        ):
            async with running(tmp_path, [url]) as (ann, links):
                await until(lambda links=links: links)
                assert words in links[0].sentence and links[0].retry_s >= least
                ann._again.set()  # without waiting
        await runner.cleanup()

    asyncio.run(story())
