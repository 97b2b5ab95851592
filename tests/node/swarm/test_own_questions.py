"""The owner's own questions in an open swarm: a real node, a real relay, and every frame between them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, WSMsgType, web

from app.node.data import question_sets
from app.node.record.records import Round
from app.node.round.peers import OwnGroup
from app.node.swarm.joining import Joins
from app.node.swarm.member import SwarmMember
from app.sapo.groups import Group, ScoredGroup
from app.sapo.questions import Asked, Coordinates
from app.sapo.recipes import RECIPES
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.question_set import QuestionSet, Row
from app.swarm.client.outbox import Outbox
from app.swarm.wire.body import WireTask
from app.swarm.wire.protocol import OPENING, SUBPROTOCOL
from tests.node.bench import Bench, of
from tests.swarm.relays import Relay

SECRET = "Zanzibar"
ROUNDS = 3
MADE = QuestionSet(
    name=f"{SECRET} list",
    rule=Rule(check=Check.NUMBER),
    rows=tuple(Row(question=f"{SECRET}: {n} + {n + 1}", answer=str(2 * n + 1)) for n in range(30)),
)


@contextmanager
def listened_to(url: str) -> Iterator[tuple[str, list[bytes]]]:
    """An address that leads to the relay at `url`, and all frames that go either way."""
    frames: list[bytes] = []
    opened: asyncio.Future[int] | None = None
    ready, loops = threading.Event(), []

    async def pass_on(request: web.Request) -> web.WebSocketResponse:
        near = web.WebSocketResponse(protocols=(SUBPROTOCOL,), compress=False, max_msg_size=0)
        await near.prepare(request)
        likewise: dict[str, Any] = {
            "protocols": (SUBPROTOCOL,),
            "headers": {OPENING: request.headers[OPENING]},
            "compress": 0,
            "max_msg_size": 0,
        }
        async with (
            ClientSession() as session,
            session.ws_connect(url, **likewise) as far,
        ):

            async def pump(source: object, target: object) -> None:
                async for message in source:  # type: ignore[attr-defined]
                    content = message.data if isinstance(message.data, bytes) else message.data.encode()
                    frames.append(content)
                    send = target.send_bytes if message.type is WSMsgType.BINARY else target.send_str  # type: ignore[attr-defined]
                    await send(message.data)

            pumps = {asyncio.create_task(pump(near, far)), asyncio.create_task(pump(far, near))}
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for one in pumps:
                one.cancel()
        return near

    port: list[int] = []

    async def serve() -> None:
        nonlocal opened
        loops.append(asyncio.get_running_loop())
        opened = asyncio.get_running_loop().create_future()
        app = web.Application()
        app.router.add_get("/{path:.*}", pass_on)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port.append(site._server.sockets[0].getsockname()[1])  # type: ignore[union-attr]
        ready.set()
        await opened
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(120)
    path = url.partition("://")[2].partition("/")[2]
    yield f"ws://127.0.0.1:{port[0]}/{path}", frames
    loops[0].call_soon_threadsafe(lambda: opened.set_result(0))  # type: ignore[union-attr]
    thread.join(30)


def test_nothing_of_a_set_is_on_the_wire(tmp_path: Path) -> None:
    relay = Relay("--class")
    relay.start()
    bench = Bench(tmp_path)
    bench.sets = [question_sets.add(bench.home, MADE).file]
    try:
        with listened_to(relay.url) as (url, frames):
            member = SwarmMember(
                bench.home,
                lambda say: Joins.named([url], None).find(bench.home, say),
                recipe=RECIPES["default"],
                external=2,
                families=(MADE.family_name, "chain_sum"),
            )
            seen = bench.run(
                swarm=member,
                families={MADE.family_name: 0, "chain_sum": 1},
                own_share=0.5,
                groups=12,
                external=2,
                rounds=ROUNDS,
            )
    finally:
        relay.kill()
    rounds = of(Round, seen)
    asked = {family for one in rounds for family in one.families}
    assert len(rounds) == ROUNDS and asked == {MADE.family_name, "chain_sum"}
    told = b"\n".join(frames)
    assert b"chain_sum" in told and b'"pub"' in told, "puzzles were shared meanwhile"
    for word in (SECRET, MADE.mark, MADE.family_name, "own-"):
        assert word.encode() not in told
    outbox = Outbox(bench.home / "outbox.sqlite")
    outbox.close()
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in bench.home.glob("outbox.sqlite*"))


def own_group() -> OwnGroup:
    place = Coordinates(family=MADE.family_name, level=0, seed=2**41, index=0)
    group = Group(coordinates=place, completions_G=("#1", "#2"), finished_G=(True, True), model="local")
    scored = ScoredGroup(group=group, scores_G=(1.0, 0.0), rewards_G=(1, 0))
    return OwnGroup(Asked(coordinates=place, text=SECRET, held_out=False), scored)


def test_a_question_of_the_owners_own_has_no_form_on_the_wire() -> None:
    with pytest.raises(ValueError):
        WireTask.of(own_group().scored.group.coordinates)
