"""Publishes that wait for their store, over a real websocket: answered when it has them, 16 at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

import aiohttp
from aiohttp import web

from app.relay.server.server import Server
from app.relay.session.shared import RelayState
from app.relay.store.backing import CheckedGroup, Memory, OnGroup, OnPresence, OnValue, Unavailable
from app.relay.store.window import Added
from app.swarm.wire.body import Body, seal
from app.swarm.wire.frames import decode_relay_frame, to_frame
from app.swarm.wire.limits import OPEN_PUBLISHES, Code
from app.swarm.wire.protocol import OPENING_HEADER, SOCKET_PATH, SUBPROTOCOL, Hello, Ok, Pub, Welcome
from app.swarm.wire.signin import sign_in
from tests.swarm.relays import group

PATIENCE = 240.0
ANN = bytes(range(32))


class Slow(Memory):
    """A backing that has a group when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.open_: list[tuple[CheckedGroup, asyncio.Future[Added]]] = []

    async def start(self, on_group: OnGroup, on_value: OnValue, on_presence: OnPresence) -> None:
        self.open(on_group, on_value)

    def publish(self, record: CheckedGroup) -> Awaitable[Added]:  # type: ignore[override]
        answer: asyncio.Future[Added] = asyncio.get_running_loop().create_future()
        self.open_.append((record, answer))
        return answer

    def land(self) -> None:
        for record, answer in self.open_:
            answer.set_result(super().publish(record))
        self.open_ = []

    def fail(self) -> None:
        for _, answer in self.open_:
            answer.set_exception(Unavailable("The store is away.", 2.0))
        self.open_ = []


async def until(slow: Slow, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(slow.open_) != count:
            await asyncio.sleep(0.01)


def test_so_many_are_open_and_then_reading_waits() -> None:
    async def story() -> None:
        slow = Slow()
        state = RelayState(bytes(32), "shoal", "1", backing=slow)
        await state.open()
        runner = web.AppRunner(Server(state).application())
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        url = f"ws://127.0.0.1:{port}{SOCKET_PATH}"
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(url, protocols=(SUBPROTOCOL,), headers={OPENING_HEADER: "00" * 32}) as ws,
        ):

            async def read() -> object:
                return decode_relay_frame((await ws.receive_str(timeout=PATIENCE)).encode())

            hello = await read()
            assert isinstance(hello, Hello)
            await ws.send_str(to_frame(sign_in(ANN, hello, "test/1")).decode())
            assert isinstance(await read(), Welcome)
            pubs = [
                Pub.of(seal(Body.of(group(n), (1, 0), "shoal", n + 1, int(time.time() * 1000)), ANN))
                for n in range(40)
            ]

            async def answers(count: int) -> dict[str, Ok]:
                found = [await read() for _ in range(count)]
                assert all(isinstance(one, Ok) for one in found)
                return {one.id: one for one in found if isinstance(one, Ok)}

            for pub in pubs:
                await ws.send_str(to_frame(pub).decode())
            await until(slow, OPEN_PUBLISHES)
            await asyncio.sleep(0.2)
            assert len(slow.open_) == OPEN_PUBLISHES and len(state.window) == 0
            slow.fail()
            failed = await answers(OPEN_PUBLISHES)
            assert {(one.code, one.retry_after_ms) for one in failed.values()} == {(Code.ERROR, 2000)}
            got: dict[str, Ok] = {}
            while len(got) < len(pubs) - OPEN_PUBLISHES:
                expected = min(OPEN_PUBLISHES, len(pubs) - OPEN_PUBLISHES - len(got))
                await until(slow, expected)
                slow.land()
                got |= await answers(expected)
            assert {one.code for one in got.values()} == {Code.ACCEPTED}
            for pub in pubs[:OPEN_PUBLISHES]:  # what failed comes again, and was never a duplicate
                await ws.send_str(to_frame(pub).decode())
            await until(slow, OPEN_PUBLISHES)
            slow.land()
            assert {one.code for one in (await answers(OPEN_PUBLISHES)).values()} == {Code.ACCEPTED}
            # a client that leaves does not take its group along
            left = Pub.of(seal(Body.of(group(99), (1, 0), "shoal", 99, int(time.time() * 1000)), ANN))
            await ws.send_str(to_frame(left).decode())
            await until(slow, 1)
            await ws.close()
            await asyncio.sleep(0.1)
            slow.land()
            await asyncio.sleep(0.1)
            assert len(state.window) == len(pubs) + 1 == state.store.backing.stored
        await runner.cleanup()
        await state.close()

    asyncio.run(story())
