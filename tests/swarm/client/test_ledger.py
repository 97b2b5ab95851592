"""What the owner is shown of the line: amounts and the very messages."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import msgspec
import pytest

from app.swarm.client.status import HIDDEN, MAX_BYTES, MAX_KEPT_MESSAGE_BYTES, MAX_MESSAGES, UNPACKED, Ledger
from app.swarm.client.underway import _packed
from app.swarm.invite.invite import Invite
from app.swarm.invite.private import mint
from app.swarm.wire.body import Body, seal
from app.swarm.wire.frames import to_frame
from app.swarm.wire.protocol import Pub
from tests.swarm.relays import ANN, BOB, Relay, group, running, until

STATS = b'{"t":"stats","peers":2}'


def test_what_was_sent_is_not_pushed_out_by_what_comes() -> None:
    ledger = Ledger(wall=lambda: 5.0)
    assert not ledger.messages
    for number in range(12):
        ledger.record_sent(b'{"t":"sample","rid":%d}' % number)
    for _ in range(100):
        ledger.record_received(STATS)
    ledger.record_sent(b"\xff no message")
    told = ledger.messages
    assert told is ledger.messages, "nothing is made anew while nothing goes"
    assert [one.outgoing for one in told] == [True] * 9 + [False] * 10 + [True]
    assert told[0].text == '{"t":"sample","rid":3}' and told[0].kind == "sample" and told[0].at == 5.0
    assert told[10].text == STATS.decode() and told[10].size == len(STATS)
    assert (told[-1].kind, told[-1].text) == ("?", "� no message")


def test_long_messages_are_shortened_and_say_so() -> None:
    ledger = Ledger()
    batch = b'{"t":"batch","items":[' + b"7," * 200_000
    ledger.record_sent(STATS)
    for _ in range(5):
        ledger.record_received(batch)
    sent, last = ledger.messages
    assert sent.outgoing and last.size == len(batch)
    assert last.text.startswith(batch[:MAX_KEPT_MESSAGE_BYTES].decode())
    assert last.text.endswith(f" … ({len(batch) - MAX_KEPT_MESSAGE_BYTES} bytes more)")


def pub(number: int, text: str) -> Pub:
    body = Body.of(group(number, text), (1, 0), "shoal", number, 1)
    return Pub.of(seal(body, ANN.seed()))


def test_a_group_that_travelled_compressed_is_shown_as_it_went_and_in_words() -> None:
    ledger = Ledger()
    plain = pub(1, "y" * 2000)
    packed = to_frame(_packed(plain))
    ledger.record_sent(packed)
    (told,) = ledger.messages
    assert told.size == len(packed) < 2000
    assert told.text == packed.decode() + UNPACKED + plain.body
    for number in range(2, 12):
        ledger.record_sent(to_frame(_packed(pub(number, "y" * 4000))))
    assert 3 < len(ledger.messages) < MAX_MESSAGES // 2
    assert sum(len(one.text.encode()) for one in ledger.messages) <= MAX_BYTES


@pytest.mark.skipif(sys.platform == "win32", reason="kills processes hard")
def test_a_clients_messages_are_told_without_what_opens_the_swarm(tmp_path: Path) -> None:
    relay = Relay("--access", "invite", "--invite-key", ANN.key.hex())
    relay.start()

    async def story() -> None:
        token = mint(ANN.seed(), "shoal", int(time.time()) + 600)
        door = Invite(url=relay.url, swarm="shoal", relay=relay.relay, token=token)
        async with running(tmp_path, [door], BOB) as (bob, _):
            await until(lambda: bob.status.connected)
            assert bob.publish(group(), (1, 0))
            await until(lambda: bob.status.acknowledged == 1)
            assert await bob.sample(8) is not None
            told = bob.ledger.messages
            assert [one.kind for one in told if one.outgoing] == ["auth", "stats", "pub", "sample"]
            assert {"hello", "welcome", "ok", "batch"} <= {one.kind for one in told if not one.outgoing}
            auth = json.loads(told[1].text)
            assert auth["invite"] == HIDDEN and auth["pk"] == BOB.key.hex() and len(auth["sig"]) == 128
            assert token not in repr(told) and token.encode() not in msgspec.json.encode(told)

    try:
        asyncio.run(story())
    finally:
        relay.kill()
