"""Receipts, over a real relay: who learned from a group says so to its author. Only keys with standing count,
each once a group; whatever else is said counts nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path

import msgspec

from app.relay.session.shared import RelayState
from app.relay.standing import MIN_PROBATION_S, PROBATION_GROUPS, Standing
from app.relay.store.sqlite import SQLite
from app.swarm.client.receipts import MAX_PUPILS, ReceiptCounter, lesson_receipt, receipt
from app.swarm.identity.identity import Identity
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import (
    RECEIPTS,
    Err,
    LessonReceipt,
    Receipt,
    Receipts,
    Sample,
    SampleReply,
    Stats,
    Taught,
    Thanks,
)
from app.swarm.wire.signin import sign_in
from tests.relay.talking import Peer, Relay, Town, group, key, running, seed, town
from tests.swarm import relays

AUTHOR, KNOWN, OTHER = 1, 2, 3
FORGERS = range(100, 110)


def with_standing(folder: Path, *who: int) -> None:
    """As a relay writes down keys of which it found groups honest for days."""

    async def write() -> None:
        state = RelayState(seed(99), "shoal", "epoch", backing=SQLite(folder, "shoal"))
        await state.open()
        now = time.time()
        for one in who:
            state.standings.put(
                key(one),
                Standing(error=0.01, honest=PROBATION_GROUPS, first=now - 2 * MIN_PROBATION_S, latest=now),
            )
            state.standings.record_honest(key(one))
        await state.close()

    asyncio.run(write())


def play(relay: Relay, story: Callable[[Town, str], Awaitable[None]]) -> None:
    async def run() -> None:
        async with town(relay) as place:
            await story(place, relay.url)

    asyncio.run(run())


async def first_of(learner: Peer) -> str:
    """The id of the only group that there is."""
    answer = await learner.say(Sample(rid=1, k=8))
    assert isinstance(answer, SampleReply)
    (item,) = answer.items
    return str(msgspec.json.decode(item)["id"])


async def say(one: Peer, *receipts: Receipt, lessons: tuple[LessonReceipt, ...] = ()) -> None:
    """Sends them, and waits until the relay has read them."""
    await one.ws.send_str(msgspec.json.encode(Receipts(items=receipts, lessons=lessons)).decode())
    answer = await one.stats()
    assert isinstance(answer, Stats)


def test_ten_forging_keys_move_the_count_by_nothing(tmp_path: Path) -> None:
    with_standing(tmp_path / "state", KNOWN)
    author, thanked = Identity(seed(AUTHOR)), ReceiptCounter(tmp_path)

    async def story(place: Town, url: str) -> None:
        async with relays.running(tmp_path / "author", [url], author, thanked=thanked) as (client, _):
            await relays.until(lambda: client.status.connected)
            client.publish(group(1), (1, 0))
            await relays.until(lambda: client.status.acknowledged == 1)
            learner = await place.peer(KNOWN)
            id = await first_of(learner)
            for who in FORGERS:
                forger = await place.peer(who)
                assert await forger.publish() is Code.ACCEPTED
                true, wrong = receipt(seed(who), "shoal", id), receipt(seed(KNOWN), "other", id)
                await say(forger, true, true, wrong, receipt(seed(KNOWN), "shoal", id))
                await say(forger, true)
            await say(learner, Receipt(id=id, sig="00" * 64), receipt(seed(KNOWN), "other", id))
            assert not thanked.today.keys
            true = receipt(seed(KNOWN), "shoal", id)
            unknown = receipt(seed(KNOWN), "shoal", "77" * 32)
            await say(learner, true, true, unknown)
            await relays.until(lambda: thanked.today.keys)
            await say(learner, true)
            await asyncio.sleep(0.2)
            assert thanked.today.keys == (key(KNOWN).hex(),)

    with running("--state", str(tmp_path / "state")) as relay:
        play(relay, story)


def test_who_does_not_speak_of_receipts_gets_none(tmp_path: Path) -> None:
    """Clients of before: neither are they told, nor may they say."""
    with_standing(tmp_path / "state", KNOWN)

    async def story(place: Town, url: str) -> None:
        old = await place.connect()
        old.who = AUTHOR
        auth = sign_in(seed(AUTHOR), old.hello, "test/1")
        await old.say(msgspec.structs.replace(auth, caps=tuple(cap for cap in auth.caps if cap != RECEIPTS)))
        await old.publish()
        learner = await place.peer(KNOWN)
        id = await first_of(learner)
        await say(learner, receipt(seed(KNOWN), "shoal", id))
        assert isinstance(await old.stats(), Stats)  # and nothing before it
        answer = await old.say(Receipts(items=(receipt(seed(AUTHOR), "shoal", id),)))
        assert isinstance(answer, Err) and answer.code is Code.UNSUPPORTED

    with running("--state", str(tmp_path / "state")) as relay:
        play(relay, story)


def learned(who: int, family: str, by: int | None = None, swarm: str = "shoal") -> LessonReceipt:
    """That the author's answers taught it, as `who` says, or `by` in its name."""
    return lesson_receipt(seed(who if by is None else by), swarm, key(AUTHOR).hex(), family)


