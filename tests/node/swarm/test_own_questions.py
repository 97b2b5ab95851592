"""The owner's own questions in a swarm: real nodes, a real relay, and every frame between them. In an open
swarm nothing of a set is there; in a private one those who hold the file share, and others cannot read it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, WSMsgType, web

from app.cli.__main__ import main
from app.node.data import question_sets
from app.node.record.records import Round
from app.node.swarm.choice import SwarmToJoin
from app.node.swarm.member import SwarmMember
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.sapo.recipes import RECIPES
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.question_set import QuestionSet, Row, encode
from app.swarm.client.client import Client
from app.swarm.client.outbox import Outbox
from app.swarm.invite.invite import Invite
from app.swarm.invite.private import new_words, private_invite, private_swarm_from_text
from app.swarm.wire.body import WireTask, unseal
from app.swarm.wire.frames import decode_envelope
from app.swarm.wire.protocol import OPENING_HEADER, SUBPROTOCOL
from app.swarm.wire.shared_sets import SharedSet
from tests.node.bench import Bench, of
from tests.swarm.relays import ANN, ROOT, Relay

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
            "headers": {OPENING_HEADER: request.headers[OPENING_HEADER]},
            "compress": 0,
            "max_msg_size": 0,
        }
        async with ClientSession() as session, session.ws_connect(url, **likewise) as far:

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


def body(frame: bytes) -> bytes:
    """What a frame carries compressed."""
    told = json.loads(frame)
    return zlib.decompress(base64.b64decode(told["body"])) if told.get("enc") == "zlib" else b""


def test_nothing_of_a_set_is_on_the_wire(tmp_path: Path) -> None:
    relay = Relay("--host", "127.0.0.1", "--class")
    relay.start()
    bench = Bench(tmp_path)
    bench.sets = [question_sets.add(bench.home, MADE).file]
    try:
        with listened_to(relay.url) as (url, frames):
            member = SwarmMember(
                bench.home,
                lambda say: SwarmToJoin.named([url], None).find(bench.home, say),
                recipe=RECIPES["default"],
                external=2,
                families=(MADE.family_name, "chain_sum"),
                shared=lambda: [MADE],  # which holds for private swarms alone
            )
            seen = bench.run(
                swarm=member,
                families={MADE.family_name: 0, "chain_sum": 1},
                groups=12,
                external=2,
                rounds=ROUNDS,
            )
    finally:
        relay.kill()
    rounds = of(Round, seen)
    asked = {family for one in rounds for family in one.families}
    assert len(rounds) == ROUNDS and asked == {MADE.family_name, "chain_sum"}
    told = b"\n".join([*frames, *map(body, frames)])
    assert b"chain_sum" in told and b'"pub"' in told, "puzzles were shared meanwhile"
    for word in (SECRET, MADE.mark, MADE.family_name, "own-", "set_"):
        assert word.encode() not in told
    outbox = Outbox(bench.home / "outbox.sqlite")
    outbox.close()
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in bench.home.glob("outbox.sqlite*"))


def own_group() -> GroupRecord:
    place = Coordinates(family=MADE.family_name, level=0, seed=2**41, index=0)
    group = GroupRecord(coordinates=place, completions_G=("#1", "#2"), finished_G=(True, True), model="local")
    return msgspec.structs.replace(group.with_scores((1.0, 0.0), (1, 0)), question=SECRET)


def test_what_is_sealed_opens_with_the_same_file_alone() -> None:
    group = own_group()
    for texts in (("#1", "#2"), ("", "\u00e9 \U0001f41f" * 99)):
        told = msgspec.structs.replace(group, completions_G=texts)
        sealed = SharedSet.of(MADE).encrypt_group(told)
        assert SharedSet.of(msgspec.structs.replace(MADE, name="Other name")).decrypt_group(sealed) == told
        assert {len(one) for one in sealed.completions_G} != {len(one) for one in texts}
        assert WireTask.of(sealed.coordinates).family.startswith("set_")
        fewer = msgspec.structs.replace(MADE, rows=MADE.rows[1:])
        assert SharedSet.of(fewer).decrypt_group(sealed) is None
    assert SharedSet.of(MADE).decrypt_group(group) is None


def test_a_question_of_the_owners_own_has_no_form_on_the_wire() -> None:
    with pytest.raises(ValueError):
        WireTask.of(own_group().coordinates)


@contextmanager
def private_swarm() -> Iterator[list[Invite]]:
    """A relay of a private swarm, and the invite of those who know its words."""
    words = new_words()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "app.cli",
            "relay",
            "--port",
            "0",
            "--private",
            "--host",
            "127.0.0.1",
            "--class",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SHOAL_PRIVATE": words},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    opened = json.loads(process.stdout.readline())
    try:
        yield [
            private_invite(
                private_swarm_from_text(words),
                Invite(url=opened["url"], swarm=opened["swarm"], relay=opened["relay"]),
            )
        ]
    finally:
        process.kill()
        process.communicate()


def found(invites: list[Invite]) -> Callable[[object], AbstractAsyncContextManager[list[Invite]]]:
    """Where a node finds its swarm."""

    @asynccontextmanager
    async def find(_: object) -> AsyncIterator[list[Invite]]:
        yield invites

    return find


def member(home: Path, invites: list[Invite], shared: list[QuestionSet]) -> SwarmMember:
    return SwarmMember(
        home,
        found(invites),
        recipe=RECIPES["default"],
        external=2,
        families=(MADE.family_name,),
        shared=lambda: shared,
    )


async def asked_for_everything(home: Path, invites: list[Invite]) -> list[bytes]:
    """What a member without the file is given, whatever it asks for."""
    outbox = Outbox(home / "outbox.sqlite")
    client = Client(invites, ANN, outbox, memory=home / "relays.json")
    running = asyncio.create_task(client.run())
    while (batch := await client.sample(64)) is None:
        await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.wait({running})
    outbox.close()
    return [bytes(one) for one in batch.items]


@pytest.mark.long
def test_in_a_private_swarm_holders_of_the_file_share_and_others_cannot_read(tmp_path: Path) -> None:
    told: dict[str, list[Round]] = {}
    with private_swarm() as invites:
        for name, shared in (("gives", [MADE]), ("takes", [MADE]), ("silent", [])):
            folder = tmp_path / name
            folder.mkdir()
            bench = Bench(folder)
            bench.sets = [question_sets.add(bench.home, MADE).file]
            seen = bench.run(
                swarm=member(bench.home, invites, shared),
                families={MADE.family_name: 0},
                groups=12,
                external=2,
                rounds=ROUNDS + 3 * (name != "gives"),
                seed=len(told) + 1,
            )
            told[name] = of(Round, seen)
        (tmp_path / "other").mkdir()
        items = asyncio.run(asked_for_everything(tmp_path / "other", invites))
    assert sum(one.peer_groups for one in told["takes"]) > 0
    assert sum(one.peer_groups for one in told["silent"]) == 0, "who did not agree neither gives nor takes"
    assert len(items) > 1
    bodies = [unseal(decode_envelope(one), invites[0].swarm or "") for one in items]
    assert {body.task.family for body in bodies} == {SharedSet.of(MADE).wire}
    assert len({envelope.pk for envelope in map(decode_envelope, items)}) == 2, "of those who agreed"
    for word in (SECRET, MADE.mark, "own-"):
        assert not any(word.encode() in one for one in items)
    groups = [body.group() for body in bodies]
    assert all(
        "#" in "".join(one.completions_G) for one in map(SharedSet.of(MADE).decrypt_group, groups) if one
    )
    another = SharedSet.of(msgspec.structs.replace(MADE, rows=MADE.rows[1:]))
    assert not any("#" in text for one in groups for text in one.completions_G)
    assert [another.decrypt_group(one) for one in groups] == [None] * len(groups)


@pytest.mark.long
def test_a_class_hands_questions_out_and_pupils_see_them_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three pupils over a real relay: one adds the set and learns it, one declines, one only looks."""
    file = tmp_path / "set.json"
    file.write_bytes(encode(MADE))
    relay = Relay("--host", "127.0.0.1", "--class", "--questions", str(file))
    relay.start()
    invite = Invite(url=relay.url, relay=relay.relay, room="class")
    homes = []
    try:
        for number in range(3):
            folder = tmp_path / str(number)
            folder.mkdir()
            bench = Bench(folder)
            homes.append(bench.home)
            pupil = SwarmMember(
                bench.home, found([invite]), recipe=RECIPES["default"], external=0, families=("chain_sum",)
            )
            bench.run(
                lambda event, home=bench.home: bool(question_sets.pending_class_sets(home)),
                pupil,
                rounds=200,
                seed=number,
            )
        assert [question_sets.stored_sets(home) for home in homes] == [[], [], []], "nothing is kept unseen"
        [offer] = question_sets.pending_class_sets(homes[1])
        question_sets.decline(offer)
        words = ["questions", "add", f"class:{MADE.name}", "--home", str(homes[0]), "--json"]
        assert main([*words, "--dry-run"]) == 0 and json.loads(capsys.readouterr().out)["questions"] == 30
        assert not question_sets.stored_sets(homes[0])
        assert main(words) == 0
        [kept] = question_sets.stored_sets(homes[0])
        assert kept.made == MADE and question_sets.pending_class_sets(homes[0]) == []
        assert not question_sets.store_offered_set(homes[1], encode(MADE).decode()), "declined is declined"
        assert [one.made for one in question_sets.pending_class_sets(homes[2])] == [MADE]
        bench = Bench(tmp_path / "0")
        bench.sets = [kept.file]
        seen = bench.run(families={MADE.family_name: 0})
        assert {family for one in of(Round, seen) for family in one.families} == {MADE.family_name}
    finally:
        relay.kill()
    refused = subprocess.run(
        [sys.executable, "-m", "app.cli", "relay", "--port", "0", "--questions", str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 2 and "add --class" in refused.stderr


def test_what_a_class_hands_out_is_parsed_in_a_thread_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tolerance of 1e-100000000 held the event loop for a minute, and again at each reconnect."""
    parsed: list[str] = []
    free = threading.Event()

    def parse(home: Path, content: str) -> bool:
        assert threading.current_thread() is not threading.main_thread()
        parsed.append(content)
        free.wait(60)
        return False

    async def story() -> None:
        monkeypatch.setattr(question_sets, "store_offered_set", parse)
        member = object.__new__(SwarmMember)
        member._folder, member._keeping = tmp_path, None
        for number in range(100):
            member._handed_out(str(number))
            await asyncio.sleep(0.001)
        free.set()
        assert member._keeping is not None
        await member._keeping
        assert parsed == ["0"]
        member._handed_out("later")
        await member._keeping
        assert parsed == ["0", "later"]

    asyncio.run(story())
