"""Orders: read strictly, carried out at once, and given with the real command to a real relay."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from pathlib import Path

import msgspec
import pytest

from app.common.signing import public_key, sign
from app.relay.admin.operator import (
    ORDER_VALID_S,
    Act,
    BanOrder,
    BansOrder,
    OrderChecker,
    Rejected,
    StatusOrder,
    encode_order,
    parse_source,
)
from app.swarm.wire.protocol import Sample, SampleReply
from tests.relay.talking import key, order, running, seed, town, until

RELAY, NOW = "relay.example", 1_800_000_000_000
OPERATOR, OTHER = seed(77), seed(78)
BAN = BanOrder(target="192.0.2.7", for_s=60)


def checker() -> OrderChecker:
    return OrderChecker(frozenset({public_key(OPERATOR)}), RELAY, NOW - 10_000)


def altered(content: bytes, **changes: str) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(content) | changes)


@pytest.mark.parametrize("act", [BAN, BansOrder(), StatusOrder()])
def test_an_order_holds_once(act: Act) -> None:
    one, content = checker(), encode_order(OPERATOR, RELAY, act, NOW)
    assert one.read(content, NOW) == act
    with pytest.raises(Rejected, match="already"):
        one.read(content, NOW + 1000)
    assert one.read(encode_order(OPERATOR, RELAY, act, NOW), NOW) == act


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no signed order"),
        (b"[" * 5000, "no signed order"),
        (b"\xff", "no signed order"),
        (encode_order(OTHER, RELAY, BAN, NOW), "no operator's"),
        (altered(encode_order(OTHER, RELAY, BAN, NOW), pk=public_key(OPERATOR).hex()), "signature"),
        (altered(encode_order(OPERATOR, RELAY, BAN, NOW), order="{}"), "signature"),
        (encode_order(OPERATOR, "other.example", BAN, NOW), "is for the relay other.example"),
        (encode_order(OPERATOR, RELAY, BAN, NOW - ORDER_VALID_S * 1000 - 1), "this minute"),
        (encode_order(OPERATOR, RELAY, BAN, NOW + ORDER_VALID_S * 1000 + 1), "this minute"),
        (encode_order(OPERATOR, RELAY, BAN, NOW - 10_001), "before this relay started"),
    ],
)
def test_what_is_no_order_for_this_relay_now_is_rejected(content: bytes, words: str) -> None:
    with pytest.raises(Rejected, match=words):
        checker().read(content, NOW)


def test_a_text_that_is_signed_but_no_order_is_rejected() -> None:
    text = '{"relay":"relay.example","time_ms":1800000000000,"nonce":"00","act":{"do":"dance"}}'
    signature = sign(OPERATOR, b"shoal-operator-v1\0" + text.encode()).hex()
    content = msgspec.json.encode({"order": text, "pk": public_key(OPERATOR).hex(), "sig": signature})
    with pytest.raises(Rejected, match="does not know such an order"):
        checker().read(content, NOW)


def test_an_address_stands_for_its_network() -> None:
    assert (
        parse_source("192.0.2.7")
        == parse_source("192.0.2.0/24")
        == parse_source(" 192.0.2.128/25 ")
        == "192.0.2.0/24"
    )
    assert parse_source("2001:DB8:1:2ff::1") == "2001:db8:1:200::/56"
    assert parse_source(key(1).hex()) == key(1)
    for wrong in ("10.0.0.0/8", "::/0", "127.0.0.1", "::1", "ann", "0" * 63, ""):
        with pytest.raises(Rejected):
            parse_source(wrong)


def test_a_ban_by_command_holds_at_once_and_until_it_is_lifted(tmp_path: Path) -> None:
    home = ("--state", str(tmp_path / "relay"))

    async def told(*words: str) -> str:
        done = await asyncio.to_thread(order, *words, *home)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def story() -> None:
        with running(*home, "--trusted-proxy", "127.0.0.1", "--no-checks") as relay:
            async with town(relay) as here:
                ann, bob, eve = [await here.peer(n, f"192.0.{n}.1") for n in (1, 2, 3)]
                for one in (ann, bob, eve):
                    assert await one.publish() == "accepted"
                status = json.loads(await told("status", "--json"))["status"]
                assert (status["window"], status["peers"], status["checks"]) == (3, 3, None)
                assert {row["address"] for row in status["publishers"]} == {
                    f"192.0.{n}.0/24" for n in (1, 2, 3)
                }
                assert (
                    await told("ban", key(1).hex(), "--for", "2h", "--reason", "spam")
                    == f"{key(1).hex()} is banned.\n"
                )
                assert await ann.ended() == 1008
                assert "192.0.2.0/24 is shadowed" in await told("ban", "192.0.2.77", "--shadow")
                assert (await eve.stats()).window == 1  # both are purged
                assert await bob.publish() == "accepted"  # and nobody will ever see it
                assert (await eve.stats()).window == 1
                batch = await eve.say(Sample(rid=1, k=8))
                assert isinstance(batch, SampleReply) and not batch.items
                with pytest.raises(AssertionError, match="blocked"):
                    await here.peer(1, "192.0.9.9")
                bans = await told("bans")
                assert "1 h 59 min" in bans and "spam" in bans and "shadow" in bans
                assert "free again" in await told("unban", key(1).hex())
                assert "free again" in await told("unban", "192.0.2.0/24")
                assert "was not banned" in await told("unban", key(1).hex())
                ann = await here.peer(1, "192.0.1.1")
                ann.key_seq = 1
                assert await ann.publish() == "accepted"
                assert await bob.publish() == "accepted"

                async def seen() -> bool:
                    return (await eve.stats()).window == 3

                await until(seen)

    asyncio.run(story())
    file = tmp_path / "relay" / "operator.key"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_orders_from_strangers_and_to_nobody_are_one_sentence(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine.key", tmp_path / "theirs.key"
    mine.write_text(OPERATOR.hex())
    theirs.write_text(OTHER.hex())
    with running("--operator", public_key(OPERATOR).hex()) as relay, running() as closed:
        for words, code, expected in (
            (("bans", "--at", relay.http, "--key", str(mine)), 0, ""),
            (("bans", "--at", relay.url, "--key", str(theirs)), 1, "no operator's"),
            (("bans", "--at", closed.http, "--key", str(mine)), 1, "knows no operator"),
            (("bans", "--at", "http://127.0.0.1:9", "--key", str(mine)), 1, "is it running?"),
            (("bans", "--at", relay.http), 2, "Say whose order"),
            (("bans", "--state", str(tmp_path)), 1, "cannot be read"),
        ):
            done = order(*words)
            assert done.returncode == code and expected in done.stderr, (words, done)
            assert done.stderr.count("\n") == (code != 0)

        async def story() -> None:
            async with town(relay) as here:
                status, text = await here.get("/v1/operator")
                assert status == 405, text
                content = encode_order(OPERATOR, relay.first["relay"], BansOrder(), 1)
                async with here._http.post(relay.http + "/v1/operator", data=b"x" * 100_000) as answer:
                    assert answer.status == 403 and "at most" in await answer.text()
                async with here._http.post(relay.http + "/v1/operator", data=content) as answer:
                    assert answer.status == 403 and "this minute" in await answer.text()

        asyncio.run(story())


def test_an_order_goes_nowhere_else(tmp_path: Path) -> None:
    asked: list[str] = []

    async def story() -> None:
        async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.close()

        private = await asyncio.start_server(elsewhere, "127.0.0.1", 0)
        target = f"http://127.0.0.1:{private.sockets[0].getsockname()[1]}/api/delete?all=1"

        async def send_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 307 Go\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode())
            writer.close()

        relay = await asyncio.start_server(send_on, "127.0.0.1", 0)
        mine = tmp_path / "mine.key"
        mine.write_text(OPERATOR.hex())
        at = f"http://127.0.0.1:{relay.sockets[0].getsockname()[1]}"
        async with private, relay:
            done = await asyncio.to_thread(order, "bans", "--at", at, "--key", str(mine))
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and not asked, done.stderr

    asyncio.run(story())