def test_a_newcomer_tells_an_author_who_was_away_what_it_learned(tmp_path: Path) -> None:
    author, thanked = Identity(seed(AUTHOR)), ReceiptCounter(tmp_path)
    thanked.record_published("chain_sum")

    async def story(place: Town, url: str) -> None:
        newcomer, forger = await place.peer(OTHER), await place.peer(FORGERS[0])
        await say(newcomer, lessons=(learned(OTHER, "chain_sum"), learned(OTHER, "gcd"), learned(OTHER, "x")))
        await say(forger, lessons=(learned(KNOWN, "chain_sum"), learned(KNOWN, "chain_sum", swarm="other")))
        async with relays.running(tmp_path / "author", [url], author, thanked=thanked):
            await relays.until(lambda: thanked.taught)
            assert thanked.taught == {"chain_sum": 1}, "gcd was never given, and nobody speaks for another"
            assert thanked.pop_new_lessons() == [("chain_sum", key(OTHER).hex())]
            await say(newcomer, lessons=(learned(OTHER, "chain_sum"),))
            await say(forger, lessons=(learned(FORGERS[0], "chain_sum"),))
            await relays.until(lambda: thanked.pupils == 2)
            assert thanked.taught == {"chain_sum": 2}

    with running() as relay:
        play(relay, story)


def test_what_pupils_say_is_counted_once_and_outlives_the_node(tmp_path: Path) -> None:
    thanked, own = ReceiptCounter(tmp_path), key(AUTHOR).hex()
    thanked.record_published("gcd")

    def told(who: int, family: str, by: int | None = None, swarm: str = "shoal") -> bool:
        sig = learned(who, family, by, swarm).sig
        return thanked.count_lesson(Taught(pk=key(who).hex(), family=family, sig=sig), "shoal", own)

    assert told(KNOWN, "gcd") and not told(KNOWN, "gcd")
    assert not told(OTHER, "gcd", by=KNOWN) and not told(OTHER, "gcd", swarm="other")
    assert not told(OTHER, "lcm") and not told(AUTHOR, "gcd")
    thanked.save()
    thanked = ReceiptCounter(tmp_path)
    assert thanked.taught == {"gcd": 1} and not thanked.pop_new_lessons() and not told(KNOWN, "gcd")
    assert all(told(who, "gcd") for who in range(1000, 999 + MAX_PUPILS)) and not told(OTHER, "gcd")
    assert thanked.pupils == MAX_PUPILS and len(thanked.pop_new_lessons()) == 8


def test_an_author_believes_no_relay(tmp_path: Path) -> None:
    day = [date(2026, 11, 23)]
    thanked, own = ReceiptCounter(tmp_path, lambda: day[0]), {key(AUTHOR).hex()}
    ids = ["0" * 63 + str(n) for n in range(4)]
    for id in ids[:3]:
        thanked.record_stored(id)

    def told(who: int, id: str, *, by: int | None = None, swarm: str = "shoal") -> bool:
        signed = receipt(seed(who if by is None else by), swarm, id)
        return thanked.count(Thanks(id=id, pk=key(who).hex(), sig=signed.sig), "shoal", own)

    assert told(KNOWN, ids[0]) and not told(KNOWN, ids[0])  # once a group and key
    assert told(KNOWN, ids[1]) and told(OTHER, ids[0])
    assert not told(OTHER, ids[3])  # no group of ours
    assert not told(OTHER, ids[2], by=KNOWN) and not told(OTHER, ids[2], swarm="another")
    assert not told(AUTHOR, ids[2])  # nobody thanks themselves
    assert thanked.today.keys == (key(KNOWN).hex(), key(OTHER).hex())
    thanked.save()
    again = ReceiptCounter(tmp_path, lambda: day[0])
    assert again.today == thanked.today
    late = receipt(seed(4), "shoal", ids[0])
    assert not again.count(Thanks(id=ids[0], pk=key(4).hex(), sig=late.sig), "shoal", own)
    day[0] = date(2026, 11, 24)
    assert not again.today.keys and told(4, ids[0]) and thanked.today.keys == (key(4).hex(),)


def test_a_client_says_thanks_only_where_it_is_passed_on(tmp_path: Path) -> None:
    """To a relay of before, which would refuse the message, nothing is sent."""
    for caps, expected in (((RECEIPTS,), ["receipts"]), ((), [])):
        heard: list[str] = []

        async def story(
            visitor: relays.Visitor, caps: tuple[str, ...] = caps, heard: list[str] = heard
        ) -> None:
            await visitor.welcome(caps=caps)
            while True:
                heard.append(type(await visitor.hear()).__name__.lower())

        async def play(story: relays.Story = story) -> None:
            async with relays.lying_relay(story) as url, relays.running(tmp_path, [url]) as (client, _):
                await relays.until(lambda: client.status.connected)
                client._reporter._receipted -= 60
                client.thank(["ab" * 32])
                client._wake.set()
                await asyncio.sleep(1.0)

        asyncio.run(play())
        assert heard == expected
